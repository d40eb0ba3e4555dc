"""The variables that are this product's own, or configure its parts: no definition reads one, listed or not."""

from typing import Final

PREFIXES: Final = ("AGENT_CORE_", "PG")
"""Of the product's own settings and keys, and of the client of PostgreSQL."""
_signing: set[str] = set()


def note_signing(variable: str) -> None:
    """From now on the variable holds a secret with which this process signs, or checks who has signed."""
    _signing.add(variable)


def is_never_given(variable: str) -> bool:
    """Whether neither a definition nor a tool of one gets the variable."""
    return variable.upper().startswith(PREFIXES) or variable in _signing
