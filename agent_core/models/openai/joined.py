"""The chunks of a streamed chat completion, joined to a whole one. Pure."""

from typing import Any

from agent_core.models.openai.response import is_first_choice, read_text
from agent_core.models.openai.streams import StreamedMessage
from agent_core.models.usage import merge_usage


class JoinedCompletion:
    """A chat completion so far, of the first choice alone; its counts may follow the end of its text."""

    is_over = False
    """The stream says so itself, by its last event."""

    def __init__(self) -> None:
        self.is_whole = False
        self._message = StreamedMessage()
        self._fields: dict[str, Any] = {}
        self._finish_reason: Any = None
        self._native_reason: Any = None
        self._has_choice = False

    def add(self, event: dict[str, Any]) -> str:
        usage = merge_usage(self._fields.get("usage"), _find_usage(event))
        self._fields.update({name: value for name, value in event.items() if name != "choices" and value is not None})
        self._fields["usage"] = usage
        choices = event.get("choices")
        first = [choice for choice in choices if is_first_choice(choice)] if isinstance(choices, list) else []
        return "".join(map(self._read_choice, first))

    def whole(self) -> dict[str, Any]:
        choice = {"index": 0, "message": self._message.whole(), "finish_reason": self._finish_reason}
        choice["native_finish_reason"] = self._native_reason
        choices = [choice] if self._has_choice else []
        return {**self._fields, "object": "chat.completion", "choices": choices}

    def _read_choice(self, choice: dict[str, Any]) -> str:
        if choice.get("finish_reason") != "null":  # some vendors write each null so
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._native_reason = choice.get("native_finish_reason") or self._native_reason
        self.is_whole = self._finish_reason is not None
        delta = choice.get("delta")
        if delta is None and not self._has_choice:
            delta = choice.get("message")  # a vendor that sends a whole message as a stream
        self._has_choice = True
        if not isinstance(delta, dict):
            return ""
        self._message.add(delta)
        return read_text(delta.get("content")) or ""


def _find_usage(event: dict[str, Any]) -> Any:
    """Return the usage in an event: Moonshot's stands in its choice, and Groq's in a field of its own."""
    choices = event.get("choices")
    inner = [*filter(is_first_choice, choices)] if isinstance(choices, list) else []
    places = (event, *inner, event.get("x_groq"))
    found = (place.get("usage") for place in places if isinstance(place, dict))
    return next((usage for usage in found if isinstance(usage, dict) and usage), None)
