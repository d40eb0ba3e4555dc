"""The events of a streamed response, joined to a whole one. Pure."""

from typing import Any

from agent_core.models.openai.responses.items import read_text
from agent_core.models.openai.responses.response import COMMENTARY, read_content
from agent_core.outputs import Json

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
FAILED = "failed"
Key = int | str


class JoinedResponse:
    """A response so far. Its last event has all of it; at some gateways without the items, which came before."""

    def __init__(self) -> None:
        self.is_whole = self.is_over = False
        self._response: Json = {}
        self._items: dict[Key, _Item] = {}
        self._shown: list[str] = []

    def add(self, event: dict[str, Any]) -> str:
        kind = event.get("type")
        if kind in ENDS or event.get("object") == "response":
            return self._end(event)
        item = self._item_of(event)
        match kind:
            case "response.output_item.added" | "response.output_item.done" if isinstance(event.get("item"), dict):
                item.take(event["item"], is_done=kind.endswith("done"))
            case "response.output_text.delta":
                return self._show(item, item.grow("output_text", event, "delta"))
            case "response.output_text.done":
                item.fill("output_text", event, "text")
            case "response.refusal.delta":
                item.grow("refusal", event, "delta")
            case "response.refusal.done":
                item.fill("refusal", event, "refusal")
            case "response.function_call_arguments.delta":
                item.grow("arguments", event, "delta")
            case "response.function_call_arguments.done":
                item.fill("arguments", event, "arguments")
            case _:
                pass
        return ""

    def whole(self) -> Any:
        """Return the response. Items that were streamed are taken where the last event has fewer, or lacks their
        text."""
        streamed = [item.whole() for item in self._items.values() if item.has_anything]
        output = self._response.get("output")
        if not isinstance(output, list) or len(output) < len(streamed) or self._lacks_text(output):
            return {**self._response, "output": streamed} if streamed else self._response
        return self._response

    def _end(self, event: dict[str, Any]) -> str:
        """Take the last event, and return the text that no earlier one has shown."""
        self.is_whole = self.is_over = True
        response = event.get("response")
        self._response = response if isinstance(response, dict) else {} if "response" in event else event
        if not self._response.get("status") and (kind := event.get("type")) in ENDS[:4]:
            self._response = {**self._response, "status": kind.removeprefix("response.")}
        whole = self.whole()
        output = whole.get("output")
        if whole.get("error") or whole.get("status") == FAILED or not isinstance(output, list):
            return ""
        content, shown = read_content(output), "".join(self._shown)
        return content[len(shown) :] if content.startswith(shown) else ""

    def _show(self, item: "_Item", text: str) -> str:
        """Return a piece of text to show; a commentary waits, since it counts only where no other text follows."""
        if item.is_commentary:
            return ""
        self._shown.append(text)
        return text

    def _lacks_text(self, output: list[Any]) -> bool:
        return any(self._shown) and not read_content(output)

    def _item_of(self, event: dict[str, Any]) -> "_Item":
        """Return the item that an event is about: by its place, else by its id, else the last one."""
        index, id_ = event.get("output_index"), event.get("item_id")
        key: Key = index if type(index) is int else id_ if isinstance(id_, str) else next(reversed(self._items), 0)
        return self._items.setdefault(key, _Item())


class _Item:
    """One output item so far: as an event has it whole, and the pieces of its texts."""

    def __init__(self) -> None:
        self._item: Json | None = None
        self._is_done = False
        self._pieces: dict[tuple[str, Any], list[str]] = {}

    @property
    def is_commentary(self) -> bool:
        return self._item is not None and self._item.get("phase") == COMMENTARY

    @property
    def has_anything(self) -> bool:
        return self._item is not None or bool(self._pieces)

    def take(self, item: Json, *, is_done: bool) -> None:
        if is_done or not self._is_done:
            self._item, self._is_done = item, is_done

    def grow(self, kind: str, event: dict[str, Any], name: str) -> str:
        piece = event.get(name)
        if not isinstance(piece, str):
            return ""
        self._pieces.setdefault(_place(kind, event), []).append(piece)
        return piece

    def fill(self, kind: str, event: dict[str, Any], name: str) -> None:
        """Take a text that comes whole, unless its pieces have come."""
        if isinstance(text := event.get(name), str) and text:
            self._pieces.setdefault(_place(kind, event), [text])

    def whole(self) -> Json:
        """Return the item; what it lacks is joined from its pieces. One that never was done says so."""
        arguments = "".join(self._join("arguments"))
        item = self._item or {"type": "function_call" if arguments else "message"}
        if not self._is_done:
            item = {**item, "status": "in_progress"}
        if item.get("type") == "function_call":
            return item if item.get("arguments") or not arguments else {**item, "arguments": arguments}
        if item.get("type") != "message" or read_text(item):
            return item
        texts = [{"type": "output_text", "text": text} for text in self._join("output_text")]
        refusals = [{"type": "refusal", "refusal": text} for text in self._join("refusal")]
        return {**item, "content": [*texts, *refusals]} if texts or refusals else item

    def _join(self, kind: str) -> list[str]:
        return ["".join(pieces) for (each, _), pieces in self._pieces.items() if each == kind]


def _place(kind: str, event: dict[str, Any]) -> tuple[str, Any]:
    index = event.get("content_index")
    return kind, index if type(index) is int else 0
