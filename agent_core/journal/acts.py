"""One act on the tape: `asked` and `answered`, or the doubt between them. Pure."""

from collections.abc import Generator
from typing import Any, cast

from agent_core.effects import Answer, CallModel, CallReply, Cancelled, InDoubt, Received, Result, Suspended, ToolCall
from agent_core.journal.approvals import DIED, describe_act, doubt_record, read_decision, settle_doubt
from agent_core.journal.kinds import beginning
from agent_core.journal.operations import Act, Append, Operation, Operations, Slot
from agent_core.journal.record import Record, Row
from agent_core.journal.strand import Strand
from agent_core.records import Received as ReceivedRecord
from agent_core.records import decode_answer, encode_answer, encode_asked

_ASKED, _ANSWERED = beginning("asked"), beginning("answered")
_ASKS, _ANSWERS = slice(len(_ASKED)), slice(len(_ANSWERED))
"""Where they stand in a record."""
ActReply = Generator[Operation, Any, CallReply | Received]


def serve_act(strand: Strand, effect: CallModel | ToolCall) -> Answer | None:
    """Serve an act from the tape if it was asked and answered there without a doubt in between; else None, and
    nothing has been read."""
    match strand.rows[strand.n : strand.n + 2]:
        case [asked, answered] if asked.data[_ASKS] == _ASKED and answered.data[_ANSWERS] == _ANSWERED:
            pass
        case _:
            return None
    strand.write(encode_asked(effect))
    record = strand.take("answered")
    assert record is not None
    return decode_answer(record)


def record_question(strand: Strand, effect: CallModel) -> ActReply:
    """Ask a model once, unless messages were added: those are recorded in place of the question."""
    record = None if strand.is_next(_ASKED) else strand.peek()
    if record is not None and record["kind"] == "received":
        strand.take("received")
        return Received(tuple(record["messages"]))
    return (yield from record_act(strand, effect, once_only=False))


def record_act(strand: Strand, effect: CallModel | ToolCall, *, once_only: bool) -> ActReply:
    """Act once. An answer on the tape is served; an act without one is done again, or, if `once_only`, put to a
    person."""
    first, lost = strand.n, 0.0
    while True:
        before = strand.slot()
        was_asked = strand.write(encode_asked(effect))
        record = strand.take("answered", "cancelled", "waiting")
        if record is not None:
            if record["kind"] != "waiting":
                return _add_seconds(reply_of(record), lost)
            lost += record["seconds"]
        elif not (was_asked and once_only):
            key = f"{strand.run.id}/{strand.path}/{first}"
            reply = yield Act(strand.flush(), effect, strand.slot(), key, once_only)
            if isinstance(reply, Received):
                return _write_received(strand, reply, before)
            if isinstance(reply, Suspended):
                return _pause_before(strand, effect, None if was_asked else before)
            if not isinstance(reply, InDoubt):
                return _add_seconds((yield from _write_answer(strand, reply, once_only)), lost)
            strand.write(doubt_record(effect, reply.message, reply.seconds))
            lost += reply.seconds
        else:
            strand.write(doubt_record(effect, DIED))
        decision = read_decision(strand, effect, "in_doubt")
        if not isinstance(decision, dict):
            return decision
        if decision["decision"] != "retry":
            return _add_seconds(settle_doubt(decision, effect.language if isinstance(effect, ToolCall) else "en"), lost)


def _pause_before(strand: Strand, effect: CallModel | ToolCall, before: Slot | None) -> Suspended:
    """Return what a run waits with that was paused before an act: unasked, unless a process that died had asked it."""
    if before is not None:
        strand.step_back(before)
    return Suspended("paused", (describe_act(effect, strand.path, strand.n, "paused"),))


def _write_received(strand: Strand, reply: Received, before: Slot) -> Received:
    """Messages came before the act: they are written in place of what was not asked."""
    strand.step_back(before)
    strand.write(cast(ReceivedRecord, {"kind": "received", "messages": list(reply.messages)}))
    return reply


def _add_seconds(reply: CallReply, lost: float) -> CallReply:
    """Return the reply, with the time that passed while it was in doubt."""
    return reply._replace(seconds=reply.seconds + lost) if lost and isinstance(reply, Result) else reply


def _write_answer(strand: Strand, reply: Any, once_only: bool) -> Generator[Operation, Any, CallReply]:
    if isinstance(reply, Cancelled):
        strand.write({"kind": "cancelled", "at": reply.at})
        return reply
    strand.write(encode_answer(reply))
    if once_only:
        yield from append_pending(strand.pending)
    answer: CallReply = reply
    return answer


def append_pending(pending: list[Row]) -> Operations:
    """Append the rows that wait, if any do."""
    if pending:
        rows = tuple(pending)
        pending.clear()
        yield Append(rows)


def reply_of(record: Record) -> CallReply:
    """Return the reply that an `answered` or `cancelled` record holds."""
    return Cancelled(record["at"]) if record["kind"] == "cancelled" else decode_answer(record)
