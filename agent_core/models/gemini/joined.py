"""The pieces of a streamed reply, joined to a whole one. Pure."""

from typing import Any

from agent_core.models.client import Completion
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.envelope import mend
from agent_core.models.gemini.response import find_candidate, find_error, is_shown, read_reply
from agent_core.models.gemini.usage import merge_counts
from agent_core.outputs import Json

CANDIDATE = ("finishReason", "finishMessage", "safetyRatings")


class JoinedPieces:
    """A reply so far, of the first candidate alone. A text that goes on in the next piece is one part, unless one of
    the two has a signature, which belongs to its own part."""

    is_over = False
    """The stream ends with its connection; counts may follow the end of its text."""

    def __init__(self) -> None:
        self.is_whole = False
        self._fields: Json = {}
        self._candidate: Json = {}
        self._parts: list[Any] = []
        self._open_text: list[str] = []
        """The texts of the last part, where that is one that may go on."""

    def add(self, event: Json) -> str:
        usage = merge_counts(self._fields.get("usageMetadata"), event.get("usageMetadata"))
        self._fields |= {name: value for name, value in event.items() if name != "candidates" and value is not None}
        self._fields["usageMetadata"] = usage
        candidate = find_candidate(event) or {}
        self._candidate |= {name: value for name in CANDIDATE if (value := candidate.get(name)) is not None}
        feedback = self._fields.get("promptFeedback")
        is_blocked = isinstance(feedback, dict) and bool(feedback.get("blockReason"))
        self.is_whole = bool(self._candidate.get("finishReason")) or is_blocked
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        parts = parts if isinstance(parts, list) else []
        self._add_parts(parts)
        return "".join(part["text"] for part in parts if is_shown(part))

    def whole(self) -> Json:
        self._close_text()
        candidate = {"content": {"role": "model", "parts": self._parts}, "index": 0, **self._candidate}
        has_candidate = bool(self._candidate or self._parts)
        return {**self._fields, "candidates": [candidate] if has_candidate else []}

    def _add_parts(self, parts: list[Any]) -> None:
        for index, part in enumerate(parts):
            if index == 0 and self._open_text and _may_go_on(part) and _is_same_kind(part, self._parts[-1]):
                self._open_text.append(part["text"])
                continue
            self._close_text()
            self._parts.append(part)
            if index == len(parts) - 1 and _may_go_on(part):
                self._open_text.append(part["text"])

    def _close_text(self) -> None:
        if self._open_text:
            self._parts[-1] = {**self._parts[-1], "text": "".join(self._open_text)}
            self._open_text = []


def read_any(reply: Any, answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return what is in a whole answer, also where it is a list of the pieces of a stream, as without `alt=sse`."""
    if not isinstance(reply, list) or not reply or not all(isinstance(each, dict) for each in reply):
        return read_reply(reply, answer, now)
    joined = JoinedPieces()
    for piece in reply:
        if find_error(piece):
            return read_reply(piece, answer, now)
        joined.add(piece)
    if not joined.is_whole:
        return Refusal("ended its stream before the reply was whole", answer.status, transient=True)
    return read_reply(mend(joined.whole()), answer, now)


def _may_go_on(part: Any) -> bool:
    """Return whether a part is a text, or a thought, and no more."""
    return isinstance(part, dict) and part.keys() <= {"text", "thought"} and isinstance(part.get("text"), str)


def _is_same_kind(part: Json, before: Json) -> bool:
    return bool(part.get("thought")) == bool(before.get("thought"))
