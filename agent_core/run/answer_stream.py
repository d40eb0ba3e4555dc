"""The answer in a reply that is still being written: its text, as far as it can be shown without a secret. Pure."""

from typing import Any

from pydantic_core import from_json

from agent_core.protocol.wrappings import strip_thinking_so_far, unwrap_so_far
from utools.secrets.redaction import Redactor

COARSENESS = 64
"""A long reply is read again when it has grown by this fraction, so that the work stays in proportion to its length."""


class AnswerStream:
    """Takes a reply piece by piece, and gives the pieces of its answer.

    In the JSON dialect the answer is the text of a final, shown as soon as the reply is known to be one; with
    `native` function calling it is the whole text. What may be the beginning of a secret is not shown
    until the whole secret is there and redacted.
    """

    def __init__(self, redactor: Redactor, *, native: bool, tolerant: bool = False) -> None:
        self._redactor, self._native, self._tolerant = redactor, native, tolerant
        self._reply, self._read_length, self._shown = "", 0, ""

    def feed(self, piece: str) -> str:
        """Return the part of the answer that can be shown after this piece."""
        self._reply += piece
        if len(self._reply) - self._read_length < max(1, self._read_length // COARSENESS):
            return ""
        self._read_length = len(self._reply)
        return self._show(self._redactor.settled(self._find_answer(self._reply) or "", whole=self._native))

    def finish(self, reply: str) -> str | None:
        """Return the rest of the answer, from the whole redacted reply; None when its answer begins differently."""
        answer = self._find_answer(reply, whole=True) or ""
        return self._show(answer) if answer.startswith(self._shown) else None

    def _show(self, answer: str) -> str:
        if not answer.startswith(self._shown):  # a longer secret was found; `finish` decides
            return ""
        new = answer[len(self._shown) :]
        self._shown += new
        return new

    def _find_answer(self, reply: str, *, whole: bool = False) -> str | None:
        if self._native:
            return strip_thinking_so_far(reply, whole=whole) if self._tolerant else reply
        try:
            step: Any = from_json(unwrap_so_far(reply), allow_partial="trailing-strings")
        except ValueError:
            return None
        answer = step.get("answer") if isinstance(step, dict) and step.get("type") == "final" else None
        return answer if isinstance(answer, str) else None
