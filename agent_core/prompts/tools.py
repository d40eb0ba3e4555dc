"""The tool section of a prompt: code, first sentence of the description, arguments as a short signature. Pure.

An argument without a type is a text, as most are.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from agent_core.effects import Json
from agent_core.policy import Policies
from agent_core.words.catalogue import ENGLISH, Words
from utools.schema.pointer import unescape


def tool_definitions(tools: Policies, words: Words = ENGLISH) -> str:
    """One line for each tool, without what the author set."""
    lines = [
        f"- {code}({_arguments(tool['visible'])}): {first_sentence(tool['description'])}"
        for code, tool in tools.items()
    ]
    return "\n".join(lines) or words.no_definitions


def first_sentence(text: str) -> str:
    """The first sentence of a description, on one line."""
    flat = " ".join(text.split())
    return re.split(r"(?<=[.!?。！？])\s|(?<=[。！？])", flat, maxsplit=1)[0]


def _arguments(schema: Json) -> str:
    required = set(schema.get("required", ()))
    properties: Mapping[str, Json] = schema.get("properties", {})
    parts = [_argument(name, rule, name in required, schema) for name, rule in properties.items()]
    return "{" + ", ".join(parts) + "}" if parts or "properties" in schema else _type(schema, schema)


def _argument(name: str, rule: Any, required: bool, root: Json) -> str:
    kind = _type(rule, root)
    signature = f"{name}{'' if required else '?'}" + ("" if kind == "string" else f": {kind}")
    description = rule.get("description") if isinstance(rule, dict) else None
    default = f" = {_json(rule['default'])}" if isinstance(rule, dict) and rule.get("default") is not None else ""
    return f"{signature}{default}" + (f" ({first_sentence(description).rstrip('.')})" if description else "")


def _type(rule: Any, root: Json, depth: int = 0) -> str:
    """A type as TypeScript would write it: models have seen much of it, and it is short."""
    if not isinstance(rule, dict) or depth > 4:
        return "any"
    if "$ref" in rule:
        return _type(find_target(rule["$ref"], root), root, depth + 1)
    for key in ("enum", "const"):
        if key in rule:
            return "|".join(map(_json, rule[key] if key == "enum" else [rule[key]]))
    for key in ("anyOf", "oneOf"):
        if key in rule:
            return "|".join(dict.fromkeys(_type(each, root, depth + 1) for each in rule[key]))
    kinds = rule.get("type", "object" if "properties" in rule else "any")
    return "|".join(_named(kind, rule, root, depth) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _named(kind: str, rule: Json, root: Json, depth: int) -> str:
    match kind:
        case "array":
            inner = _type(rule.get("items", {}), root, depth + 1)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object" if rule.get("properties"):
            required = set(rule.get("required", ()))
            fields = rule["properties"].items()
            return (
                "{"
                + ", ".join(f"{k}{'' if k in required else '?'}: {_type(v, root, depth + 1)}" for k, v in fields)
                + "}"
            )
        case _:
            return kind


def find_target(ref: str, root: Json) -> Any:
    """What a local reference points to; {} when there is nothing."""
    target: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        key = unescape(part)
        target = target.get(key, {}) if isinstance(target, dict) and part else target
    return target


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
