"""Schemas compiled once a process: the one cache, by a schema's JSON text. Pure."""

import json
from functools import lru_cache
from typing import Any

import orjson

from utools.schema.config_schema import ConfigSchema, Narrowing, json_text
from utools.schema.validation import Reading

MOST = 1024
"""Schemas of each kind that are cached."""


def compile_schema(schema: dict[str, Any], *, where: str = "", decimals: bool = True) -> ConfigSchema:
    """Return a record's schema, as it is written (`foreign`); `decimals` as there. DefinitionError, which names
    `where`, if it is not valid."""
    return _compile(orjson.dumps(schema), where, decimals)


def compile_narrowing(schema: dict[str, Any], reading: Reading = "strict", *, decimals: bool = True) -> Narrowing:
    """Return the same for what an author narrows."""
    return _compile_narrowing(orjson.dumps(schema), reading, decimals)


def prepare_schema(
    schema: dict[str, Any], *, foreign: bool = False, where: str = "", known_good: bool = False
) -> ConfigSchema:
    """Return the `ConfigSchema` of a tool, which all registries with the same tool share. DefinitionError as there."""
    text = json_text(schema) if isinstance(schema, dict) else None
    if text is None:
        return ConfigSchema(schema, foreign=foreign, where=where, known_good=known_good)
    return _prepare(text, foreign, where, known_good)


@lru_cache(MOST)
def _prepare(text: str, foreign: bool, where: str, known_good: bool) -> ConfigSchema:
    return ConfigSchema(json.loads(text), foreign=foreign, where=where, known_good=known_good)


@lru_cache(MOST)
def _compile(text: bytes, where: str, decimals: bool, /) -> ConfigSchema:
    return ConfigSchema(orjson.loads(text), foreign=True, where=where, is_recorded=True, decimals=decimals)


@lru_cache(MOST)
def _compile_narrowing(text: bytes, reading: Reading, decimals: bool, /) -> Narrowing:
    return Narrowing(orjson.loads(text), reading=reading, is_recorded=True, decimals=decimals)
