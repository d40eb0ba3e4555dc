"""A value that a JSON Schema describes. Pure."""

from typing import Any

from agent_core.prompts.tools import find_target
from utools.schema.compiled import compile_schema

TEXTS = ("Lisbon", "17", "2026-01-31", "ann@example.com", "https://example.com/17", "a")
"""Texts of which one fits most patterns and formats."""
NUMBER = 2
DEEPEST = 8
OF_TEXTS = ("type", "pattern", "minLength", "maxLength", "format")


def sample(rule: Any, root: Any = None, depth: int = 0) -> Any:
    """The schema's own example, else a value of its type with what it requires. Nobody checks that it is allowed."""
    root = rule if root is None else root
    if not isinstance(rule, dict) or depth > DEEPEST:
        return TEXTS[0]
    if "$ref" in rule:
        return sample(find_target(rule["$ref"], root), root, depth + 1)
    for key in ("examples", "enum"):
        if rule.get(key):
            return rule[key][0]
    for key in ("const", "default"):
        if rule.get(key) is not None:
            return rule[key]
    for key in ("anyOf", "oneOf", "allOf"):
        if rule.get(key) and "properties" not in rule:
            return sample(rule[key][0], root, depth + 1)
    kinds = rule.get("type", "object" if "properties" in rule else "string")
    return _sample_of(kinds[0] if isinstance(kinds, list) else kinds, rule, root, depth)


def _sample_of(kind: str, rule: Any, root: Any, depth: int) -> Any:
    match kind:
        case "object":
            properties = rule.get("properties", {})
            one: dict[str, Any] = next(iter(rule.get("anyOf") or rule.get("oneOf") or ()), {})
            names = [*rule.get("required", ()), *one.get("required", ())]
            return {name: sample(properties.get(name), root, depth + 1) for name in names}
        case "array":
            return [sample(rule.get("items"), root, depth + 1)] * max(1, rule.get("minItems", 1))
        case "integer" | "number":
            return (
                rule.get("maximum", NUMBER)
                if rule.get("maximum", NUMBER) < NUMBER
                else max(NUMBER, rule.get("minimum", 0))
            )
        case "boolean":
            return True
        case "null":
            return None
        case _:
            checks = compile_schema({key: rule[key] for key in OF_TEXTS if key in rule})
            return next((text for text in TEXTS if not checks.faults(text)), TEXTS[0])
