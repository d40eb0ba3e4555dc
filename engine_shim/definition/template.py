"""Placeholders: {{external.x}}, {{env.X}}, {{nodes.ID.path.to.value}}, {{run.id}}. Pure.

A value that is one whole placeholder keeps its JSON type; inside a text it is written as text, anything but a
text as JSON. What has been filled in is never looked at again. A name that is missing is an error that says which
names there are; behind one that ends in `?` it gives null, and nothing inside a text.

`{{'{{'}}` stands for two braces. A text under a key called `template` in which no name of ours stands belongs to a
language of its own, whose braces are left alone.

A secret stays as it is written, and a fill says where only the door puts its value: a text in a tool's output that
looks like a placeholder is none.
"""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from engine_shim.errors import DefinitionError

ROOTS = ("external", "env", "nodes", "run")
TEMPLATE = "template"
BRACES = "{{"
_PLACEHOLDER = re.compile(r"""\{\{((?:\s*(?:'\{\{'|"\{\{")\s*)|[^{}]*)\}\}""")
_BRACES = re.compile(r"""\s*['"]\{\{['"]\s*""")
_UNCLOSED = re.compile(rf"\{{\{{\s*(?:{'|'.join(ROOTS)})\.[^\s{{}}]*")
_PATH = re.compile(r"[^\s.{}?]+(\.[^\s.{}?]+)+\??")
_OURS = re.compile(rf"(?:{'|'.join(ROOTS)})(\.[^\s.{{}}?]+)+\??")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


class Placeholder(NamedTuple):
    """`path` starts with its root; an `optional` one may lead nowhere."""

    path: tuple[str, ...]
    optional: bool = False

    def __str__(self) -> str:
        return f"{{{{{'.'.join(self.path)}{'?' if self.optional else ''}}}}}"


@dataclass(frozen=True, slots=True)
class Names:
    """What placeholders are filled from, by root, and which of `env` are secrets.

    `fills` collects where those stand: {at, parts}, `at` being the keys and indices that lead to a text, `parts` its
    pieces, each a text or {"env": NAME}.
    """

    roots: Mapping[str, Any]
    secrets: AbstractSet[str] = frozenset()
    fills: list[dict[str, Any]] = field(default_factory=list)

    def render(self, value: Any, where: str = "", at: tuple[str | int, ...] = ()) -> Any:
        """`value` with every placeholder filled. DefinitionError says where one leads nowhere."""
        match value:
            case str():
                return self._text(value, where, at)
            case list():
                return [self.render(item, f"{where}/{index}", (*at, index)) for index, item in enumerate(value)]
            case dict():
                return {
                    key: item if is_foreign(key, item) else self.render(item, f"{where}/{key}", (*at, key))
                    for key, item in value.items()
                }
            case _:
                return value

    def _text(self, text: str, where: str, at: tuple[str | int, ...]) -> Any:
        _check_closed(text, where)
        found = list(_PLACEHOLDER.finditer(text))
        if not found:
            return text
        read = [_read(each[1], where) for each in found]
        if any(self._secret(each) for each in read):
            return self._around_secrets(text, where, at)
        if len(found) == 1 and found[0].span() == (0, len(text)) and read[0] is not None:
            return look_up(read[0], self.roots, where)
        return _PLACEHOLDER.sub(lambda each: self._inside(_read(each[1], where), where), text)

    def _inside(self, each: Placeholder | None, where: str) -> str:
        if each is None:
            return BRACES
        value = look_up(each, self.roots, where)
        return "" if value is None and each.optional else _as_text(value)

    def _secret(self, each: Placeholder | None) -> bool:
        return each is not None and each.path[0] == "env" and each.path[1] in self.secrets

    def _around_secrets(self, text: str, where: str, at: tuple[str | int, ...]) -> str:
        """The text with its secrets as they are written, and a fill for it."""
        parts: list[Any] = []
        end = 0
        for found in _PLACEHOLDER.finditer(text):
            each = _read(found[1], where)
            parts += [text[end : found.start()]]
            parts += [{"env": each.path[1]} if each and self._secret(each) else self._inside(each, where)]
            end = found.end()
        parts = [part for part in [*parts, text[end:]] if part]
        self.fills.append({"at": list(at), "parts": parts})
        return "".join(part if isinstance(part, str) else f"{{{{env.{part['env']}}}}}" for part in parts)


def render(value: Any, roots: Mapping[str, Any], *, where: str = "") -> Any:
    """`value` with every placeholder filled from `roots`, where there are no secrets."""
    return Names(roots).render(value, where)


def placeholders(value: Any, where: str = "") -> Iterator[tuple[str, Placeholder]]:
    """Every placeholder with its place; DefinitionError for one that cannot be read."""
    match value:
        case str():
            _check_closed(value, where)
            read = (_read(found[1], where) for found in _PLACEHOLDER.finditer(value))
            yield from ((where, each) for each in read if each is not None)
        case list():
            for index, item in enumerate(value):
                yield from placeholders(item, f"{where}/{index}")
        case dict():
            for key, item in value.items():
                if not is_foreign(key, item):
                    yield from placeholders(item, f"{where}/{key}")


def is_foreign(key: str, value: Any) -> bool:
    """Whether a value is a template of another language, in which nothing is to be filled."""
    return key == TEMPLATE and isinstance(value, str) and not _ours(value)


def half_filled(value: Any) -> str | None:
    """A placeholder within a template, where what is filled in would be read as a part of it; None if there is none."""
    ours = _ours(value) if isinstance(value, str) else []
    return ours[0] if ours and ours[0] != value.strip() else None


def _ours(text: str) -> list[str]:
    return [found[0] for found in _PLACEHOLDER.finditer(text) if _OURS.fullmatch(found[1].strip())]


def _check_closed(text: str, where: str) -> None:
    """Braces are free to stand in a text, but not those of a placeholder that somebody forgot to close."""
    if unclosed := _UNCLOSED.search(_PLACEHOLDER.sub("", text)):
        raise DefinitionError("this placeholder is not closed by }}", where=where, value=unclosed[0])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _read(inner: str, where: str) -> Placeholder | None:
    """What stands between the braces; None for the braces themselves, in quotes."""
    if _BRACES.fullmatch(inner):
        return None
    text = inner.strip()
    if not _PATH.fullmatch(text):
        message = "no placeholder: write {{external.NAME}}, {{env.NAME}}, {{nodes.ID.PATH}} or {{run.id}}"
        message += ", and {{'{{'}} for braces"
        raise DefinitionError(message, where=where, value=f"{{{{{inner}}}}}")
    path = tuple(text.removesuffix("?").split("."))
    if path[0] not in ROOTS:
        message = f"a placeholder starts with one of {', '.join(ROOTS)}"
        raise DefinitionError(message, where=where, value=f"{{{{{text}}}}}")
    return Placeholder(path, text.endswith("?"))


def look_up(each: Placeholder, names: Mapping[str, Any], where: str) -> Any:
    """The value that a placeholder leads to. DefinitionError, with the names that there are, if it must be there."""
    value: Any = names
    for depth, part in enumerate(each.path):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        elif each.optional:
            return None
        else:
            above = ".".join(each.path[:depth]) or "here"
            raise DefinitionError(f"there is no {part!r} in {above}; {_names(value)}", where=where, value=str(each))
    return value


def _names(value: Any) -> str:
    match value:
        case Mapping():
            return f"there are {', '.join(sorted(map(str, value)))}" if value else "it is empty"
        case list():
            return f"it has {len(value)} items, counted from 0"
        case _:
            return "it is a plain value"
