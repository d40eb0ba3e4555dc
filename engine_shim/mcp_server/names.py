"""The names of tools: `run_ID` for a workflow, `ask_NAME` for an agent, in letters that every client takes. Pure."""

import re
from typing import Final, Literal, NamedTuple

from utools.lazy_pattern import lazy_compile

Kind = Literal["workflow", "agent"]
_PREFIXES: Final[dict[Kind, str]] = {"workflow": "run_", "agent": "ask_"}
_PLAIN: Final = lazy_compile(r"_(?=x)|[^A-Za-z0-9_-]")
"""What is escaped: every other character, and an underscore that would look like the beginning of an escape."""
_ESCAPE: Final = lazy_compile(r"_x([0-9a-f]+)_")


class Target(NamedTuple):
    """What a tool stands for: a workflow by its id, or an agent by its name."""

    kind: Kind
    name: str


def tool_name(target: Target) -> str:
    """Return the tool's name: letters, digits, `_` and `-`; any other character is written `_xHH_`."""
    return _PREFIXES[target.kind] + _PLAIN.sub(lambda found: f"_x{ord(found[0]):x}_", target.name)


def target_of(name: str) -> Target | None:
    """Return what a tool's name stands for, the inverse of `tool_name`; None for a name that it does not give."""
    for kind, prefix in _PREFIXES.items():
        if name.startswith(prefix):
            target = Target(kind, _ESCAPE.sub(_unescape, name.removeprefix(prefix)))
            return target if tool_name(target) == name else None
    return None


def _unescape(found: "re.Match[str]") -> str:
    code = int(found[1], 16)
    return chr(code) if code < 0x110000 else found[0]
