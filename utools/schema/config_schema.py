"""ConfigSchema and Narrowing: a JSON Schema that reports every fault of a value. Pure.

`jsonschema` (Draft 2020-12) alone decides, but what is a multiple: that is told by the decimals that are written.
Nothing is coerced and nothing is fetched.
"""

import json
from collections.abc import Iterable
from functools import cached_property, lru_cache
from math import isfinite
from typing import Any

import orjson

from utools.errors import DefinitionError
from utools.schema.faults import Fault, faults
from utools.schema.json_value import NotJson, as_json
from utools.schema.linear_pattern import find_slow_pattern
from utools.schema.plainly_sound import is_plainly_sound
from utools.schema.pointer import escape, pointer_of
from utools.schema.shape import check_author_marks, check_references, close, is_marked, resolver
from utools.schema.validation import Reading, Validate, validation
from utools.words.catalogue import ENGLISH, Words

__all__ = ["ConfigSchema", "Fault", "Narrowing", "author_keys", "visible"]

Schema = dict[str, Any]
ANNOTATIONS = ("default", "examples", "example")


class ConfigSchema:
    """What a value must look like; `schema` is the schema in force.

    In a schema of our own making, an object that names properties refuses all others unless the schema says otherwise.
    A `foreign` schema is taken as it is written. An invalid schema, or a reference that leaves it, is a
    DefinitionError whose `where` is the given one plus a JSON pointer; so is a pattern without a bound on its time,
    unless the schema `is_recorded`: then it was loaded long ago. `known_good` skips these checks for schemas that a
    test has checked. Without `decimals`, 19.99 is no multiple of 0.01, as under earlier rules of comparison. The
    validator is built at first use.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        foreign: bool = False,
        where: str = "",
        known_good: bool = False,
        is_recorded: bool = False,
        decimals: bool = True,
    ) -> None:
        self._decimals = decimals
        try:
            self.schema = _copy_unshared(schema, where) if known_good else _checked_copy(schema, where, is_recorded)
            if not known_good:
                check_author_marks(self.schema, where=where)
            if not foreign:
                close(self.schema)
        except RecursionError:
            raise DefinitionError("this schema is nested too deeply", where=where) from None

    def faults(self, value: Any, words: Words = ENGLISH) -> list[Fault]:
        """Return what is wrong with `value`, the first 100 faults, in document order; empty when it is valid."""
        return self._validate(value, words)

    @cached_property
    def author_keys(self) -> frozenset[str]:
        """The properties that only the workflow's author or the host may set."""
        return author_keys(self.schema)

    @cached_property
    def _validate(self) -> Validate:
        return validation(self.schema, decimals=self._decimals)


class Narrowing:
    """A schema that narrows what a model may send, beyond the tool's own schema; unknown properties pass.

    It is stricter than JSON Schema, so that no value slips by: a `pattern` must match the whole string, or under a
    negation must match nowhere in it (`strict_keywords` says how). `reading` is how patterns are read, and `decimals`
    is as in a ConfigSchema; one that `is_recorded` may have a pattern without a bound on its time.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        where: str = "",
        reading: Reading = "strict",
        is_recorded: bool = False,
        decimals: bool = True,
    ) -> None:
        self._reading: Reading = reading
        self._decimals = decimals
        try:
            self.schema = _checked_copy(schema, where, is_recorded)
        except RecursionError:
            raise DefinitionError("this schema is nested too deeply", where=where) from None

    def faults(self, value: Any, words: Words = ENGLISH) -> list[Fault]:
        """Return what is wrong with `value`, the first 100 faults, in document order; empty when it is valid."""
        return self._validate(value, words)

    @cached_property
    def _validate(self) -> Validate:
        return validation(self.schema, reading=self._reading, decimals=self._decimals)


def visible(schema: Schema, hidden: Iterable[str]) -> Schema:
    """Return `schema` without the top-level properties `hidden`, which are not required either; the rest is shared.

    Whole examples are left out too: they may have hidden properties, and prompts are made from them. So are the
    definitions, where nothing that is left refers to one.
    """
    gone = frozenset(hidden)
    shown = {name: each for name, each in schema.items() if name not in ("examples", "$defs")}
    if "properties" in shown:
        shown["properties"] = {name: each for name, each in shown["properties"].items() if name not in gone}
    if "required" in shown:
        shown["required"] = [name for name in shown["required"] if name not in gone]
    definitions = schema.get("$defs")
    return {**shown, "$defs": definitions} if definitions is not None and "$ref" in str(shown) else shown


def author_keys(schema: Schema) -> frozenset[str]:
    """Return the top-level properties that only the workflow's author or the host may set (`"x-author": true`)."""
    properties = schema.get("properties", {})
    return frozenset(name for name, each in properties.items() if is_marked(each))


def _checked_copy(schema: Schema, where: str, is_recorded: bool) -> Schema:
    """Return a deep copy of a schema that is valid, refers to nothing outside of itself, and whose patterns have a
    bound on their time, unless it is recorded."""
    if not isinstance(schema, dict):
        raise DefinitionError("a schema must be a JSON object", where=where, value=schema)
    if not is_plainly_sound(schema) and (fault := _find_fault(schema)) is not None:
        raise DefinitionError(f"not a valid JSON Schema: {fault[1]}", where=where + fault[0])
    own = _copy_unshared(schema, where)
    if own != schema and (at := _find_not_finite(schema)) is not None:  # it became null
        raise DefinitionError(str(NotJson("number", at)), where=where)
    check_references(own, where=where)
    if not is_recorded and (slow := find_slow_pattern(own)) is not None:
        raise DefinitionError(slow[1], where=where + slow[0])
    return own


def _find_not_finite(value: Any, at: str = "") -> str | None:
    """Return where a number stands that JSON does not have: NaN, or an infinity. One that only says something about a
    value, such as a default, may be null as well."""
    match value:
        case float():
            return None if isfinite(value) else at
        case dict():
            inner = (
                _find_not_finite(each, f"{at}/{escape(name)}")
                for name, each in value.items()
                if name not in ANNOTATIONS
            )
        case list() | tuple():
            inner = (_find_not_finite(each, f"{at}/{index}") for index, each in enumerate(value))
        case _:
            return None
    return next((each for each in inner if each is not None), None)


def _find_fault(schema: Schema) -> tuple[str, str] | None:
    """Return where and why a schema is not valid, as jsonschema says; None for one that is."""
    text = json_text(schema)
    return _schema_fault(schema) if text is None else _schema_fault_of(text)


def json_text(schema: Schema) -> str | None:
    """Return the schema's JSON text; None if it holds what JSON does not, such as a tuple, which jsonschema refuses."""
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError):
        return None
    return text if json.loads(text) == schema else None


@lru_cache(1024)
def _schema_fault_of(text: str) -> tuple[str, str] | None:
    """Return the same by the schema's JSON text: a host checks the same few schemas again and again."""
    return _schema_fault(json.loads(text))


def _schema_fault(schema: Schema) -> tuple[str, str] | None:
    """Return where and why a schema is not valid; None for one that is."""
    from jsonschema import Draft202012Validator, SchemaError, ValidationError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        if not error.context:
            return pointer_of(error.absolute_path), error.message[:300]
        # several forms are allowed and none fits: name them
        (first, *_) = faults([ValidationError.create_from(error)], schema, resolver(schema))
        return first.pointer, first.message.removeprefix(first.pointer).strip().removesuffix(".")
    return None


def _copy_unshared(schema: Schema, where: str) -> Schema:
    """Return a deep copy as JSON has it, without shared parts: two places that were one object are closed and checked
    apart.

    DefinitionError for what no journal holds: integers beyond 64 bits, lone surrogates, objects of Python.
    """
    copied: Schema
    try:
        try:
            copied = orjson.loads(orjson.dumps(schema))
        except TypeError:
            copied = as_json(schema)  # keys of an enum are texts, too
    except NotJson as error:
        raise DefinitionError(str(error), where=where) from None
    return copied
