"""How a call and how a whole agent run ended. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from agent_core.effects import Failed, Result, ToolReply
from agent_core.loop.judge import Verdict
from agent_core.outputs import FinishReason, Json, WaitingCall
from agent_core.words.catalogue import ENGLISH, Words, words_in

CallResult = Result | Verdict
"""What became of one call: its result, or the verdict that refused it."""


def error_in(result: Result, words: Words = ENGLISH) -> str | None:
    """Return what the tool, or the world around it, says went wrong."""
    match result:
        case Failed(message=message):
            return message
        case ToolReply(success=False, error=error):
            return error or words.failed_without_words
        case _:
            return None


def output_of(result: Result) -> Any:
    return result.output if isinstance(result, ToolReply) else None


def has_succeeded(result: CallResult) -> bool:
    """Return whether a call did what it was made for."""
    return isinstance(result, ToolReply) and result.success


def has_tool_failure(failures: Sequence[CallResult]) -> bool:
    """Return whether a tool is among what failed, rather than refusals alone."""
    return any(not isinstance(result, Verdict) for result in failures)


def explain_failure(result: CallResult) -> tuple[FinishReason, str]:
    """Return the finish reason and the message of a run that ends over this."""
    if isinstance(result, Verdict):
        return result.reason or "policy_denied", result.message
    return "tool_error", error_in(result) or ""


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """How an agent run ended. `output` is the node's, without `journal`, which only the recorder knows.

    `added` are the messages of its output that it did not begin with.
    """

    finish_reason: FinishReason
    output: Json
    primary: str
    spent: Json
    waiting: tuple[WaitingCall, ...] = ()
    added: Sequence[Json] = ()

    def finished(self) -> Json:
        """Return the body of `run_finished`: what an auditor looks for first, and a hash that proves the rest."""
        output = self.output
        body = {key: output[key] for key in ("finish_reason", "final_answer", "error", "usage", "used_tools")}
        return {**body, "at": output["ended_at"], "output": sha256(orjson.dumps(output)).hexdigest()}

    def answer(self, language: str = "en") -> ToolReply:
        """Return the result of the call that this run was nested under, for a model that reads this language."""
        output = self.output
        success = self.finish_reason == "final"
        error = None if success else self._explain_ending(words_in(language))
        primary = output.get(self.primary) if success else None
        seconds = output["total_ms"] / 1000
        usage = {**output["usage"], "writes": self.spent["writes"]}
        return ToolReply(success, primary, error, output["ended_at"], seconds, usage=usage)

    def _explain_ending(self, words: Words) -> str:
        """Return how the run ended; where the failure itself does not tell, `error` is in English, for operators."""
        reason, message = self.finish_reason, self.output["error"]["message"]
        if words is not ENGLISH:
            message = words.endings.get(reason, message)
        return words.agent_ended.format(reason=reason, message=message)


def error_of(reason: FinishReason, message: str = "") -> Json | None:
    """Return the node's `error` output: null for a success."""
    return None if reason == "final" else {"kind": reason, "message": message or ENGLISH.endings.get(reason, reason)}
