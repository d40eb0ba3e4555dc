"""Plain faults: what is wrong with a value, by keywords whose meaning leaves no doubt. Pure.

What a model gets wrong is most often a word or a type, or a key that is missing. To find that takes a hundredth of what
it takes to load jsonschema, which decides wherever a keyword is another one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from utools.schema.faults import Follow, Found, Path, missing, refused, unknown
from utools.schema.plain_fit import SAY_NOTHING, TYPES
from utools.schema.validation_pass import MOST
from utools.words.catalogue import Words


class Unclear(Exception):
    """Jsonschema has to decide."""


def find_plain_faults(schema: Any, value: Any, path: Path, follow: Follow, words: Words) -> Iterator[Found]:
    """Yield the faults of a value in the order in which jsonschema finds them. Unclear where it has to be asked."""
    if schema is True:
        return
    if not isinstance(schema, dict) or type(value) not in TYPES:
        raise Unclear
    for keyword, limit in schema.items():
        if keyword in SAY_NOTHING or not isinstance(value, CONCERNS.get(keyword, object)):
            continue
        if keyword in PASSES:
            if not PASSES[keyword](value, limit):
                yield refused(path, keyword, limit, value, words)
        elif keyword in LOOKS:
            yield from LOOKS[keyword](schema, limit, value, path, follow, words)
        else:
            raise Unclear


def _has_type(value: Any, limit: str | Sequence[str]) -> bool:
    allowed = (limit,) if isinstance(limit, str) else limit
    if not set(allowed).isdisjoint(TYPES[type(value)]):
        return True
    if type(value) is float and "integer" in allowed:
        raise Unclear
    return False


def _is_one_of(value: Any, options: Sequence[Any]) -> bool:
    """Texts and null alone are compared: 1 is 1.0, and true is not 1."""
    if not all(each is None or type(each) is str for each in options):
        raise Unclear
    return (value is None or type(value) is str) and value in options


def _look_into_properties(
    schema: Any, properties: Any, value: Any, path: Path, follow: Follow, words: Words
) -> Iterator[Found]:
    for name, inner in properties.items():
        if name in value:
            yield from find_plain_faults(inner, value[name], (*path, name), follow, words)


def _look_for_required(
    schema: Any, required: Any, value: Any, path: Path, follow: Follow, words: Words
) -> Iterator[Found]:
    return (missing(path, name, words) for name in required if name not in value)


def _look_for_unknown(schema: Any, inner: Any, value: Any, path: Path, follow: Follow, words: Words) -> Iterator[Found]:
    if "patternProperties" in schema:
        raise Unclear
    extras = [name for name in value if name not in schema.get("properties", {})]
    if inner is False:
        yield from unknown(extras[:MOST], value, schema, path, follow, words)
        return
    for name in extras:
        yield from find_plain_faults(inner, value[name], (*path, name), follow, words)


def _look_into_items(schema: Any, inner: Any, value: Any, path: Path, follow: Follow, words: Words) -> Iterator[Found]:
    if "prefixItems" in schema:
        raise Unclear
    for index, each in enumerate(value):
        yield from find_plain_faults(inner, each, (*path, index), follow, words)


def _look_beside(schema: Any, parts: Any, value: Any, path: Path, follow: Follow, words: Words) -> Iterator[Found]:
    for part in parts:
        yield from find_plain_faults(part, value, path, follow, words)


def _look_beside_names(
    schema: Any, parts: Any, value: Any, path: Path, follow: Follow, words: Words
) -> Iterator[Found]:
    named = [part for name, part in parts.items() if name in value]
    return _look_beside(schema, named, value, path, follow, words)


def _look_for_branch(
    schema: Any, branches: Any, value: Any, path: Path, follow: Follow, words: Words
) -> Iterator[Found]:
    """Which of several branches was meant, jsonschema's errors tell."""
    if all(any(True for _ in find_plain_faults(each, value, path, follow, words)) for each in branches):
        raise Unclear
    yield from ()


Look = Callable[[Any, Any, Any, Path, Follow, Words], Iterator[Found]]
NUMBERS: Final = (int, float)
CONCERNS: Final[Mapping[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "dependentSchemas", "dependentRequired"), dict),
    **dict.fromkeys(("patternProperties", "propertyNames", "minProperties", "maxProperties"), dict),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), list),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), str),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), NUMBERS),
}
"""Keywords that say nothing of other types."""
PASSES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "type": _has_type,
    "enum": _is_one_of,
    "const": lambda value, limit: _is_one_of(value, [limit]),
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "minimum": lambda value, limit: isinstance(value, bool) or not value < limit,
    "maximum": lambda value, limit: isinstance(value, bool) or not value > limit,
    "exclusiveMinimum": lambda value, limit: isinstance(value, bool) or not value <= limit,
    "exclusiveMaximum": lambda value, limit: isinstance(value, bool) or not value >= limit,
}
"""Keywords that take a value or refuse it."""
LOOKS: Final[Mapping[str, Look]] = {
    "properties": _look_into_properties,
    "required": _look_for_required,
    "additionalProperties": _look_for_unknown,
    "items": _look_into_items,
    "allOf": _look_beside,
    "anyOf": _look_for_branch,
    "dependentSchemas": _look_beside_names,
}
"""Keywords that look into a value, or have others look at it."""
