"""is_own(): whether a variable is the product's own by its name: no definition and no tool gets it, listed or not."""

from typing import Final

PREFIXES: Final = ("AGENT_CORE_", "PG")
"""Of the product's own settings and keys, and of the client of PostgreSQL."""


def is_own(variable: str) -> bool:
    """Return whether neither a definition nor a tool of one gets the variable, on any host."""
    return variable.upper().startswith(PREFIXES)
