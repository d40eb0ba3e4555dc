"""Placeholders: {{external.x}}, {{env.X}}, {{nodes.ID.path.to.value}}, {{run.id}}, {{run.messages}}. Pure.

A key that is no plain name is quoted: {{nodes.ID["a key"].x}}. It may hold everything but braces and its quotes.

In a node with `foreach`, {{item}}, {{item.path.to.value}} and {{index}} may be filled in as well.

A value that is one whole placeholder keeps its JSON type; inside a text it is written as text, or as JSON if it is
none. Values that were filled in are not searched again. A missing name is an error that lists the names there are; with
a `?` at its end the placeholder gives null instead, and nothing inside a text.

`{{'{{'}}` stands for two braces. A text under a key called `template` without a name of ours belongs to a language of
its own, whose braces are left alone.

The placeholder of a secret is left as it is, and a fill says where the executor puts its value: so a text in a tool's
output that looks like one is never filled.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from engine_shim.errors import DefinitionError
from utools.lazy_pattern import lazy_compile
from utools.near_names import near_names

ROOTS = ("external", "env", "nodes", "run")
ITEM_ROOTS = ("item", "index")
"""Roots in a node with `foreach`: the item of the list, and its number from 0."""
MOST = 256
"""Placeholders that are read once."""
TEMPLATE = "template"
BRACES = "{{"
_PLACEHOLDER = lazy_compile(r"""\{\{((?:\s*(?:'\{\{'|"\{\{")\s*)|[^{}]*)\}\}""")
_BRACES = lazy_compile(r"""\s*['"]\{\{['"]\s*""")
_UNCLOSED = lazy_compile(rf"""\{{\{{\s*(?:{"|".join(ROOTS)})(?:\.|\[["'])[^\s{{}}]*""")
_NAME = r"""(?:(?!\[["'])[^\s.{}?])+"""
_STEP = lazy_compile(rf"""\.({_NAME})|\["([^"{{}}]*)"\]|\['([^'{{}}]*)'\]""")
"""One step of a path: a name, or a key in either quotes."""
_PATH = lazy_compile(rf"({_NAME})((?:{_STEP.pattern})+)\??|({'|'.join(ITEM_ROOTS)})\??")
_UNQUOTED_PATH = lazy_compile(r"[^\s.{}?]+(\.[^\s.{}?]+)+\??")
"""A path under version 1 of the rules of flows: `["` was a part of a name."""
_OURS = lazy_compile(rf"(?:{'|'.join(ROOTS)})(\.[^\s.{{}}?]+)+\??")
"""A name of ours in a template: no quoted keys, since other languages have subscripts too."""
_INDEX = lazy_compile(r"0|[1-9][0-9]{0,17}")
_QUOTED_KEY = lazy_compile(r"""\["[^"]*"\]|\['[^']*'\]""")
_BRACKET = lazy_compile(r"""\[(?!["'])""")
PATH_ONLY = "a placeholder takes a path only: one item is items.0.name, and json_transform does a projection"


class Placeholder(NamedTuple):
    """A path from its root to a value, which may be missing if the placeholder is `optional`.

    `is_projection` says that it was meant for more than a path, as {{nodes.ID.items[*].name}} is.
    """

    path: tuple[str, ...]
    optional: bool = False
    is_projection: bool = False

    def __str__(self) -> str:
        return f"{{{{{write_path(self.path)}{'?' if self.optional else ''}}}}}"


def write_path(path: Sequence[str]) -> str:
    """Return a path as a placeholder has it."""
    return "".join([*path[:1], *map(_write_step, path[1:])])


def _write_step(key: str) -> str:
    if re.fullmatch(_NAME, key):
        return f".{key}"
    return f"['{key}']" if '"' in key else f'["{key}"]'


@dataclass(frozen=True, slots=True)
class Names:
    """The values of placeholders, by root, and which names of `env` are secrets.

    `fills` collects the places of secrets: {at, parts}. `at` are the keys and indices that lead to a text, `parts` its
    pieces, each a text or {"env": NAME}. `quoted` says whether keys may be quoted.
    """

    roots: Mapping[str, Any]
    secrets: AbstractSet[str] = frozenset()
    quoted: bool = True
    fills: list[dict[str, Any]] = field(default_factory=list)

    def render(self, value: Any, where: str = "", at: tuple[str | int, ...] = ()) -> Any:
        """`value` with every placeholder filled. DefinitionError names the place of one whose value is missing."""
        match value:
            case str():
                return self._fill_text(value, where, at)
            case list():
                return [self.render(item, f"{where}/{index}", (*at, index)) for index, item in enumerate(value)]
            case dict():
                return {
                    key: item if is_foreign(key, item) else self.render(item, f"{where}/{key}", (*at, key))
                    for key, item in value.items()
                }
            case _:
                return value

    def _fill_text(self, text: str, where: str, at: tuple[str | int, ...]) -> Any:
        _check_closed(text, where)
        found = list(_PLACEHOLDER.finditer(text))
        if not found:
            return text
        read = [self._read(each[1], where) for each in found]
        if any(self._is_secret(each) for each in read):
            return self._fill_around_secrets(text, where, at)
        if len(found) == 1 and found[0].span() == (0, len(text)) and read[0] is not None:
            return look_up(read[0], self.roots, where)
        return _PLACEHOLDER.sub(lambda each: self._text_of(self._read(each[1], where), where), text)

    def look_up(self, each: Placeholder) -> Any:
        """Return the value of a placeholder; of a secret its name alone."""
        return str(each) if self._is_secret(each) else look_up(each, self.roots, "")

    def _read(self, inner: str, where: str) -> Placeholder | None:
        return _read_placeholder(inner, where, quoted=self.quoted)

    def _text_of(self, each: Placeholder | None, where: str) -> str:
        if each is None:
            return BRACES
        value = look_up(each, self.roots, where)
        return "" if value is None and each.optional else _as_text(value)

    def _is_secret(self, each: Placeholder | None) -> bool:
        return each is not None and each.path[0] == "env" and each.path[1] in self.secrets

    def _fill_around_secrets(self, text: str, where: str, at: tuple[str | int, ...]) -> str:
        """Fill all but the secrets of a text, and add a fill for those."""
        parts: list[Any] = []
        end = 0
        for found in _PLACEHOLDER.finditer(text):
            each = self._read(found[1], where)
            parts += [text[end : found.start()]]
            parts += [{"env": each.path[1]} if each and self._is_secret(each) else self._text_of(each, where)]
            end = found.end()
        parts = [part for part in [*parts, text[end:]] if part]
        self.fills.append({"at": list(at), "parts": parts})
        return "".join(part if isinstance(part, str) else f"{{{{env.{part['env']}}}}}" for part in parts)


def render(value: Any, roots: Mapping[str, Any], *, where: str = "", quoted: bool = True) -> Any:
    """`value` with every placeholder filled from `roots`, which hold no secrets."""
    return Names(roots, quoted=quoted).render(value, where)


def placeholders(value: Any, where: str = "") -> Iterator[tuple[str, Placeholder]]:
    """Yield every placeholder with its place; DefinitionError for one that cannot be read."""
    for location, each in read_placeholders(value, where):
        if isinstance(each, DefinitionError):
            raise each
        yield location, each


def read_placeholders(value: Any, where: str = "") -> Iterator[tuple[str, Placeholder | DefinitionError]]:
    """Yield every placeholder with its place, or why it cannot be read."""
    for location, text in _texts_in(value, where):
        for unclosed in _find_unclosed(text):
            yield location, _explain_unclosed(unclosed, location)
        for found in _PLACEHOLDER.finditer(text):
            try:
                read = _read_placeholder(found[1], location)
            except DefinitionError as error:
                yield location, error
            else:
                if read is not None:
                    yield location, read


def _is_projection(inner: str) -> bool:
    """Return whether there is a bracket between the braces that is no part of a quoted key."""
    return _BRACKET.search(_QUOTED_KEY.sub("", inner)) is not None


def _texts_in(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield every text that may hold placeholders, with its place."""
    match value:
        case str():
            yield where, value
        case list():
            for index, item in enumerate(value):
                yield from _texts_in(item, f"{where}/{index}")
        case dict():
            for key, item in value.items():
                if not is_foreign(key, item):
                    yield from _texts_in(item, f"{where}/{key}")
        case _:
            pass


def split_text(text: str, *, quoted: bool = True) -> list[str | Placeholder]:
    """Return a text's own parts and its placeholders, in order."""
    parts: list[str | Placeholder] = []
    end = 0
    for found in _PLACEHOLDER.finditer(text):
        each = _read_placeholder(found[1], "", quoted=quoted)
        parts += [text[end : found.start()], BRACES if each is None else each]
        end = found.end()
    return [part for part in [*parts, text[end:]] if part]


def read_whole(text: str) -> Placeholder | None:
    """Return the placeholder that a text is as a whole, and whose value keeps its type; None for any other text."""
    found = _PLACEHOLDER.fullmatch(text)
    return None if found is None else _read_placeholder(found[1], "")


def is_foreign(key: str, value: Any) -> bool:
    """Return whether a value is a template of another language, in which nothing is filled."""
    return key == TEMPLATE and isinstance(value, str) and not _own_placeholders(value)


def find_placeholder_inside(value: Any) -> str | None:
    """Return a placeholder inside a template, which would read its value as a part of itself; None without one."""
    ours = _own_placeholders(value) if isinstance(value, str) else []
    return ours[0] if ours and ours[0] != value.strip() else None


def _own_placeholders(text: str) -> list[str]:
    return [found[0] for found in _PLACEHOLDER.finditer(text) if _OURS.fullmatch(found[1].strip())]


def _check_closed(text: str, where: str) -> None:
    """Refuse a placeholder that somebody forgot to close; other braces may be in a text."""
    for unclosed in _find_unclosed(text):
        raise _explain_unclosed(unclosed, where)


def _find_unclosed(text: str) -> list[str]:
    return [found[0] for found in _UNCLOSED.finditer(_PLACEHOLDER.sub("", text))]


def _explain_unclosed(unclosed: str, where: str) -> DefinitionError:
    return DefinitionError("this placeholder is not closed by }}", where=where, value=unclosed)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


@lru_cache(MOST)
def _read_placeholder(inner: str, where: str, *, quoted: bool = True) -> Placeholder | None:
    """Read what is between the braces; None for the braces themselves, in quotes."""
    if _BRACES.fullmatch(inner):
        return None
    text = inner.strip()
    path = _read_path(text) if quoted else _read_unquoted_path(text)
    if path is None and _is_projection(text):
        raise DefinitionError(PATH_ONLY, where=where, value=f"{{{{{inner}}}}}")
    if path is None:
        message = "no placeholder: write {{external.NAME}}, {{env.NAME}}, {{nodes.ID.PATH}} or {{run.id}}"
        message += """; a key with spaces or dots is written nodes.ID["a key"], and two braces {{'{{'}}"""
        raise DefinitionError(message, where=where, value=f"{{{{{inner}}}}}")
    if path[0] not in (*ROOTS, *ITEM_ROOTS):
        message = f"a placeholder starts with one of {', '.join(ROOTS)}"
        if near := near_names(path[0], ROOTS):
            message += f"; did you mean {near[0]}?"
        raise DefinitionError(message, where=where, value=f"{{{{{text}}}}}")
    return Placeholder(path, text.endswith("?"), _is_projection(text))


def _read_path(text: str) -> tuple[str, ...] | None:
    read = _PATH.fullmatch(text)
    if read is None:
        return None
    if read[1] is None:
        return (text.removesuffix("?"),)
    return (read[1], *("".join(step.groups("")) for step in _STEP.finditer(read[2])))


def _read_unquoted_path(text: str) -> tuple[str, ...] | None:
    return tuple(text.removesuffix("?").split(".")) if _UNQUOTED_PATH.fullmatch(text) else None


def look_up(each: Placeholder, names: Mapping[str, Any], where: str) -> Any:
    """Return the value of a placeholder. DefinitionError, with the names that there are, if it is missing and must not
    be."""
    value: Any = names
    for depth, part in enumerate(each.path):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        elif each.optional:
            return None
        else:
            above = write_path(each.path[:depth]) or "here"
            raise DefinitionError(
                f"there is no {part!r} in {above}; {_describe_names(value)}", where=where, value=str(each)
            )
    return value


def _describe_names(value: Any) -> str:
    match value:
        case Mapping():
            return f"there are {', '.join(sorted(map(str, value)))}" if value else "it is empty"
        case list():
            return f"it has {len(value)} items, counted from 0"
        case _:
            return "it is a plain value"
