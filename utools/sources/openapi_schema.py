"""Schemas of an OpenAPI document as JSON Schemas that need no document. Pure."""

from collections import deque
from collections.abc import Set
from typing import Any
from urllib.parse import unquote

from utools.errors import DefinitionError
from utools.schema.pointer import unescape
from utools.schema.shape import APPLICATORS

Schema = dict[str, Any]

NOT_JSON_SCHEMA = frozenset({"nullable", "discriminator", "xml", "externalDocs", "example", "deprecated"})
NAMING = frozenset({"required", "allOf"})
IN_PLACE = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "const"})
"""Keywords that judge null, too, whatever types are allowed beside them."""


def resolve(document: Any, reference: str, where: str = "") -> Any:
    """Return the value that a reference leads to. DefinitionError for one that leaves the document, or leads
    nowhere."""
    if not reference.startswith("#/"):
        outside = "only references inside the document (#/…) are followed; bundle its files into one first"
        raise DefinitionError(outside, where=where, value=reference)
    found = document
    for part in reference[2:].split("/"):
        key = unescape(part)
        if isinstance(found, dict) and key not in found:
            key = unescape(unquote(part))  # a fragment of a URL may be percent-encoded (RFC 6901, 6)
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise DefinitionError("this reference leads nowhere", where=where, value=reference) from None
    return found


def follow(document: Any, value: Any, where: str = "") -> Any:
    """Return a parameter, a body or a path; or the one that a reference in its stead leads to."""
    for _ in range(16):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            return value
        value = resolve(document, value["$ref"], where)
    raise DefinitionError("these references lead in a circle", where=where)


class Standalone:
    """Schemas of one document, with `nullable` of 3.0 as a type; their references lead to `definitions`."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._named: deque[str] = deque()
        """References whose definitions are not made yet: a chain of them may be longer than the stack."""
        self.definitions: dict[str, Any] = {}

    def convert(self, schema: Any) -> Any:
        """Return the schema, which needs nothing but `definitions`."""
        converted = self._convert(schema)
        while self._named:
            reference = self._named.popleft()
            self.definitions[self._names[reference]] = self._convert(resolve(self._document, reference))
        done = set[str]()
        for name in self.definitions:
            _break_circles(self.definitions, name, (), done)
        return converted

    def _convert(self, schema: Any, around: Set[str] = frozenset()) -> Any:
        """Return the schema in 3.1's keywords; `around` are the read-only properties that are named beside it."""
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref")
        read_only = around | self._read_only_names(schema, ()) if NAMING & schema.keys() else around
        converted: Schema = {
            key: self._convert_keyword(key, value, read_only)
            for key, value in schema.items()
            if key not in NOT_JSON_SCHEMA and not (key == "$ref" and isinstance(reference, str))
        }
        if isinstance(schema.get("discriminator"), dict) and "oneOf" in converted and "anyOf" not in converted:
            converted["anyOf"] = converted.pop("oneOf")  # a value tells which is meant, and may fit others too
        if isinstance(reference, str):
            converted["$ref"] = f"#/$defs/{self._define(reference)}"
        if isinstance(required := converted.get("required"), list):
            converted["required"] = [name for name in required if name not in read_only]
        return _allow_null(converted) if schema.get("nullable") is True else converted

    def _read_only_names(self, schema: Any, followed: tuple[str, ...]) -> set[str]:
        """Return the read-only properties of a schema, of what it refers to and of all of which it is."""
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if isinstance(reference, str) and reference not in followed:
            target = resolve(self._document, reference)
            return self._read_only_names(target, (*followed, reference))
        if not isinstance(schema, dict) or reference in followed:
            return set()
        properties, members = schema.get("properties"), schema.get("allOf")
        own = properties.items() if isinstance(properties, dict) else ()
        names = {name for name, each in own if self._is_read_only(each)}
        parts = members if isinstance(members, list) else ()
        return names.union(*(self._read_only_names(each, followed) for each in parts))

    def _is_read_only(self, schema: Any) -> bool:
        """Return whether a property is one of responses alone: that it is required does not hold for a request."""
        target = follow(self._document, schema)
        return any(isinstance(each, dict) and each.get("readOnly") is True for each in (schema, target))

    def _convert_keyword(self, key: str, value: Any, read_only: Set[str]) -> Any:
        shape = APPLICATORS.get(key, ("", False))[0]
        if shape == "one":
            return self._convert(value)
        if shape == "list" and isinstance(value, list):
            return [self._convert(each, read_only if key == "allOf" else frozenset()) for each in value]
        if shape == "map" and isinstance(value, dict):
            return {name: self._convert(each) for name, each in value.items()}
        return value

    def _define(self, reference: str) -> str:
        name = self._names.get(reference)
        if name is None:
            last = "".join(char if char.isalnum() else "_" for char in reference.rpartition("/")[2]) or "it"
            name = last if last not in self.definitions else f"{last}_{len(self.definitions)}"
            self._names[reference] = name
            self._named.append(reference)
            self.definitions[name] = True  # its name is taken, and its place
        return name


def _allow_null(schema: Schema) -> Schema:
    kind = schema.get("type")
    if not isinstance(kind, str) or not IN_PLACE.isdisjoint(schema):
        return {"anyOf": [schema, {"type": "null"}]}
    enum = schema.get("enum")
    values = {"enum": [*enum, None]} if isinstance(enum, list) and None not in enum else {}
    return {**schema, "type": [kind, "null"], **values}


def _break_circles(definitions: dict[str, Any], name: str, above: tuple[str, ...], done: set[str]) -> None:
    """Drop what would judge a value by the same definition again: a base that lists its kinds in `oneOf`, each of which
    is `allOf` the base."""
    schema = definitions[name]
    if name not in done and isinstance(schema, dict) and _leads_back(definitions, schema, (*above, name), done):
        del schema["$ref"]
    done.add(name)


def _leads_back(definitions: dict[str, Any], schema: Schema, within: tuple[str, ...], done: set[str]) -> bool:
    """Return whether a schema is a reference to a definition that it is judged within; those below are dropped."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in within:
        return True
    if name in definitions:
        _break_circles(definitions, name, within, done)
    for keyword in ("allOf", "anyOf", "oneOf"):
        members = schema.get(keyword)
        if not isinstance(members, list):
            continue
        kept = [
            each for each in members if not (isinstance(each, dict) and _leads_back(definitions, each, within, done))
        ]
        if len(kept) < len(members):
            schema[keyword] = kept
            if not kept or keyword != "allOf":
                del schema[keyword]
    return False
