"""Waiting for a person: what is written when a call waits, and what a decision makes of it. Pure."""

from collections.abc import Sequence

from agent_core.effects import (
    CallModel,
    Cancelled,
    Decision,
    Failed,
    FinishReason,
    Json,
    ModelReply,
    Suspended,
    ToolCall,
    ToolReply,
    Wait,
    answer_from,
    decision_from,
)
from agent_core.journal.record import Record, item
from agent_core.journal.strand import Strand

DIED = "the process ended before the call was answered"
"""What is said of a doubtful call that the tape shows asked and not answered."""


def wait(strand: Strand, effect: Wait) -> tuple[Decision, ...] | Suspended | Cancelled:
    """What people decided on the calls: one waits in this strand, of several each has a strand of its own."""
    if len(effect.calls) == 1:
        return _decisions(effect.reason, [_person(strand, effect.calls[0], effect.reason)])
    paths = [item(strand.path, strand.n, i) for i in range(len(effect.calls))]
    strand.write({"kind": "waiting", "reason": effect.reason, "tools": [call.tool for call in effect.calls]})
    words = [
        _person(strand.run.open(path, strand.pending), call, effect.reason)
        for path, call in zip(paths, effect.calls, strict=True)
    ]
    decisions = _decisions(effect.reason, words)
    closes = strand.run.closes(paths)
    if isinstance(decisions, Cancelled):
        strand.write({"kind": "cancelled", "at": decisions.at, "closes": closes})
    elif not isinstance(decisions, Suspended):
        strand.write({"kind": "resolved", "decision": "batch", "closes": closes})
    return decisions


def _person(strand: Strand, call: ToolCall, reason: FinishReason) -> Record | Suspended | Cancelled:
    strand.write({"kind": "waiting", "reason": reason, **call.record()})
    return resolved(strand, call, reason)


def _decisions(
    reason: FinishReason, words: Sequence[Record | Suspended | Cancelled]
) -> tuple[Decision, ...] | Suspended | Cancelled:
    """All decisions, or, when one was cancelled or is still missing, that."""
    cancelled = [word for word in words if isinstance(word, Cancelled)]
    if cancelled:
        return cancelled[0]
    suspended = [word for word in words if isinstance(word, Suspended)]
    if suspended:
        return Suspended(reason, tuple(entry for word in suspended for entry in word.waiting))
    return tuple(decision_from(word) for word in words if isinstance(word, dict))


def doubt(strand: Strand, effect: CallModel | ToolCall, message: str, seconds: float = 0.0) -> None:
    """Put a write that may or may not have happened to a person; `seconds` is what it took so far."""
    told = {"kind": "waiting", "reason": "in_doubt", **effect.record(), "message": message, "seconds": seconds}
    strand.write(told)


def resolved(strand: Strand, effect: CallModel | ToolCall, reason: FinishReason) -> Record | Suspended | Cancelled:
    """A person's word on the `waiting` record just passed."""
    n = strand.n - 1
    record = strand.take("resolved", "cancelled")
    if record is None:
        return Suspended(reason, ({"strand": strand.path, "n": n, **shown(effect), "reason": reason},))
    return Cancelled(record["at"]) if record["kind"] == "cancelled" else record


def settled(resolved: Record) -> ToolReply | Failed | ModelReply:
    """What a decision about a write in doubt makes of it."""
    at = resolved["at"]
    match resolved["decision"]:
        case "late":
            return answer_from(resolved["answer"])
        case "skip":
            note = "A person skipped this call; whether it took effect is not known."
            return ToolReply(True, {"skipped": True, "note": note}, None, at, 0.0)
        case _:
            return Failed("abandoned", "a person ended the run here: the write is in doubt", at, 0.0)


def shown(effect: CallModel | ToolCall) -> Json:
    """What a person is told of an act."""
    match effect:
        case ToolCall(tool=tool, args=args):
            return {"tool": tool, "args": args}
        case CallModel(model=model):
            return {"tool": model, "args": {}}
