"""A message of chat completions that comes in pieces. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson

from agent_core.models.endpoint.answer import as_json
from agent_core.models.openai.response import read_text

GROWING = ("content", "reasoning_content", "reasoning", "refusal")
"""Texts that come in pieces. Any other field keeps its last value, and lists grow."""
PLACEHOLDER = "{}{"
"""How the arguments of a call begin to which a gateway of Bedrock has put an empty object first."""
Key = int | str
"""A call's number or id."""


class StreamedMessage:
    """The message so far. Calls are looked up by number and by id: there may be thousands of pieces."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._older_call: _Call | None = None
        self._by_index: dict[Key, _Call] = {}
        self._by_id: dict[Key, dict[Key | None, _Call]] = {}

    def add(self, delta: dict[str, Any]) -> None:
        for name, value in delta.items():
            if name == "tool_calls" and isinstance(value, list):
                for piece in value:
                    if isinstance(piece, dict):
                        self._call_of(piece).add(piece)
            elif name == "function_call" and isinstance(value, dict):
                self._older_call = self._older_call or _Call(None)
                self._older_call.add({"function": value})
            elif value is not None:
                text = read_text(value) if name == "content" and isinstance(value, list) else value
                _grow(self._fields, name, text, GROWING)

    def whole(self) -> dict[str, Any]:
        """Return the message in the shape of a whole one."""
        whole = {"role": "assistant", "content": None, **_join(self._fields)}
        calls = self._calls or ([self._older_call] if self._older_call else [])
        return {**whole, "tool_calls": [call.whole() for call in calls]} if calls else whole

    def _call_of(self, piece: dict[str, Any]) -> "_Call":
        """Return the call that a piece belongs to: a known one, or a new one."""
        index, identity = _as_key(piece.get("index")), _as_key(piece.get("id")) or None
        call = self._find_call(index, identity, _has_name(piece))
        if call is not None and (identity is None or identity != call.id) and call.is_followed_by(piece):
            call = None
        if call is None:
            call = _Call(index)
            self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
        if identity is not None and call.id is None:
            call.id = identity
            self._by_id.setdefault(identity, {})[call.index] = call
        return call

    def _find_call(self, index: "Key | None", identity: "Key | None", named: bool, /) -> "_Call | None":
        """Return the known call of a piece.

        OpenAI numbers the calls, and sends id and name once. Others send them with each piece, or a new id with each
        piece, or whole calls without a number, or all calls with one number, or with one id; or whole calls with one
        number and without ids, which `is_followed_by` tells apart.
        """
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
                for part, value_of_part in value.items():
                    self._add_part(part, value_of_part)
            elif name != "index" and value not in (None, "") and not (name == "id" and name in self._fields):
                self._fields[name] = value

    def is_followed_by(self, piece: dict[str, Any]) -> bool:
        """Return whether a piece begins another call: it has a name and arguments, and those of this one are whole."""
        before, after = (
            self._function.get("arguments"),
            piece["function"].get("arguments") if _has_name(piece) else None,
        )
        if not isinstance(before, _Pieces) or not after:
            return False
        begins = not isinstance(after, str) or after.lstrip().startswith("{")
        return begins and before[-1].rstrip().endswith("}") and _is_json("".join(before))

    def whole(self) -> dict[str, Any]:
        function = {"name": "", **_join(self._function)}
        if isinstance(pieces := self._function.get("arguments"), _Pieces) and not _is_json(function["arguments"]):
            function["arguments"] = _find_repeated(pieces) or function["arguments"]
        if str(function.get("arguments")).startswith(PLACEHOLDER):
            function["arguments"] = function["arguments"][len(PLACEHOLDER) - 1 :]
        return {"type": "function", **self._fields, "function": function}

    def _add_part(self, name: str, value: Any) -> None:
        if name == "name" and isinstance(value, str):
            if not value or self._is_name(value):
                return  # repeated with each piece
            self._name_size += len(value)
        if name == "arguments" and value is not None and not isinstance(value, str):
            value = as_json(value) or value  # refused when the reply is read
        if value is not None:
            _grow(self._function, name, value, ("name", "arguments"))

    def _is_name(self, text: str) -> bool:
        """Return whether the text is the whole name so far; the name is joined only for a text of its length."""
        name = self._function.get("name")
        return isinstance(name, _Pieces) and len(text) == self._name_size and text == "".join(name)


def _grow(fields: dict[str, Any], name: str, value: Any, growing: tuple[str, ...]) -> None:
    """Add a value to a field. Pieces of a text stay in a list until the end: joining one by one is quadratic."""
    old = fields.get(name)
    if name in growing and isinstance(value, str):
        if old is None:
            fields[name] = old = _Pieces()
        if isinstance(old, _Pieces):  # else it is not a text, and stays so
            old.append(value)
    elif isinstance(value, list) and isinstance(old, list):
        old.extend(value)
    else:
        fields[name] = value


class _Pieces(list[str]):
    """A text that is not joined yet."""


def _join(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: "".join(value) if isinstance(value, _Pieces) else value for name, value in fields.items()}


def _find_repeated(pieces: Sequence[str]) -> str | None:
    """Return the arguments, where they came in whole again: with each piece, as far as they were written (at Qianfan,
    DeepSeek's gateways), or once more at the end (GLM's servers). None if the last piece is no such object."""
    said = [piece for piece in pieces if piece]
    last = said[-1] if said else ""
    if not last.startswith("{") or not _is_json(last):
        return None
    grows = all(later.startswith(earlier) for earlier, later in pairwise(said))
    before = "".join(said[:-1])
    return last if grows or before == last * (len(before) // len(last)) else None


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _has_name(piece: dict[str, Any]) -> bool:
    function = piece.get("function")
    return isinstance(function, dict) and bool(function.get("name"))


def _as_key(value: Any) -> Key | None:
    return value if isinstance(value, int | str) else None
