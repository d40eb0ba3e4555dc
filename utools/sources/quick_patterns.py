"""Whether a pattern of elsewhere is matched in bounded time: it is tried, since `re` cannot be stopped."""

import re
from functools import lru_cache
from time import thread_time
from typing import Final

SIZES: Final = (8, 12, 16, 20, 24, 32, 48, 64, 100, 150, 200, 300, 400, 600, 1000, 2000, 4000)
SECONDS: Final = 0.004
"""Time of the processor that a search in these texts may take: a pattern in linear time needs a hundredth of it, one in
quadratic time twice as much."""
TRIES: Final = 3
MOST_SIGNS: Final = 32


@lru_cache(1024)
def is_quick(pattern: str) -> bool:
    """Whether a pattern that Python reads is quick with the texts that slow ones take for ever with."""
    if not re.search(r"[*+}]", pattern):
        return True
    compiled = re.compile(pattern)
    return all(
        any(_measure(compiled, f"{(sign * size)[:size]}!") <= SECONDS for _ in range(TRIES))
        for sign in _signs(pattern)
        for size in SIZES
    )


def _measure(compiled: re.Pattern[str], text: str) -> float:
    began = thread_time()
    compiled.search(text)
    return thread_time() - began


def _signs(pattern: str) -> list[str]:
    """What is repeated in those texts: usual characters, and the pattern's own."""
    own = dict.fromkeys(char for char in pattern if char.isalnum() or char in "-_./:@, ")
    return list(dict.fromkeys(["a", "A", "0", " ", "a ", "0-", "A0", "a.", "ab", *own]))[:MOST_SIGNS]
