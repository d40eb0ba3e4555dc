"""A YAML or JSON file as plain JSON values, with the line of each of them."""

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from utools.errors import DefinitionError
from utools.files.protected_paths import protect
from utools.json_text import parse_json
from utools.lazy_pattern import lazy_compile
from utools.problems import Problem
from utools.schema.json_value import NotJson, as_json, round_integers
from utools.schema.model_faults import KnownKeys, Position, find_model_faults

try:
    from yaml import CSafeLoader as FastLoader
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as FastLoader  # type: ignore[assignment]

MOST_VALUES = 100_000
"""Values that a document may stand for, its aliases written out; or as many as it has characters."""
EXACT = 2**17
"""Characters up to which a YAML document is read by the loader with the clearest errors."""
UNQUOTED = lazy_compile(r"(?:^|[:\-\[,])\s*(\{\{[^{}]*\}\})")
"""A placeholder where YAML and JSON read an object."""
ADVICE = {
    "expected <block end>, but found '<scalar>'": "; a text with quotes in it must be in quotes of the other kind",
    "expected <block end>": "; its indentation differs from that of the lines that it belongs to",
    "found character '\\t'": "; a tab: write blanks in its place",
    "but found another document": "; a file holds one document",
    "mapping values are not allowed": "; a text with a colon and a blank must be in quotes",
}
"""What an author does about faults that the parser tells in words of its own."""
STRANGE = lazy_compile(r"^[\s-]*[\w.-]+(：)|^[ -]*([^\S \t\r\n]|[\u200b\ufeff])|[:,-]([^\S \t\r\n])|^\s*([－–—•])\s*\w")
"""A character of typesetting, or of another keyboard, where YAML and JSON read one of ASCII."""
STRANGE_IN_LINE = lazy_compile(r"[:\[{,]\s*([“”‘’＂＇])|[\[{][^\]}]*([，：；])")
"""One that a text may have as well, and that is told for the line of a fault alone."""
BLOCK = lazy_compile(r"[\s:-][|>][-+0-9]{0,2}\s*(?:#.*)?$")
"""The end of a line after which the deeper ones are text."""
ASCII = {"：": "':'", "；": "';'", "，": "','", **dict.fromkeys("“”‘’＂＇", "'\"'"), **dict.fromkeys("－–—•", "'-'")}
SEARCHED = 500
"""Characters of a line in which one is looked for."""
LINES_BEFORE = 3
"""Lines before that of a fault in which such a character may be its cause: the parser goes on, as with a text."""
TEXT = "tag:yaml.org,2002:str"
WITH_LINES = 2**20
"""Characters up to which a JSON document is read a second time, for its lines."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values, and the lines that they begin on."""

    path: Path
    data: Any
    lines: Mapping[Position, int] = field(default_factory=dict, repr=False)

    def where(self, position: Position = ()) -> str:
        """`file:line: a/b`, by the nearest line that is known."""
        line = self.line(position)
        file = str(self.path) if line is None else f"{self.path}:{line}"
        return f"{file}: {'/'.join(map(str, position))}" if position else file

    def line(self, position: Position) -> int | None:
        """Return the line of the value at a position, or of the nearest one above it whose line is known."""
        parents = (position[:end] for end in range(len(position), -1, -1))
        return next((self.lines[each] for each in parents if each in self.lines), None)

    def position(self, where: str) -> Position:
        """Return the position that `a/0/b` names, as far as there are values."""
        position: list[str | int] = []
        value = self.data
        for part in where.split("/"):
            if isinstance(value, dict) and part in value:
                position.append(part)
                value = value[part]
            elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                position.append(int(part))
                value = value[int(part)]
            else:
                break
        return tuple(position)

    def locate(self, problem: Problem) -> Problem:
        """Return a problem of these values with the file, and the line."""
        return replace(problem, file=str(self.path), line=self.line(self.position(problem.where)))

    def error(self, message: str, position: Position = (), **value: Any) -> DefinitionError:
        """Return what is wrong at a position in this file."""
        return DefinitionError(message, where=self.where(position), **value)

    def explain(self, error: ValidationError, above: Position, known_keys: KnownKeys) -> DefinitionError:
        """Return what pydantic found in the value at `above`, each fault with its line."""
        first, *others = (
            self.error(each.text, (*above, *each.position)) for each in find_model_faults(error, known_keys)
        )
        return DefinitionError("\n".join([first.message, *map(str, others)]), where=first.where)


def read_document(path: Path, what: str, *, foreign: bool = False) -> Document:
    """Return the values in a file, which no tool writes from then on.

    In a `foreign` one, integers that no journal holds are rounded. DefinitionError, with `what` the file is and where,
    when it cannot be read.
    """
    if path.exists():  # else everybody who asks for a name would leave it here
        protect(path)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        no_text = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "no file has such a name"
        reason = error.strerror if isinstance(error, OSError) else no_text
        raise DefinitionError(f"{what} cannot be read: {reason}", where=str(path)) from None
    return parse_document(text, path, foreign=foreign)


def parse_document(text: str, path: Path, *, foreign: bool = False) -> Document:
    """Return the values in a text: in JSON where the path ends so, else in YAML. DefinitionError says where it is
    neither."""
    try:
        data, lines = _read_json(text, path) if path.suffix == ".json" else _read_yaml(text, path)
        return Document(path, as_json(round_integers(data) if foreign else data), lines)
    except NotJson as error:
        raise DefinitionError(f"a value is not JSON: {error}", where=str(path)) from None
    except RecursionError:
        raise DefinitionError("nested too deeply", where=str(path)) from None
    except UnicodeEncodeError:
        raise DefinitionError("not UTF-8 text", where=str(path)) from None


def _read_json(text: str, path: Path) -> tuple[Any, dict[Position, int]]:
    try:
        data = parse_json(text)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        fault = f"not valid JSON: {error.msg}{_hints(text, error.lineno)}"
        raise DefinitionError(fault, where=where, value=_line_of(text, error.lineno)) from None
    except ValueError as error:
        raise DefinitionError(f"not valid JSON: {error}", where=str(path)) from None
    if len(text) > WITH_LINES:
        return data, {}
    try:
        node = yaml.compose(text, Loader=_FastYaml)
    except (yaml.YAMLError, ValueError):  # what JSON allows and YAML does not, such as tabs: then without lines
        return data, {}
    return data, dict(_find_lines(node, ()))


def _read_yaml(text: str, path: Path) -> tuple[Any, dict[Position, int]]:
    try:
        kind = _ExactYaml if len(text) <= EXACT else _FastYaml
        loader = kind(text)  # pyright: ignore[reportCallIssue]
        node = loader.get_single_node()
        most = max(MOST_VALUES, len(text))
        if node is not None and _count_values(node, {}, most) > most:
            raise DefinitionError(f"its aliases stand for more than {most} values", where=str(path))
        lines = dict(_find_lines(node, ()))
        return (None if node is None else loader.construct_document(node)), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        where = f"{path}:{line}:{mark.column + 1}" if mark else str(path)
        fault = f"not valid YAML: {error.problem or error.context}{_advice(error)}{_hints(text, line)}"
        raise DefinitionError(fault, where=where, value=_line_of(text, line)) from None
    except yaml.reader.ReaderError as error:
        found = int(error.character)  # its position is in bytes with one loader, and in characters with the other
        where = f"{path}:{text[: text.find(chr(found))].count(chr(10)) + 1}"
        fault = f"not valid YAML: the character U+{found:04X} may only be written as an escape"
        raise DefinitionError(fault, where=where) from None
    except (yaml.YAMLError, ValueError) as error:  # such as an integer of more digits than Python reads
        raise DefinitionError(f"not valid YAML: {str(error).splitlines()[0]}", where=str(path)) from None


def _advice(error: yaml.MarkedYAMLError) -> str:
    """Return where the part began that has no end, or what the parser's words mean to an author."""
    problem, began = error.problem or "", error.context_mark
    if "unexpected end of stream" in problem and began is not None:
        return f"; what begins at line {began.line + 1}, column {began.column + 1} is not closed"
    return next((advice for words, advice in ADVICE.items() if problem.startswith(words)), "")


def _line_of(text: str, number: int) -> str:
    return text.split("\n")[number - 1].strip() if number <= text.count("\n") + 1 else ""


def _hints(text: str, number: int) -> str:
    """Return what to do about a line with a placeholder that may be taken for an object, or with a strange character
    there or before."""
    found = UNQUOTED.search(_line_of(text, number))
    quoting = f'; a value that starts with {{{{ must be in quotes: "{found[1]}"' if found else ""
    lines = text.split("\n")[:number]
    for line in range(number, max(0, number - 1 - LINES_BEFORE), -1):
        if line < number and _is_text(lines[:line]):
            continue
        text = lines[line - 1][:SEARCHED]
        if strange := STRANGE.search(text) or (line == number and STRANGE_IN_LINE.search(text)) or None:
            mark = next(filter(None, strange.groups()))
            return f"{quoting}; line {line} has the character U+{ord(mark):04X} for {ASCII.get(mark, 'a blank')}"
    return quoting


def _is_text(lines: list[str]) -> bool:
    """Return whether the last of these lines is part of a text that began with `|` or `>`."""
    depth = _indent(lines[-1])
    for above in reversed(lines):
        if not depth:
            break
        if above.strip() and _indent(above) < depth:
            if BLOCK.search(above[-SEARCHED:]):
                return True
            depth = _indent(above)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _find_lines(node: yaml.Node | None, position: Position) -> Iterator[tuple[Position, int]]:
    """Yield the line of each value; that of its key where it has one."""
    if node is None:
        return
    if not position:
        yield position, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*position, str(key.value)), key.start_mark.line + 1
            yield from _find_lines(value, (*position, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*position, index), value.start_mark.line + 1
            yield from _find_lines(value, (*position, index))


def _count_values(node: yaml.Node, known: dict[int, int], most: int) -> int:
    """Return how many values a node stands for; more than `most` for one that contains itself by an alias."""
    if id(node) not in known:
        known[id(node)] = most + 1
        inner = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            inner = [each for pair in node.value for each in pair]
        known[id(node)] = 1 + sum(_count_values(each, known, most) for each in inner)
    return known[id(node)]


class _JsonTypes:
    """YAML with the types of JSON: `no`, `on`, dates and times are texts, and no key is doubled."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    doubled = f"the key {key.value!r} occurs twice"
                    raise yaml.MarkedYAMLError(problem=doubled, problem_mark=key.start_mark)
                seen.add(key.value)
                key.tag = TEXT  # `200:` is a key of JSON as well
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)  # type: ignore[misc]
        return found


class _ExactYaml(_JsonTypes, yaml.SafeLoader):
    """Gives the exact position of a fault."""


class _FastYaml(_JsonTypes, FastLoader):  # pyright: ignore[reportGeneralTypeIssues]
    """Reads ten times as fast."""


_ExactYaml.yaml_implicit_resolvers = {}
_FastYaml.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-0123456789"),
    ("merge", r"<<", "<"),
):
    for _loader in (_ExactYaml, _FastYaml):
        _loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), list(_first))
