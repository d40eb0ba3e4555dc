"""The names of tools: `run_ID` for a workflow, `ask_NAME` for an agent, in letters and a length that all clients take.
Pure."""

from hashlib import sha256
from typing import Final, Literal, NamedTuple

from utools.lazy_pattern import lazy_compile

Kind = Literal["workflow", "agent"]
_PREFIXES: Final[dict[Kind, str]] = {"workflow": "run_", "agent": "ask_"}
_PLAIN: Final = lazy_compile(r"_(?=x)|[^A-Za-z0-9_-]")
"""What is escaped: every other character, and an underscore that would look like the beginning of an escape."""
LONGEST: Final = 64
"""Characters of a name that vendors take; of one tool with a longer name, they refuse all."""


class Target(NamedTuple):
    """What a tool stands for: a workflow by its id, or an agent by its name."""

    kind: Kind
    name: str


def tool_name(target: Target) -> str:
    """Return the tool's name: letters, digits, `_` and `-`; any other character is written `_xHH_`. The end of a long
    one is a digest of all of it."""
    name = _PREFIXES[target.kind] + _PLAIN.sub(lambda found: f"_x{ord(found[0]):x}_", target.name)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
