"""The answer and the thought in a reply that is still being written, as far as they can be shown without a secret.
Pure."""

from typing import Any, Literal

from pydantic_core import from_json

from agent_core.protocol.wrappings import strip_thinking_so_far, unwrap_so_far
from utools.secrets.redaction import Redactor

COARSENESS = 64
"""A long reply is read again when it has grown by this fraction, so that the work stays in proportion to its length."""
Part = Literal["answer", "thought"]


class AnswerStream:
    """Takes a reply piece by piece, and gives the pieces of its answer, and of the thought before it.

    In the JSON dialect the answer is the text of a final, shown as soon as the reply is known to be one, and the
    thought that of any step; with `native` function calling the answer is the whole text. What may be the beginning of
    a secret is not shown until the whole secret is there and redacted.
    """

    def __init__(self, redactor: Redactor, *, native: bool, tolerant: bool = False) -> None:
        self._redactor, self._native, self._tolerant = redactor, native, tolerant
        self._reply, self._read_length = "", 0
        self._shown: dict[Part, str] = {"answer": "", "thought": ""}
        self._thought = ""

    def feed(self, piece: str) -> str:
        """Return the part of the answer that can be shown after this piece."""
        self._reply += piece
        if len(self._reply) - self._read_length < max(1, self._read_length // COARSENESS):
            return ""
        self._read_length = len(self._reply)
        found = self._find_parts(self._reply)
        shown = {name: self._redactor.settled(text, whole=self._native) for name, text in found.items()}
        self._thought += self._show("thought", shown.get("thought", ""))
        return self._show("answer", shown.get("answer", ""))

    def take_thought(self) -> str:
        """Return the part of the thought that can be shown since this was last asked."""
        taken, self._thought = self._thought, ""
        return taken

    def finish(self, reply: str) -> str | None:
        """Return the rest of the answer, from the whole redacted reply; None when its answer begins differently."""
        answer = self._find_parts(reply, whole=True).get("answer", "")
        return self._show("answer", answer) if answer.startswith(self._shown["answer"]) else None

    def _show(self, part: Part, text: str) -> str:
        if not text.startswith(self._shown[part]):  # a longer secret was found; `finish` decides
            return ""
        new = text[len(self._shown[part]) :]
        self._shown[part] += new
        return new

    def _find_parts(self, reply: str, *, whole: bool = False) -> dict[Part, str]:
        if self._native:
            return {"answer": strip_thinking_so_far(reply, whole=whole) if self._tolerant else reply}
        try:
            step: Any = from_json(unwrap_so_far(reply), allow_partial="trailing-strings")
        except ValueError:
            return {}
        if not isinstance(step, dict):
            return {}
        found: dict[Part, Any] = {"thought": step.get("thought")}
        if step.get("type") == "final":
            found["answer"] = step.get("answer")
        return {name: text for name, text in found.items() if isinstance(text, str)}
