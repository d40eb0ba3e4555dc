"""How an agent run came out: the node's output, and what its parent and its journal are told. Pure."""

from dataclasses import dataclass
from hashlib import sha256

import orjson

from agent_core.effects import FinishReason, Json, ToolReply

MESSAGES: dict[str, str] = {
    "max_steps": "the model still asked for a tool in the last allowed step",
    "max_tool_calls": "the model asked for more tool calls than are allowed",
    "token_budget": "the token budget is used up",
    "cost_budget": "the cost budget is used up",
    "timeout": "the run's time is used up",
    "cancelled": "the run was cancelled",
    "content_filter": "the vendor's content filter stopped the reply",
    "awaiting_approval": "a call waits for a person's approval",
    "paused": "the run was paused",
    "in_doubt": "a write may or may not have happened; a person has to decide",
}


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """`output` is the node's, all but `journal`, which only the recorder knows."""

    finish_reason: FinishReason
    output: Json
    primary: str
    spent: Json
    waiting: tuple[Json, ...] = ()

    def finished(self) -> Json:
        """The `run_finished` record: what an auditor looks for first, and a hash that proves the rest."""
        output = self.output
        told = {key: output[key] for key in ("finish_reason", "final_answer", "error", "usage", "used_tools")}
        return {**told, "at": output["ended_at"], "output": sha256(orjson.dumps(output)).hexdigest()}

    def answer(self) -> ToolReply:
        """The result of the call that this run was nested under."""
        output = self.output
        success = self.finish_reason == "final"
        error = None if success else f"the agent ended by {self.finish_reason}: {output['error']['message']}"
        primary = output.get(self.primary) if success else None
        seconds = output["total_ms"] / 1000
        usage = {**output["usage"], "writes": self.spent["writes"]}
        return ToolReply(success, primary, error, output["ended_at"], seconds, usage=usage)


def error_of(reason: FinishReason, message: str = "") -> Json | None:
    """The `error` output: null for a success."""
    return None if reason == "final" else {"kind": reason, "message": message or MESSAGES.get(reason, reason)}
