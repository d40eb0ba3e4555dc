"""The answer in a reply that is still being written: its text, as far as it can be shown without a secret. Pure."""

from typing import Any

from pydantic_core import from_json

from utools.secrets.redaction import Redactor

COARSENESS = 64
"""A long reply is read anew when it has grown by this fraction, so that the work stays in proportion to its length."""


class AnswerStream:
    """Takes a reply piece by piece, gives the pieces of its answer.

    In the JSON dialect the answer is the text of a final, told as soon as the reply is known to be one; `native`, in
    that of function calling, the whole text. What may be the beginning of a secret is held back until all of it is
    there to be redacted.
    """

    def __init__(self, redactor: Redactor, *, native: bool, tolerant: bool = False) -> None:
        self._redactor, self._native, self._tolerant = redactor, native, tolerant
        self._reply, self._read, self._told = "", 0, ""

    def more(self, piece: str) -> str:
        """What can be shown now that this piece is there."""
        self._reply += piece
        if len(self._reply) - self._read < max(1, self._read // COARSENESS):
            return ""
        self._read = len(self._reply)
        answer = self._answer(self._reply) or ""
        clean, held_back = self._redactor.json_text(answer), self._redactor.unsettled_length(answer)
        return self._shown(clean[: max(0, len(clean) - held_back)])

    def rest(self, reply: str) -> str | None:
        """What is still to be shown of the whole reply, as it stands in the journal; None when what was shown of it
        is not how its answer begins."""
        answer = self._answer(reply) or ""
        return self._shown(answer) if answer.startswith(self._told) else None

    def _shown(self, answer: str) -> str:
        if not answer.startswith(self._told):  # a longer secret has shown itself; `rest` will tell
            return ""
        new = answer[len(self._told) :]
        self._told += new
        return new

    def _answer(self, reply: str) -> str | None:
        if self._native:
            return _after_thinking(reply) if self._tolerant else reply
        try:
            step: Any = from_json(_bare(reply), allow_partial="trailing-strings")
        except ValueError:
            return None
        answer = step.get("answer") if isinstance(step, dict) and step.get("type") == "final" else None
        return answer if isinstance(answer, str) else None


def _after_thinking(reply: str) -> str:
    """What an answer is without the think block before it."""
    text = reply.strip()
    if "<think>".startswith(text[:7]) and not text.startswith("<think>"):
        return ""  # it may be about to think
    return text.partition("</think>")[2].strip() if text.startswith("<think>") else reply


def _bare(reply: str) -> str:
    """The reply from where its object begins, as tolerant parsing finds it."""
    text = reply.lstrip("\ufeff \t\r\n")
    if text.startswith("<think>"):
        text = text.partition("</think>")[2].lstrip()
    if text.startswith("```"):
        text = text.partition("\n")[2]
    return text
