"""A message whose fields and native function calls come in pieces. Pure."""

from typing import Any

import orjson

from agent_core.models.chat_reply import _text

GROWING = ("content", "reasoning_content", "reasoning", "refusal")
"""Texts that come in pieces. Of any other field the last value stands, and lists grow."""


class StreamedMessage:
    """The message so far."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._calls: list[_Call] = []

    def add(self, delta: dict[str, Any]) -> None:
        for name, value in delta.items():
            if name == "tool_calls" and isinstance(value, list):
                for piece in value:
                    if isinstance(piece, dict):
                        self._called(piece).add(piece)
            elif value is not None:
                text = _text(value) if name == "content" and isinstance(value, list) else value
                _grow(self._fields, name, text, GROWING)

    def whole(self) -> dict[str, Any]:
        """The message in the shape of one that came at once."""
        whole = {"role": "assistant", "content": None, **_joined(self._fields)}
        return {**whole, "tool_calls": [call.whole() for call in self._calls]} if self._calls else whole

    def _called(self, piece: dict[str, Any]) -> "_Call":
        """The call that a piece belongs to, the one last begun first."""
        for call in reversed(self._calls):
            if call.goes_on_with(piece):
                return call
        self._calls.append(_Call(piece.get("index")))
        return self._calls[-1]


class _Call:
    """One function call so far."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self._fields: dict[str, Any] = {}
        self._function: dict[str, Any] = {}

    def goes_on_with(self, piece: dict[str, Any]) -> bool:
        """OpenAI numbers the calls, and tells id and name once. Others tell them with each piece, or make up a new id
        for each, or send whole calls without a number, or all with the same one."""
        ours, its, index = self._fields.get("id"), piece.get("id"), piece.get("index")
        if its and its == ours:
            return True
        if index is not None and self._index is not None and not (its and ours and _named(piece)):
            return bool(index == self._index)
        return not _named(piece) and (index is None or index == self._index)

    def add(self, piece: dict[str, Any]) -> None:
        for name, value in piece.items():
            if name == "function" and isinstance(value, dict):
                for part, given in value.items():
                    self._part(part, given)
            elif name != "index" and value not in (None, "") and not (name == "id" and name in self._fields):
                self._fields[name] = value

    def whole(self) -> dict[str, Any]:
        function = {"name": "", "arguments": "", **_joined(self._function)}
        return {"type": "function", **self._fields, "function": function}

    def _part(self, name: str, value: Any) -> None:
        if name == "name" and value == _joined(self._function).get("name"):
            return  # said again with each piece
        if name == "arguments" and isinstance(value, dict):
            value = orjson.dumps(value).decode()
        if value is not None:
            _grow(self._function, name, value, ("name", "arguments"))


def _grow(fields: dict[str, Any], name: str, value: Any, growing: tuple[str, ...]) -> None:
    """Pieces of a text are kept in a list until the end, as joining them one by one takes time squared."""
    old = fields.get(name)
    if name in growing and isinstance(value, str):
        if old is None:
            fields[name] = old = _Pieces()
        if isinstance(old, _Pieces):  # else it is no text, and stays none
            old.append(value)
    elif isinstance(value, list) and isinstance(old, list):
        old.extend(value)
    else:
        fields[name] = value


class _Pieces(list[str]):
    """A text that is not joined yet."""


def _joined(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: "".join(value) if isinstance(value, _Pieces) else value for name, value in fields.items()}


def _named(piece: dict[str, Any]) -> bool:
    function = piece.get("function")
    return isinstance(function, dict) and bool(function.get("name"))
