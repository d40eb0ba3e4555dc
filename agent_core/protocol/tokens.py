"""A token estimate, for where no vendor has counted. Pure.

About four characters of Latin text, or one of any other script, to a token: high rather than low.
"""


def estimate(text: str) -> int:
    """Tokens of a text, at least 1."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return max(1, (ascii_count + 3) // 4 + (len(text) - ascii_count))
