"""A token estimate, for where no vendor has counted. Pure.

About four characters of Latin text, or one of any other script, to a token: high rather than low.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

BYTES_PER_TOKEN = 4


def estimate_question(messages: Sequence[bytes], options: Mapping[str, Any]) -> int:
    """Tokens of a question as it is sent, the tools that it offers included."""
    tools = options.get("tools")
    return (sum(map(len, messages)) + (len(orjson.dumps(tools)) if tools else 0)) // BYTES_PER_TOKEN


def estimate(text: str) -> int:
    """Tokens of a text, at least 1."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return max(1, (ascii_count + 3) // 4 + (len(text) - ascii_count))
