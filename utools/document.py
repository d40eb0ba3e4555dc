"""A YAML or JSON file as plain JSON values, with the line on which each of them stands."""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from utools.errors import DefinitionError
from utools.files.protected_paths import protect
from utools.jsonvalue import NotJson, as_json
from utools.schema.faults import hint

try:
    from yaml import CSafeLoader as Fastest
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as Fastest  # type: ignore[assignment]

LARGEST = 100_000
"""How many values a document may stand for, its aliases written out; or as many as it has characters."""
EXACT = 2**17
"""Characters up to which a YAML document is read by the loader that tells faults best."""
WITH_LINES = 2**20
"""Characters up to which a JSON document is read a second time, for its lines."""
Place = tuple[str | int, ...]
TOLD = {"missing": "this key is required", "extra_forbidden": "unknown key"}


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values, and where they stand."""

    path: Path
    data: Any
    lines: Mapping[Place, int] = field(default_factory=dict, repr=False)

    def where(self, place: Iterable[str | int] = ()) -> str:
        """`file:line: a/b`, by the nearest line that is known."""
        full = tuple(place)
        near = next((full[:end] for end in range(len(full), -1, -1) if full[:end] in self.lines), None)
        file = str(self.path) if near is None else f"{self.path}:{self.lines[near]}"
        return f"{file}: {'/'.join(map(str, full))}" if full else file

    def error(self, message: str, place: Iterable[str | int] = (), **value: Any) -> DefinitionError:
        """What is wrong at a place of this file."""
        return DefinitionError(message, where=self.where(place), **value)

    def refused(self, error: ValidationError, above: Place, keys: Callable[[Place], Iterable[str]]) -> DefinitionError:
        """What pydantic found below a place, each fault with its line; `keys` names the keys that there are there."""
        found = [self._fault((*above, *each["loc"]), each, keys) for each in error.errors(include_url=False)]
        others = "".join(f"\n{each}" for each in found[1:])
        return DefinitionError(found[0].message + others, where=found[0].where)

    def _fault(self, place: Place, fault: Any, keys: Callable[[Place], Iterable[str]]) -> DefinitionError:
        text = TOLD.get(fault["type"], fault["msg"].removeprefix("Value error, "))
        if fault["type"] == "extra_forbidden":
            text += f"; {hint(str(place[-1]), keys(fault['loc']))}"
        got = "" if fault["type"] in TOLD or isinstance(fault["input"], dict) else f" (got {fault['input']!r:.80})"
        return self.error(text + got, place)


def read_document(path: Path, what: str) -> Document:
    """The values that a file holds, which no tool writes from then on.

    DefinitionError, with `what` the file is and where, when it cannot be read.
    """
    protect(path)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise DefinitionError(f"{what} cannot be read: {reason}", where=str(path)) from None
    try:
        data, lines = _from_json(text, path) if path.suffix == ".json" else _from_yaml(text, path)
        return Document(path, as_json(data), lines)
    except NotJson as error:
        raise DefinitionError(f"a value is not JSON: {error}", where=str(path)) from None
    except RecursionError:
        raise DefinitionError("nested too deeply", where=str(path)) from None


def _from_json(text: str, path: Path) -> tuple[Any, dict[Place, int]]:
    try:
        data = json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise DefinitionError(f"not valid JSON: {error.msg}", where=place, value=_line(text, error.lineno)) from None
    except ValueError as error:
        raise DefinitionError(f"not valid JSON: {error}", where=str(path)) from None
    if len(text) > WITH_LINES:
        return data, {}
    try:
        node = yaml.compose(text, Loader=_Fast)
    except (yaml.YAMLError, ValueError):  # what JSON allows and YAML does not, such as tabs: then without lines
        return data, {}
    return data, dict(_lines(node, ()))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _from_yaml(text: str, path: Path) -> tuple[Any, dict[Place, int]]:
    try:
        loader = (_Exact if len(text) <= EXACT else _Fast)(text)
        node = loader.get_single_node()
        most = max(LARGEST, len(text))
        if node is not None and _size(node, {}, most) > most:
            raise DefinitionError(f"its aliases stand for more than {most} values", where=str(path))
        lines = dict(_lines(node, ()))
        return (None if node is None else loader.construct_document(node)), lines
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


def _lines(node: yaml.Node | None, place: Place) -> Iterator[tuple[Place, int]]:
    """The line of each value; that of a key where there is one."""
    if node is None:
        return
    if not place:
        yield place, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*place, str(key.value)), key.start_mark.line + 1
            yield from _lines(value, (*place, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*place, index), value.start_mark.line + 1
            yield from _lines(value, (*place, index))


def _size(node: yaml.Node, known: dict[int, int], most: int) -> int:
    """How many values a node stands for; one that is an alias of what it stands in has no end."""
    if id(node) not in known:
        known[id(node)] = most + 1
        inner = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            inner = [each for pair in node.value for each in pair]
        known[id(node)] = 1 + sum(_size(each, known, most) for each in inner)
    return known[id(node)]


class _AsJson:
    """YAML as JSON reads it: `no`, `on`, dates and times are texts, and no key stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    told = f"the key {key.value!r} stands twice"
                    raise yaml.MarkedYAMLError(problem=told, problem_mark=key.start_mark)
                seen.add(key.value)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)  # type: ignore[misc]
        return found


class _Exact(_AsJson, yaml.SafeLoader):
    """Says of a fault exactly where it stands."""


class _Fast(_AsJson, Fastest):
    """Reads ten times as fast."""


_Exact.yaml_implicit_resolvers = {}
_Fast.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-0123456789"),
    ("merge", r"<<", "<"),
):
    for _loader in (_Exact, _Fast):
        _loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), list(_first))
