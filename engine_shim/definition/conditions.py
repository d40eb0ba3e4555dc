"""A JMESPath expression beside what is known of its data: the names in it that there cannot be. Pure."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from utools.schema.value_shape import ANYTHING, Shape

IN_TURN = ("subexpression", "pipe", "index_expression")
"""Each part reads what the one before it has found."""
TOGETHER = ("comparator", "and_expression", "or_expression", "not_expression", "multi_select_list", "multi_select_dict")
"""Each part reads the same value."""
MEANT = "did you mean"
BARE_NULL, BARE_BOOLEANS = "null", ("true", "false")
"""Values that somebody may write without backticks: then they are names. What has no such name gives null."""


class _Found(NamedTuple):
    """A value on the way: what it may be, and the names that lead to it."""

    shape: Shape
    path: tuple[str, ...] = ()


_UNKNOWN = _Found(ANYTHING)


def absent_names(tree: Any, data: Shape) -> Iterator[str]:
    """Yield what is wrong with each name in an expression's tree that data of this shape cannot have."""
    reader = _Reader()
    with suppress(RecursionError):  # it is too deep to be evaluated, or nearly so
        reader.read(tree, _Found(data))
    yield from dict.fromkeys(reader.absent)


class _Reader:
    """Follows an expression through the shapes of its values. What a projection or a function gives is not known."""

    def __init__(self) -> None:
        self.absent: list[str] = []

    def read(self, tree: Any, value: _Found) -> _Found:
        """Return what the tree finds in the value."""
        kind, children = tree["type"], tree["children"]
        match kind:
            case "field":
                return self._read_field(tree["value"], value)
            case "identity" | "current" | "slice":
                return value
            case "index":
                return _items_of(value, f"{tree['value']}")
            case _ if kind in IN_TURN:
                for child in children:
                    value = self.read(child, value)
                return value
            case "projection" | "filter_projection":
                items = _items_of(self.read(children[0], value), "*")
                for child in children[1:]:
                    self.read(child, items)
            case "value_projection" | "flatten" | "key_val_pair":
                self.read(children[0], value)
            case "function_expression":
                for child in children:
                    if child["type"] != "expref":
                        self.read(child, value)
            case _ if kind in TOGETHER:
                for child in children:
                    self.read(child["children"][0] if child["type"] == "key_val_pair" else child, value)
            case _:
                pass
        return _UNKNOWN

    def _read_field(self, name: str, value: _Found) -> _Found:
        found = value.shape.at(name)
        if found.is_empty and (value.path or name != BARE_NULL):
            self.absent.append(_describe_absent(name, value))
        if found.is_empty:
            return _UNKNOWN
        return _Found(found, (*value.path, name))


def _describe_absent(name: str, value: _Found) -> str:
    if value.path:
        return f"there is no {name!r} in {'.'.join(value.path)}{value.shape.describe(name)}"
    if name in BARE_BOOLEANS:
        return f"there is no {name!r} here: write the value in backticks, `{name}`"
    known = value.shape.describe(name)
    return f"there is no {name!r} here{known}{'' if MEANT in known else f'; a text is written {name!r}'}"


def _items_of(value: _Found, index: str) -> _Found:
    items = value.shape.items()
    return _UNKNOWN if items.is_empty else _Found(items, (*value.path, index))
