"""The origins that will do for an argument, as a policy names them. Pure.

`author` is the definition: system and developer prompt, and what its schemas enumerate. `user` is a message of the
user. `person` is what a person wrote who edited a call; it will do everywhere. `trusted` is any of these, and the
answers of tools that are marked so. `any` is anything, the model's own words too. `nodes.ID` is what a prompt took from
this node of the workflow. TOOL is an answer of this tool, or of each that a glob fits. TOOL:/PATH and nodes.ID:/PATH
are only what stands there or below it; a glob in a path does not reach into a text that is JSON itself.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from agent_core.origins.source import OPENED, Origin
from agent_core.origins.urls import UpTo
from agent_core.outputs import Json
from utools.schema.pointer import unescape

WORDS = ("author", "user", "person", "trusted", "any")
ALL_OTHERS = "*"
"""The key of a policy that stands for all arguments which have none of their own."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which origins will do; of a URL perhaps only its host, or its path as well, needs one."""

    any_of: tuple[str, ...]
    up_to: UpTo | None = None

    def allows(self, origin: Origin, pointer: str) -> bool:
        """Return whether a value that stands at this place of a text of this origin will do."""
        return origin.kind == "person" or any(_fits(name, origin, pointer) for name in self.any_of)

    @property
    def is_open(self) -> bool:
        """Whether the model's own words will do."""
        return "any" in self.any_of

    def __str__(self) -> str:
        return ", ".join(self.any_of)


def read_rule(written: Any) -> Rule:
    """Return a rule as a config writes it: a name, a list of names, or {any_of, up_to}."""
    if isinstance(written, str):
        return Rule((written,))
    if isinstance(written, Mapping):
        return Rule(tuple(written["any_of"]), written.get("up_to"))
    return Rule(tuple(written))


def find_rule(rules: Mapping[str, Any], pointer: str) -> Rule | None:
    """Return the rule for a place in the arguments: that of the longest key that reaches it."""
    best: tuple[int, int] | None = None
    chosen: Any = None
    for key, written in rules.items():
        rank = _rank(key, pointer)
        if rank is not None and (best is None or rank > best):
            best, chosen = rank, written
    return None if chosen is None else read_rule(chosen)


def _rank(key: str, pointer: str) -> tuple[int, int] | None:
    """Return how closely a key fits a place: the length of its path, and how much of it is spelled out."""
    if key == ALL_OTHERS:
        return (0, 0)
    wanted = key[1:].split("/") if key.startswith("/") else [key]
    parts = [unescape(part) for part in pointer[1:].split("/")]
    if len(parts) < len(wanted) or not all(w in ("*", p) for w, p in zip(wanted, parts, strict=False)):
        return None
    return len(wanted), sum(part != "*" for part in wanted)


def _fits(name: str, origin: Origin, pointer: str) -> bool:
    match name:
        case "any":
            return True
        case "trusted":
            return origin.trusted or origin.kind in ("author", "user", "vouched")
        case "author" | "user":
            return origin.kind in (name, "vouched")
        case _:
            tool, path = split_name(name)
            return origin.tool is not None and fnmatchcase(origin.tool, tool) and _path(path).match(pointer) is not None


def split_name(name: str) -> tuple[str, str]:
    """Return the tool, or its glob, and the path in its answer; the path is empty where all of it is meant."""
    tool, colon, path = name.partition(":/")
    return (tool, f"/{path}") if colon else (name, "")


@lru_cache(256)
def _path(pattern: str) -> re.Pattern[str]:
    """Return a path with `*` for one key or index, or a part of one, and `**` for any number of them."""
    path = ""
    for index, part in enumerate(pattern.split("/")):
        if part == "**":
            path += f"(?:/[^{OPENED}]*)?"
        else:
            key = re.escape(part).replace(r"\*", f"[^/{OPENED}]*")
            path += ("/" if index else "") + (key if "*" in part else f"{key}{OPENED}?")
    return re.compile(rf"{path}(?:{OPENED}?/|{OPENED}?\Z)")


# ── rules that can never be met ──────────────────────────────────────────────────────────────────


def rule_problems(
    rules: Mapping[str, Any], schema: Json, preset: Collection[str], outputs: Mapping[str, Json | None]
) -> Iterator[tuple[str, str]]:
    """Yield the key and the fault of each rule that no call can meet. `outputs` are the run's tools, with their
    schemas."""
    known = schema.get("properties", {})
    for key, written in rules.items():
        argument = unescape(key[1:].split("/")[0]) if key.startswith("/") else key
        if key != ALL_OTHERS and known and argument not in known:
            yield key, f"the tool has no such argument; it has {', '.join(known) or 'none'}"
        elif argument in preset:
            yield key, "the author presets this argument, so no model sends it"
        else:
            yield from ((key, fault) for fault in _faults(read_rule(written), known.get(argument, {}), outputs))


def _faults(rule: Rule, argument: Json, outputs: Mapping[str, Json | None]) -> Iterator[str]:
    if not rule.any_of:
        yield "no origin is accepted, so no call can have this argument; preset it, or narrow it by args"
    tools = [name for name in rule.any_of if name not in WORDS and not name.startswith("nodes.")]
    for name in tools:
        tool, path = split_name(name)
        reached = [code for code in outputs if fnmatchcase(code, tool)]
        if not reached:
            origins = f"{', '.join(WORDS)}, or a tool of this run ({', '.join(outputs)}) as TOOL or TOOL:/PATH"
            yield f"{name!r} is no origin: write {origins}"
        elif path and all(not _leads_somewhere(outputs[code], path[1:].split("/")) for code in reached):
            yield f"{name!r} can never be met: the answer of {reached[0]} has no {path}"
    if argument.get("type") == "boolean" and rule.any_of and not tools and "any" not in rule.any_of:
        never = "true and false are not copied from text, so this can never be met"
        yield f"{never}; preset the argument, narrow it by args, or name a tool"


def _leads_somewhere(schema: Any, path: Sequence[str]) -> bool:
    """Return whether an answer of this schema may have something at the path."""
    if not path or not isinstance(schema, dict) or "**" in path:
        return True
    key, rest = path[0], path[1:]
    properties = schema.get("properties", {})
    if schema.get("type") == "array":
        return _leads_somewhere(schema.get("items"), rest)
    if "*" in key:
        return schema.get("type") != "object" or any(_leads_somewhere(each, rest) for each in properties.values())
    if key in properties:
        return _leads_somewhere(properties[key], rest)
    return schema.get("additionalProperties") is not False
