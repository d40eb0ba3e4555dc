"""The tool section of a prompt: code, description, arguments as a short signature. Pure.

An argument without a type is a text, as most are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from typing_extensions import TypedDict

from agent_core.outputs import Json
from agent_core.tool_policy import Policies
from agent_core.words.catalogue import ENGLISH, Words
from utools.lazy_pattern import lazy_compile
from utools.schema.pointer import unescape
from utools.schema.shape import find_parts

ALTERNATIVES = frozenset({"anyOf", "oneOf"})
PARTS = frozenset({"$ref", "allOf"})
DEEPEST = 4
"""Levels of a type that are told."""
WIDEST = 500
"""Arguments of a tool, inner ones among them, whose types are told at all levels; those behind them are told flat."""
FLAT = frozenset({"string", "integer", "number", "boolean", "null"})
"""Types that are told at any level, since they have none below."""
LONGEST, LONGEST_ARGUMENT = 1000, 300
"""Characters of a tool's description and of an argument's that a model reads."""
ABBREVIATION = lazy_compile(
    r"(?:^|[\s(\[\"'])(?:e\.?g|i\.?e|etc|vs|cf|ca|al|approx|incl|excl|max|min|no|nos|fig|sec|ch|vol|pp?|ed|dept|est|"
    r"mr|mrs|ms|dr|prof|sr|jr|st|inc|ltd|corp|co|bzw|usw|z\.\s?b|u\.\s?a|d\.\s?h|[a-z]|(?:[a-z]\.)+[a-z])\.\Z",
    re.IGNORECASE,
)
"""The end of a text whose last full stop belongs to an abbreviation."""
LONGEST_ABBREVIATION = 24
"""Characters, with what stands before it."""
MOST = 1024
"""Lines that are kept."""
STOP = lazy_compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s+[^\sa-z])|[。！？]+[”’」』）]*")
"""Where a sentence may end: before what is no small letter."""


class Described(TypedDict):
    """What is told of a tool: its description, and the schema of what a model may send."""

    description: str
    visible: Json


def tool_definitions(tools: Mapping[str, Described] | Policies, words: Words = ENGLISH, *, brief: bool = False) -> str:
    """Return one line for each tool, without what the author set.

    Descriptions are told whole, up to LONGEST characters; `brief` tells their first sentences alone.
    """
    lines = [
        _write_definition(code, tool["description"], orjson.dumps(tool["visible"]), brief)
        for code, tool in tools.items()
    ]
    return "\n".join(lines) or words.no_definitions


@lru_cache(MOST)
def _write_definition(code: str, description: str, schema: bytes, brief: bool) -> str:
    """Return the line of a tool. Runs of a host show the same few tools again and again."""
    describe = _Describe(brief)
    return f"- {code}({_arguments(orjson.loads(schema), describe)}): {describe(description, LONGEST)}"


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, on one line. The full stop of an abbreviation ends none."""
    flat = " ".join(text.split())
    for stop in STOP.finditer(flat):
        if not ABBREVIATION.search(flat, max(0, stop.end() - LONGEST_ABBREVIATION), stop.end()):
            return flat[: stop.end()]
    return flat


@dataclass(slots=True)
class _Describe:
    """Puts a description on one line: all of it, or its first sentence, and never more than so many characters."""

    brief: bool
    told: int = 0
    """Arguments so far."""

    def __call__(self, text: str, longest: int) -> str:
        flat = first_sentence(text) if self.brief else " ".join(text.split())
        return flat if len(flat) <= longest else f"{flat[: longest - 1].rstrip()}…"


def _arguments(schema: Json, describe: _Describe) -> str:
    merged = _merge_parts(schema, schema)
    if merged.get("properties"):
        return _object(merged, schema, 0, describe) + _beside(merged, schema, 0, describe)
    return "{}" if "properties" in merged else _type(merged, schema, 0, describe)


def _argument(name: str, rule: Any, required: bool, root: Json, depth: int, describe: _Describe) -> str:
    describe.told += 1
    kind = _type(rule, root, depth, describe)
    signature = f"{name}{'' if required else '?'}" + ("" if kind == "string" else f": {kind}")
    described = _merge_parts(rule, root) if isinstance(rule, dict) else {}
    default = f" = {_json(described['default'])}" if described.get("default") is not None else ""
    text = described.get("description")
    about = f" ({describe(text, LONGEST_ARGUMENT).rstrip('.')})" if isinstance(text, str) and text.strip() else ""
    return f"{signature}{default}{about}"


def _type(rule: Any, root: Json, depth: int, describe: _Describe) -> str:
    """Return a type as TypeScript would write it: models have seen much of it, and it is short."""
    if not isinstance(rule, dict):
        return "any"
    depth += not PARTS.isdisjoint(rule)
    rule = _merge_parts(rule, root)
    if depth > DEEPEST or describe.told > WIDEST:
        return _flat_type(rule)
    if "enum" in rule or "const" in rule:
        return _values(rule)
    if not ALTERNATIVES.isdisjoint(rule):
        if rule.get("properties"):
            return _object(rule, root, depth + 1, describe) + _beside(rule, root, depth, describe)
        return _alternatives(rule, root, depth, describe)
    kinds = rule.get("type", "object" if "properties" in rule else "any")
    return "|".join(
        _named(kind, rule, root, depth, describe) for kind in (kinds if isinstance(kinds, list) else [kinds])
    )


def _flat_type(rule: Json) -> str:
    """Return the type of a value that has no inner ones; `any` for another."""
    if "enum" in rule or "const" in rule:
        return _values(rule)
    kinds = rule.get("type")
    listed: list[Any] = kinds if isinstance(kinds, list) else [kinds]
    return "|".join(listed) if FLAT.issuperset(listed) else "any"


def _values(rule: Json) -> str:
    return "|".join(map(_json, rule["enum"] if "enum" in rule else [rule["const"]]))


def _alternatives(rule: Json, root: Json, depth: int, describe: _Describe) -> str:
    choices = next((rule[key] for key in ("anyOf", "oneOf") if key in rule), ())
    return "|".join(dict.fromkeys(_type(each, root, depth + 1, describe) for each in choices))


def _beside(rule: Json, root: Json, depth: int, describe: _Describe) -> str:
    """Return what the alternatives of an object add to its properties; nothing where they say what is required
    together."""
    several = _alternatives(rule, root, depth, describe)
    return "" if several in ("", "any", "object") else f" & ({several})"


def _named(kind: str, rule: Json, root: Json, depth: int, describe: _Describe) -> str:
    match kind:
        case "array":
            inner = _type(rule.get("items", {}), root, depth + 1, describe)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object" if rule.get("properties"):
            return _object(rule, root, depth + 1, describe)
        case _:
            return kind


def _merge_parts(rule: Json, root: Json) -> Json:
    """Return a rule with what its reference and all its parts (`allOf`) say: each keyword once, the first of them
    counts; what several say of a property is parts of it. Each reference is followed once, so this ends."""
    if PARTS.isdisjoint(rule):
        return rule
    merged: Json = {}
    properties: Json = {}
    required: list[str] = []
    for part in find_parts(rule, lambda ref: find_target(ref, root)):
        for name, each in part.get("properties", {}).items():
            known = properties.setdefault(name, each)
            if known != each:
                properties[name] = {"allOf": [known, each]}
        required += part.get("required", ())
        merged = {**part, **merged}
    own = {name: value for name, value in merged.items() if name not in PARTS}
    return {**own, **({"properties": properties} if "properties" in own else {}), "required": required}


def _object(rule: Json, root: Json, depth: int, describe: _Describe) -> str:
    required = set(rule.get("required", ()))
    parts = [
        _argument(name, each, name in required, root, depth, describe) for name, each in rule["properties"].items()
    ]
    return "{" + ", ".join(parts) + "}"


def find_target(ref: str, root: Json) -> Any:
    """Return what a local reference points to; {} when there is nothing."""
    target: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        key = unescape(part)
        target = target.get(key, {}) if isinstance(target, dict) and part else target
    return target


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
