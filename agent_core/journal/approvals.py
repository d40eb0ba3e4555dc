"""Waiting for a person: what is written when a call waits, and what follows from a decision. Pure."""

from collections.abc import Sequence
from typing import cast

from agent_core.decisions import Decision, decode_decision
from agent_core.effects import Answer, CallModel, Cancelled, Failed, Suspended, ToolCall, ToolReply, Wait
from agent_core.journal.path import item
from agent_core.journal.record import Record
from agent_core.journal.strand import Strand
from agent_core.outputs import FinishReason, WaitingCall
from agent_core.records import Waiting, decode_answer, encode_ask
from agent_core.words.catalogue import words_in

DIED = "the process ended before the call was answered"
"""The message of a doubt about a call that the tape shows asked and not answered."""


def wait_for_person(strand: Strand, effect: Wait) -> tuple[Decision, ...] | Suspended | Cancelled:
    """Return the decisions on the calls: one call waits in this strand, of several each has a strand of its own."""
    if len(effect.calls) == 1:
        return _decode_all(effect.reason, [_wait(strand, effect.calls[0], effect.reason)])
    paths = [item(strand.path, strand.n, i) for i in range(len(effect.calls))]
    strand.write({"kind": "waiting", "reason": effect.reason, "tools": [call.tool for call in effect.calls]})
    records = [
        _wait(strand.run.open(path, strand.pending), call, effect.reason)
        for path, call in zip(paths, effect.calls, strict=True)
    ]
    decisions = _decode_all(effect.reason, records)
    closes = strand.run.close(paths)
    if isinstance(decisions, Cancelled):
        strand.write({"kind": "cancelled", "at": decisions.at, "closes": closes})
    elif not isinstance(decisions, Suspended):
        strand.write({"kind": "resolved", "decision": "batch", "closes": closes})
    return decisions


def _wait(strand: Strand, call: ToolCall, reason: FinishReason) -> Record | Suspended | Cancelled:
    record = cast(Waiting, {"kind": "waiting", "reason": reason, **encode_ask(call)})
    if call.origins:
        record["origins"] = call.origins
    if call.question:
        record["message"] = call.question
    strand.write(record)
    return read_decision(strand, call, reason)


def _decode_all(
    reason: FinishReason, records: Sequence[Record | Suspended | Cancelled]
) -> tuple[Decision, ...] | Suspended | Cancelled:
    """Return all decisions; a cancellation, or what is still missing, in their place."""
    cancelled = [record for record in records if isinstance(record, Cancelled)]
    if cancelled:
        return cancelled[0]
    suspended = [record for record in records if isinstance(record, Suspended)]
    if suspended:
        return Suspended(reason, tuple(entry for each in suspended for entry in each.waiting))
    return tuple(decode_decision(record) for record in records if isinstance(record, dict))


def doubt_record(effect: CallModel | ToolCall, message: str, seconds: float = 0.0) -> Waiting:
    """Return a write that may or may not have happened, put to a person; `seconds` is what it took so far."""
    record = {"kind": "waiting", "reason": "in_doubt", **encode_ask(effect), "message": message, "seconds": seconds}
    return cast(Waiting, record)


def read_decision(strand: Strand, effect: CallModel | ToolCall, reason: FinishReason) -> Record | Suspended | Cancelled:
    """Return the `resolved` record that follows the `waiting` record just passed."""
    n = strand.n - 1
    record = strand.take("resolved", "cancelled")
    if record is None:
        return Suspended(reason, (describe_act(effect, strand.path, n, reason),))
    return Cancelled(record["at"]) if record["kind"] == "cancelled" else record


def settle_doubt(resolved: Record, language: str = "en") -> Answer:
    """Return the answer of a write in doubt, from the decision about it, for a model that reads this language."""
    at = resolved["at"]
    match resolved["decision"]:
        case "late":
            return decode_answer(resolved["answer"])
        case "done":
            return ToolReply(True, resolved["output"], None, at, 0.0)
        case "skip":
            return ToolReply(True, {"skipped": True, "note": words_in(language).skipped}, None, at, 0.0)
        case _:
            return Failed("abandoned", "a person ended the run here: the write is in doubt", at, 0.0)


def describe_act(effect: CallModel | ToolCall, strand: str, n: int, reason: FinishReason) -> WaitingCall:
    """Return what a person reads of an act, which waits in a strand as its record `n`."""
    tool, args = (effect.tool, effect.args) if isinstance(effect, ToolCall) else (effect.model, {})
    waiting: WaitingCall = {"strand": strand, "n": n, "tool": tool, "args": args, "reason": reason}
    if isinstance(effect, ToolCall) and effect.origins:
        waiting["origins"] = dict(effect.origins)
    if isinstance(effect, ToolCall) and effect.question:
        waiting["message"] = effect.question
    return waiting
