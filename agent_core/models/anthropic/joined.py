"""The events of a streamed message, joined to a whole one. Pure."""

from typing import Any

from agent_core.models.anthropic.response import read_text
from agent_core.models.endpoint.envelope import decode_mended, mend_text
from agent_core.models.usage import merge_usage
from agent_core.outputs import Json

GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Pieces of a text: the kind of a piece, and its field."""
BEGUN_BY = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
"""Blocks that a piece begins where no event has."""


class JoinedMessage:
    """A message so far. `is_whole` once it says why it ended, `is_over` at its last event.

    A gateway that lost its vendor in the middle begins a second message. It counts alone, unless a text of the first
    was shown: then the stream is one that was cut.
    """

    def __init__(self) -> None:
        self.is_whole = False
        self.is_over = False
        self._fields: Json = {}
        self._usage: Any = None
        self._blocks: list[_Block] = []
        self._by_index: dict[int, _Block] = {}
        self._unknown: Json = {}
        self._has_text = self._is_cut = False

    def add(self, event: Json) -> str:
        """Return the text that an event adds; one that is not known adds nothing."""
        text = "" if self._is_cut else self._add(event)
        self._has_text = self._has_text or bool(text)
        return text

    def _add(self, event: Json) -> str:
        match event.get("type"):
            case "message_start" if isinstance(message := event.get("message"), dict):
                self._is_cut = self._has_text
                if not self._is_cut:
                    self._blocks, self._by_index, self._fields, self.is_whole = [], {}, {}, False
                    self._add_fields(message)
            case "message_delta":
                self._add_fields(_mapping(event.get("delta")))
                self._usage = merge_usage(self._usage, event.get("usage"))
                self.is_whole = self.is_whole or bool(self._fields.get("stop_reason"))
            case "message_stop":
                self.is_over = True
            case "message":  # a whole message, sent as a stream
                self._add_fields(event)
                self.is_whole = self.is_over = True
                return read_text(event.get("content"))
            case "content_block_start":
                return self._open_block(event.get("index"), _mapping(event.get("content_block"))).opening
            case "content_block_delta":
                return self._add_piece(event.get("index"), _mapping(event.get("delta")))
            case _:
                self._unknown = event
        return ""

    def whole(self) -> Json:
        """Return the message; an event that is none where there was no other, such as one of another API."""
        if not self._fields and not self._blocks:
            return self._unknown
        content = [block.whole() for block in self._blocks] or self._fields.get("content") or []
        return {"type": "message", "role": "assistant", **self._fields, "content": content, "usage": self._usage}

    def _add_fields(self, fields: Json) -> None:
        self._fields.update({name: value for name, value in fields.items() if value is not None})
        self._usage = merge_usage(self._usage, fields.get("usage"))

    def _open_block(self, index: Any, start: Json) -> "_Block":
        block = _Block(start)
        self._blocks.append(block)
        if isinstance(index, int):
            self._by_index[index] = block
        return block

    def _add_piece(self, index: Any, delta: Json) -> str:
        kind = str(delta.get("type"))
        last = self._blocks[-1] if self._blocks else None
        block = self._by_index.get(index) if isinstance(index, int) else last
        if block is None and kind in BEGUN_BY:
            block = self._open_block(index, {"type": BEGUN_BY[kind]})
        return "" if block is None else block.add(kind, delta)


class _Block:
    """A block so far. Its texts stay in pieces until the end: joining one by one is quadratic."""

    def __init__(self, start: Json) -> None:
        self._fields = start
        self._pieces: dict[str, list[str]] = {}
        self.opening = start["text"] if self._is_text and isinstance(start.get("text"), str) else ""

    @property
    def _is_text(self) -> bool:
        return self._fields.get("type") == "text"

    def add(self, kind: str, delta: Json) -> str:
        """Return the text that a piece adds to the reply."""
        field = GROWING.get(kind, "")
        if field and isinstance(piece := delta.get(field), str):
            self._pieces.setdefault(field, []).append(piece)
            return piece if field == "text" and self._is_text else ""
        if kind == "signature_delta" and isinstance(delta.get("signature"), str):
            self._fields = {**self._fields, "signature": delta["signature"]}
        elif kind == "citations_delta" and delta.get("citation") is not None:
            before = self._fields.get("citations")
            self._fields = {**self._fields, "citations": [*(before if before else ()), delta["citation"]]}
        return ""

    def whole(self) -> Json:
        """Return the block as in a whole message. Arguments that are no JSON stay a text."""
        whole = {**self._fields}
        for field, pieces in self._pieces.items():
            text = "".join(pieces)
            if field == "partial_json":
                whole |= {"input": _read_input(text)} if text.strip() else {}
            else:
                whole[field] = (whole[field] if isinstance(whole.get(field), str) else "") + text
        return whole


def _read_input(text: str) -> Any:
    try:
        return decode_mended(mend_text(text).encode())
    except ValueError:
        return text


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
