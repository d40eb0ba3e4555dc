"""Schemas of an OpenAPI document as JSON Schemas that stand alone. Pure."""

from collections.abc import Callable
from typing import Any

from utools.errors import DefinitionError
from utools.schema.pointer import unescape
from utools.schema.shape import APPLICATORS

Schema = dict[str, Any]

NOT_JSON_SCHEMA = frozenset({"nullable", "discriminator", "xml", "externalDocs", "example", "deprecated"})
BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def resolved(document: Any, reference: str, where: str) -> Any:
    """What a reference within the document leads to. DefinitionError for one that leaves it, or leads nowhere."""
    if not reference.startswith("#/"):
        told = "only references inside the document (#/…) are followed"
        raise DefinitionError(told, where=where, value=reference)
    found = document
    for part in reference[2:].split("/"):
        key = unescape(part)
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise DefinitionError("this reference leads nowhere", where=where, value=reference) from None
    return found


def followed(document: Any, value: Any, where: str) -> Any:
    """A parameter, a body or a path, where a reference to one may stand."""
    for _ in range(16):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            return value
        value = resolved(document, value["$ref"], where)
    raise DefinitionError("these references lead in a circle", where=where)


class Standalone:
    """Schemas of one document, 3.0's words made 3.1's; their references lead to `definitions`."""

    def __init__(self, document: Any, where: str) -> None:
        self._document, self._where = document, where
        self._names: dict[str, str] = {}
        self.definitions: dict[str, Any] = {}

    def schema(self, schema: Any) -> Any:
        """The schema, alone but for `definitions`."""
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref")
        made: Schema = {
            key: self._within(key, value)
            for key, value in schema.items()
            if key not in NOT_JSON_SCHEMA and not (key == "$ref" and isinstance(reference, str))
        }
        if isinstance(reference, str):
            made["$ref"] = f"#/$defs/{self._definition(reference)}"
        for exclusive, bound in BOUNDS.items():
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
                made[exclusive] = made.pop(bound)
        return _nullable(made) if schema.get("nullable") is True else made

    def _within(self, key: str, value: Any) -> Any:
        shape = APPLICATORS.get(key, ("", False))[0]
        each: Callable[[Any], Any] = self.schema
        if shape == "one":
            return each(value)
        if shape == "list" and isinstance(value, list):
            return [each(inner) for inner in value]
        if shape == "map" and isinstance(value, dict):
            return {name: each(inner) for name, inner in value.items()}
        return value

    def _definition(self, reference: str) -> str:
        name = self._names.get(reference)
        if name is None:
            last = "".join(char if char.isalnum() else "_" for char in reference.rpartition("/")[2]) or "it"
            name = last if last not in self.definitions else f"{last}_{len(self.definitions)}"
            self._names[reference] = name
            self.definitions[name] = True  # it may refer to itself
            self.definitions[name] = self.schema(resolved(self._document, reference, self._where))
        return name


def _nullable(schema: Schema) -> Schema:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [schema, {"type": "null"}]}
    enum = schema.get("enum")
    values = {"enum": [*enum, None]} if isinstance(enum, list) and None not in enum else {}
    return {**schema, "type": [kind, "null"], **values}
