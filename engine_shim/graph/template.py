"""Placeholders: {{external.x}}, {{env.X}}, {{nodes.ID.path.to.value}}, {{run.id}}. Pure.

A value that is one whole placeholder keeps its JSON type; inside a text it is written as text, anything but a
text as JSON. What has been filled in is never looked at again. A name that is missing is an error that says which
names there are.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from engine_shim.errors import DefinitionError

ROOTS = ("external", "env", "nodes", "run")
_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_UNCLOSED = re.compile(rf"\{{\{{\s*(?:{'|'.join(ROOTS)})\.[^\s{{}}]*")
_PATH = re.compile(r"[^\s.{}]+(\.[^\s.{}]+)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


def render(value: Any, names: Mapping[str, Any], *, where: str = "") -> Any:
    """`value` with every placeholder filled from `names`, whose keys are the roots. DefinitionError says where."""
    match value:
        case str():
            return _render_text(value, names, where)
        case list():
            return [render(item, names, where=f"{where}/{index}") for index, item in enumerate(value)]
        case dict():
            return {key: render(item, names, where=f"{where}/{key}") for key, item in value.items()}
        case _:
            return value


def placeholders(value: Any, where: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every placeholder as (place, path); DefinitionError for one that cannot be read."""
    match value:
        case str():
            _check_closed(value, where)
            for found in _PLACEHOLDER.finditer(value):
                yield where, _path(found[1], where)
        case list():
            for index, item in enumerate(value):
                yield from placeholders(item, f"{where}/{index}")
        case dict():
            for key, item in value.items():
                yield from placeholders(item, f"{where}/{key}")


def _render_text(text: str, names: Mapping[str, Any], where: str) -> Any:
    _check_closed(text, where)
    whole = _PLACEHOLDER.match(text)
    if whole and whole.end() == len(text):
        return look_up(_path(whole[1], where), names, where)
    return _PLACEHOLDER.sub(lambda found: _as_text(look_up(_path(found[1], where), names, where)), text)


def _check_closed(text: str, where: str) -> None:
    """Braces are free to stand in a text, but not those of a placeholder that somebody forgot to close."""
    if unclosed := _UNCLOSED.search(_PLACEHOLDER.sub("", text)):
        raise DefinitionError("this placeholder is not closed by }}", where=where, value=unclosed[0])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _path(inner: str, where: str) -> tuple[str, ...]:
    text = inner.strip()
    if not _PATH.fullmatch(text):
        told = "no placeholder: write {{external.NAME}}, {{env.NAME}}, {{nodes.ID.PATH}} or {{run.id}}"
        raise DefinitionError(told, where=where, value=f"{{{{{inner}}}}}")
    path = tuple(text.split("."))
    if path[0] not in ROOTS:
        told = f"a placeholder starts with one of {', '.join(ROOTS)}"
        raise DefinitionError(told, where=where, value=f"{{{{{text}}}}}")
    return path


def look_up(path: tuple[str, ...], names: Mapping[str, Any], where: str) -> Any:
    """The value that a placeholder's path leads to; DefinitionError says which names there are instead."""
    value: Any = names
    for depth, part in enumerate(path):
        value = _step(value, part, path, depth, where)
    return value


def _step(value: Any, part: str, path: tuple[str, ...], depth: int, where: str) -> Any:
    if isinstance(value, Mapping) and part in value:
        return value[part]
    if isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
        return value[int(part)]
    above, told = ".".join(path[:depth]) or "here", f"{{{{{'.'.join(path)}}}}}"
    raise DefinitionError(f"there is no {part!r} in {above}; {_names(value)}", where=where, value=told)


def _names(value: Any) -> str:
    match value:
        case Mapping():
            return f"there are {', '.join(sorted(map(str, value)))}" if value else "it is empty"
        case list():
            return f"it has {len(value)} items, counted from 0"
        case _:
            return "it is a plain value"
