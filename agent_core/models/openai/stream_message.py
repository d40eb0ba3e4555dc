"""A message whose fields and native function calls come in pieces. Pure."""

from typing import Any

from agent_core.models.openai.response import _as_json, _text

GROWING = ("content", "reasoning_content", "reasoning", "refusal")
"""Texts that come in pieces. Of any other field the last value stands, and lists grow."""
Key = int | str
"""A call's number or id."""


class StreamedMessage:
    """The message so far. Its calls are found by number and by id, as there may be thousands of pieces."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[Key, _Call] = {}
        self._by_id: dict[Key, dict[Key | None, _Call]] = {}

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
        """The call that a piece belongs to: one that has begun, or a new one."""
        index, identity = _key(piece.get("index")), _key(piece.get("id")) or None
        call = self._begun(index, identity, _named(piece))
        if call is None:
            call = _Call(index)
            self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
        if identity is not None and call.id is None:
            call.id = identity
            self._by_id.setdefault(identity, {})[call.index] = call
        return call

    def _begun(self, index: "Key | None", identity: "Key | None", named: bool, /) -> "_Call | None":
        """OpenAI numbers the calls, and tells id and name once. Others tell them with each piece, or make up a new id
        for each, or send whole calls without a number, or all with the same one, or all with the same id."""
        if identity is not None and (same := self._by_id.get(identity)):
            if index is None:
                return next(reversed(same.values()))
            if call := same.get(index) or same.get(None):
                return call
        if index is None:
            return self._calls[-1] if self._calls and not named else None
        call = self._by_index.get(index)
        return None if call and named and identity is not None and call.id is not None else call


class _Call:
    """One function call so far."""

    def __init__(self, index: "Key | None") -> None:
        self.index = index
        self.id: Key | None = None
        self._fields: dict[str, Any] = {}
        self._function: dict[str, Any] = {}
        self._name_size = 0

    def add(self, piece: dict[str, Any]) -> None:
        for name, value in piece.items():
            if name == "function" and isinstance(value, dict):
                for part, given in value.items():
                    self._part(part, given)
            elif name != "index" and value not in (None, "") and not (name == "id" and name in self._fields):
                self._fields[name] = value

    def whole(self) -> dict[str, Any]:
        function = {"name": "", **_joined(self._function)}
        return {"type": "function", **self._fields, "function": function}

    def _part(self, name: str, value: Any) -> None:
        if name == "name" and isinstance(value, str):
            if not value or self._is_name(value):
                return  # said again with each piece
            self._name_size += len(value)
        if name == "arguments" and value is not None and not isinstance(value, str):
            value = _as_json(value) or value  # which is refused when the reply is read
        if value is not None:
            _grow(self._function, name, value, ("name", "arguments"))

    def _is_name(self, text: str) -> bool:
        """Whether it is the whole name so far, which is joined only for a text of its size: all are as long as sent."""
        name = self._function.get("name")
        return isinstance(name, _Pieces) and len(text) == self._name_size and text == "".join(name)


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


def _key(value: Any) -> Key | None:
    return value if isinstance(value, int | str) else None
