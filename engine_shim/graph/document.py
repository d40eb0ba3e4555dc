"""A JSON or YAML file as plain JSON values; whatever is wrong with its text is told with its line."""

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from engine_shim.errors import DefinitionError
from utools.jsonvalue import NotJson, as_json

LARGEST = 100_000
"""How many values a document may stand for, its aliases written out."""


def read_document(path: Path, what: str) -> Any:
    """The values that a file holds. DefinitionError, with `what` the file is and where, when it cannot be read."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise DefinitionError(f"{what} cannot be read: {reason}", where=str(path)) from None
    try:
        return as_json(_from_json(text, path) if path.suffix == ".json" else _from_yaml(text, path))
    except NotJson as error:
        raise DefinitionError(f"a value is not JSON: {error}", where=str(path)) from None
    except RecursionError:
        raise DefinitionError("nested too deeply", where=str(path)) from None


def _from_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise DefinitionError(f"not valid JSON: {error.msg}", where=place, value=_line(text, error.lineno)) from None
    except ValueError as error:
        raise DefinitionError(f"not valid JSON: {error}", where=str(path)) from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _from_yaml(text: str, path: Path) -> Any:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > LARGEST:
            raise DefinitionError(f"its aliases stand for more than {LARGEST} values", where=str(path))
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        place = f"{path}:{line}:{mark.column + 1}" if mark else str(path)
        told = f"not valid YAML: {error.problem or error.context}"
        raise DefinitionError(told, where=place, value=_line(text, line)) from None
    except yaml.YAMLError as error:
        raise DefinitionError(f"not valid YAML: {str(error).splitlines()[0]}", where=str(path)) from None


def _line(text: str, number: int) -> str:
    return text.split("\n")[number - 1].strip() if number <= text.count("\n") + 1 else ""


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for; one that is an alias of what it stands in has no end."""
    if id(node) not in known:
        known[id(node)] = LARGEST + 1
        inner = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            inner = [each for pair in node.value for each in pair]
        known[id(node)] = 1 + sum(_size(each, known) for each in inner)
    return known[id(node)]


class _Loader(yaml.SafeLoader):
    """YAML as JSON reads it: `no`, `on`, dates and times are texts, and no key stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), list(_first))
