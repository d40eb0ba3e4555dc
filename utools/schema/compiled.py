"""Schemas compiled once a process: the one cache, by a schema's JSON text. Pure."""

from functools import lru_cache
from typing import Any

import orjson

from utools.schema.config_schema import ConfigSchema, Narrowing
from utools.schema.validation import Reading

MOST = 1024
"""Schemas of each kind that are cached."""


def compile_schema(schema: dict[str, Any], *, where: str = "") -> ConfigSchema:
    """Return a record's schema, as it is written (`foreign`). DefinitionError, which names `where`, if it is not
    valid."""
    return _compile(orjson.dumps(schema), where)


def compile_narrowing(schema: dict[str, Any], reading: Reading = "strict") -> Narrowing:
    """Return the same for what an author narrows."""
    return _compile_narrowing(orjson.dumps(schema), reading)


@lru_cache(MOST)
def _compile(text: bytes, where: str) -> ConfigSchema:
    return ConfigSchema(orjson.loads(text), foreign=True, where=where, is_recorded=True)


@lru_cache(MOST)
def _compile_narrowing(text: bytes, reading: Reading) -> Narrowing:
    return Narrowing(orjson.loads(text), reading=reading, is_recorded=True)
