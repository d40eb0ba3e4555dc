"""Schemas of elsewhere, in whatever draft of JSON Schema they were written, as schemas of Draft 2020-12. Pure.

A server is free to write the draft of its library, and patterns of JavaScript. What has one meaning is translated; what
cannot be checked here is left out and told, since the server judges its arguments itself.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urljoin

from utools.errors import DefinitionError
from utools.lazy_pattern import lazy_compile
from utools.schema.ecma_pattern import translate_pattern
from utools.schema.json_value import round_integers
from utools.schema.pointer import escape
from utools.schema.shape import APPLICATORS

Schema = dict[str, Any]
Say = Callable[[str], None]
IsLinear = Callable[[str], bool]
"""Whether a pattern is matched in bounded time; one that is not is not checked."""

BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
TEXTS: Final = frozenset({"title", "description", "format", "$comment", "$schema", "$anchor"})
FLAGS: Final = frozenset({"deprecated", "readOnly", "writeOnly", "uniqueItems"})
ANY_VALUE: Final = frozenset({"default", "const", "example"})
"""Keywords whose value may be null."""
TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
OTHER_NAMES: Final = {
    **dict.fromkeys(("str", "text", "char"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
    **dict.fromkeys(("dict", "map", "hashmap"), "object"),
    "none": "null",
}
NULL: Final = {"type": "null"}
OLD_INDEX: Final = lazy_compile(r"/items/(\d+)")


def _any_pattern(pattern: str) -> bool:
    return True


def read_arguments_schema(written: Any, is_linear: IsLinear = _any_pattern) -> tuple[Schema, list[str]]:
    """Return the schema of a tool's arguments, and what of it is not checked. DefinitionError where it describes none.

    Null, `{}`, `true` and an object without a type describe an object.
    """
    if written is None or written is True:
        return {"type": "object"}, []
    if not isinstance(written, dict):
        raise DefinitionError("its schema is no JSON object", value=written)
    schema, told = translate_schema({key: each for key, each in written.items() if key != "nullable"}, is_linear)
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise DefinitionError("its schema describes something else than an object of arguments", value=kind)
    return {**schema, "type": "object"}, told


def translate_schema(written: Schema, is_linear: IsLinear = _any_pattern) -> tuple[Schema, list[str]]:
    """Return the schema in Draft 2020-12, and what of it is not checked; itself where there is nothing to translate."""
    told: list[str] = []
    try:
        written = round_integers(written)
        places = _Identities(written)
        translated: Schema = _Translation(places, told.append, is_linear).convert(written, "")
    except RecursionError:  # compiling it says so
        return written, []
    return translated, told


class _Identities:
    """The schemas of a document that have an identity (`$id`, or `id` in draft 4), by its text."""

    def __init__(self, root: Schema) -> None:
        self.base = _identity(root) or ""
        self._pointers: dict[str, str] = {}
        self._index(root, "", self.base)
        if self.base:
            self._pointers[self.base.removesuffix("#")] = "#"

    def find(self, reference: str) -> str:
        """Return the reference as one inside the document, if it leads to a schema that is known here."""
        if reference.startswith("#") and (reference == "#" or reference.startswith("#/")):
            return reference
        full = urljoin(self.base, reference)
        document, _, fragment = full.partition("#")
        found = self._pointers.get(full) or self._pointers.get(document if document else full)
        if found is None:
            return reference
        return f"{found}{fragment}" if fragment.startswith("/") and full not in self._pointers else found

    def _index(self, schema: Any, pointer: str, base: str) -> None:
        for below, inner in _inner_schemas(schema):
            identity = _identity(inner)
            at, within = f"{pointer}{below}", base if identity is None else urljoin(base, identity)
            if identity is not None:
                self._pointers.setdefault(within, f"#{at}")
            self._index(inner, at, within)


class _Translation:
    """One schema and those within it."""

    def __init__(self, places: _Identities, say: Say, is_linear: IsLinear) -> None:
        self._places, self._say, self._is_linear = places, say, is_linear

    def convert(self, schema: Any, at: str) -> Any:
        if schema is None:
            return {}
        if not isinstance(schema, dict):
            return schema
        made: Schema = {}
        for key, value in schema.items():
            if (value is None and key not in ANY_VALUE) or (key in TEXTS and not isinstance(value, str)):
                continue
            if (key in FLAGS and not isinstance(value, bool)) or (key == "examples" and not isinstance(value, list)):
                continue
            made[key] = self._convert_keyword(key, value, f"{at}/{escape(key)}")
        self._move_old_keywords(schema, made, at)
        self._translate_patterns(made, at)
        if at and isinstance(made.get("$id"), str):
            del made["$id"]
        if made.pop("nullable", None) is True:
            _allow_null(made)
        return made

    def _convert_keyword(self, key: str, value: Any, at: str) -> Any:
        if key == "$ref" and isinstance(value, str):
            return self._places.find(value)
        shape = APPLICATORS.get(key, ("", False))[0]
        if shape == "one" and not isinstance(value, list):
            return self.convert(value, at)
        if (shape == "list" or key == "items") and isinstance(value, list):
            return [self.convert(each, f"{at}/{index}") for index, each in enumerate(value)]
        if shape == "map" and isinstance(value, dict):
            return {name: self.convert(each, f"{at}/{escape(name)}") for name, each in value.items()}
        return value

    def _move_old_keywords(self, schema: Schema, made: Schema, at: str) -> None:
        _name_types(made)
        if isinstance(made.get("items"), list):
            made["prefixItems"] = made.pop("items") or [True]
            if "additionalItems" in made:
                made["items"] = self.convert(made["additionalItems"], f"{at}/additionalItems")
        made.pop("additionalItems", None)
        for exclusive, bound in BOUNDS.items():
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
                made[exclusive] = made.pop(bound)
        dependencies = made.pop("dependencies", None)
        for name, each in dependencies.items() if isinstance(dependencies, dict) else ():
            if isinstance(each, list | str):
                names = each if isinstance(each, list) else [each]
                made.setdefault("dependentRequired", {})[name] = names
            else:
                inner = self.convert(each, f"{at}/dependencies/{escape(name)}")
                made.setdefault("dependentSchemas", {})[name] = inner
        if isinstance(made.get("$recursiveRef"), str):
            made.setdefault("$ref", made.pop("$recursiveRef"))
        made.pop("$recursiveAnchor", None)
        if "$ref" in made and isinstance(made["$ref"], str) and "/items/" in made["$ref"]:
            made["$ref"] = OLD_INDEX.sub(r"/prefixItems/\1", made["$ref"])
        _gather_required(schema, made)

    def _translate_patterns(self, made: Schema, at: str) -> None:
        if isinstance(pattern := made.get("pattern"), str):
            translated = self._translate(pattern)
            if translated is None:
                del made["pattern"]
                self._say(f"the pattern of {at or 'the whole'} is not checked here: {pattern[:80]!r}")
            else:
                made["pattern"] = translated
        if not isinstance(patterns := made.get("patternProperties"), dict):
            return
        readable = {self._translate(name): (name, each) for name, each in patterns.items()}
        if None in readable:  # the properties that it names are not refused for want of it
            self._say(f"the pattern of {at}/patternProperties is not checked here: {readable.pop(None)[0][:80]!r}")
            for closed in ("additionalProperties", "unevaluatedProperties"):
                made.pop(closed, None)
        made["patternProperties"] = {name: each for name, (_, each) in readable.items() if name is not None}

    def _translate(self, pattern: str) -> str | None:
        translated = translate_pattern(pattern)
        return translated if translated is not None and self._is_linear(translated) else None


def _identity(schema: Any) -> str | None:
    """Return the identity of a schema; none for one that has a property or an example of that name."""
    if not isinstance(schema, dict):
        return None
    found = schema.get("$id", schema.get("id"))
    return found if isinstance(found, str) else None


def _inner_schemas(schema: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        shape = "map" if key == "dependencies" else APPLICATORS.get(key, ("", False))[0]
        at = f"/{escape(key)}"
        if isinstance(value, list) and (shape == "list" or key == "items"):
            yield from ((f"{at}/{index}", each) for index, each in enumerate(value))
        elif shape == "map" and isinstance(value, dict):
            yield from ((f"{at}/{escape(name)}", each) for name, each in value.items())
        elif shape == "one":
            yield at, value


def _name_types(made: Schema) -> None:
    """Write types by their names; in a list, null is one, as YAML has it. `any`, and an empty list, allow every
    type."""
    kind = made.get("type")
    listed: list[Any] = ["null" if each is None else each for each in kind] if isinstance(kind, list) else [kind]
    if not all(isinstance(each, str) for each in listed):
        return
    names = list(dict.fromkeys(map(_type_name, listed)))
    if not names or "any" in names:
        del made["type"]
    else:
        made["type"] = names if isinstance(kind, list) else names[0]


def _type_name(written: str) -> str:
    lower = written.lower()
    return lower if lower in TYPES else OTHER_NAMES.get(lower, lower)


def _gather_required(schema: Schema, made: Schema) -> None:
    """`required` as the list of an object: draft 3 has it in each property, where other schemas have no flag."""
    listed = made.get("required")
    if isinstance(listed, bool):
        del made["required"]
    properties = schema.get("properties")
    flagged = [
        name
        for name, each in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(each, dict) and each.get("required") is True
    ]
    names = listed if isinstance(listed, list) else []
    if flagged or len(names) != len({str(each) for each in names}):
        made["required"] = list(dict.fromkeys([*map(str, names), *flagged]))
    if isinstance(properties, list) and not properties:  # an empty array of PHP
        made["properties"] = {}


def _allow_null(made: Schema) -> None:
    """Make null fit a schema as well, in place: references may lead into it."""
    kind = made.get("type")
    if isinstance(kind, str):
        made["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        made["type"] = [*kind, "null"]
    if made.get("const") is not None:
        made["enum"] = [made.pop("const"), None]
    elif isinstance(enum := made.get("enum"), list) and None not in enum:
        made["enum"] = [*enum, None]
    for keyword in ("anyOf", "oneOf"):
        if isinstance(choices := made.get(keyword), list):
            made[keyword] = [*choices, dict(NULL)]
    parts = made.get("allOf")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            _allow_null(part)
    if "$ref" in made:
        referred = {"anyOf": [{"$ref": made.pop("$ref")}, dict(NULL)]}
        made.update(referred if "anyOf" not in made else {"allOf": [*(parts or ()), referred]})
