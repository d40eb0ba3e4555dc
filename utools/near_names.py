"""near_names(): which of the known names somebody may have meant. Pure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches

_looks_left: ContextVar[list[int] | None] = ContextVar("looks_left", default=None)


@contextmanager
def few_looks(most: int) -> Iterator[None]:
    """Look for near names so often at most within the block: a look costs more than finding a fault does."""
    token = _looks_left.set([most])
    try:
        yield
    finally:
        _looks_left.reset(token)


def near_names(name: str, known: Sequence[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the names that are near, the nearest first; none after too many looks."""
    left = _looks_left.get()
    if left is not None:
        if left[0] <= 0:
            return []
        left[0] -= 1
    found = get_close_matches(name, known, n=most, cutoff=cutoff)
    return [
        each for each in found if each in name or len(name) < 2 * len(each)
    ]  # `id` has half of `kind`, and is not meant


def may_look() -> bool:
    """Return whether there are looks left."""
    left = _looks_left.get()
    return left is None or left[0] > 0
