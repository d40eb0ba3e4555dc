"""The recorder: turns what a loop asks into operations on the tape. Pure; a driver performs them.

What the tape holds is served from it and compared; where it ends, the run goes on live. Rows wait in
`pending` until the next operation that needs them on disk, so every prefix of a journal is a legal one.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_core.effects import (
    CallModel,
    CallReply,
    CallTools,
    Cancelled,
    Classify,
    Decided,
    Failed,
    InDoubt,
    Json,
    Loop,
    ModelReply,
    Outcome,
    Result,
    Suspended,
    ToolCall,
    Visit,
    Visits,
    Wait,
    answer_from,
    answer_record,
)
from agent_core.errors import Divergence
from agent_core.journal.approvals import DIED, doubt, resolved, settled, shown, wait
from agent_core.journal.operations import Act, Append, Begin, Fork, Operation, Operations, Sleep, Slot, Spec
from agent_core.journal.record import Record, Row, attempt, child, item, within
from agent_core.journal.strand import Run, Strand

# ── whole runs ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run came out, and what its journal said just before `run_finished`."""

    outcome: Outcome
    journal: Json


NotBegun = Failed | Cancelled | Suspended


def recorded(run: Run, path: str, spec: Spec) -> Generator[Operation, Any, Ended | NotBegun]:
    """A whole run from its root strand; what is left to append is appended at its end."""
    pending: list[Row] = []
    ended = yield from _run(run, path, spec, pending)
    yield from _flush(pending)
    return ended


def _run(run: Run, path: str, spec: Spec, pending: list[Row]) -> Generator[Operation, Any, Ended | NotBegun]:
    strand = run.open(path, pending)
    started = strand.take("run_started", "cancelled", "answered")
    if started is None:
        body = yield Begin(path, spec)
        if isinstance(body, Cancelled):
            strand.write({"kind": "cancelled", "at": body.at})
        if isinstance(body, NotBegun):
            return body
        started = {"kind": "run_started", **body, **({} if spec.spent is None else {"spent": spec.spent})}
        strand.write(started)
    elif started["kind"] == "cancelled":
        return Cancelled(started["at"])
    elif started["kind"] == "answered":
        return _refusal(started)
    elif run.variation is not None:
        started = run.variation.vary(started, spec.inherited)
    loop = run.loops[started["loop"]](started)
    del started  # it may be large, and the loop keeps what it needs
    outcome = yield from _pump(strand, loop)
    journal = run.journal(path)
    if not outcome.waiting:
        closes = {"closes": run.closes(strand.visited)} if strand.visited else {}
        strand.write({"kind": "run_finished", **outcome.finished(), **closes})
    return Ended(outcome, journal)


def _refusal(record: Record) -> Failed:
    """Why a run could not be started, as its strand says where there is no call to answer."""
    refused = answer_from(record)
    assert isinstance(refused, Failed)
    return refused


def _pump(strand: Strand, loop: Loop) -> Generator[Operation, Any, Outcome]:
    reply: Any = None
    while True:
        try:
            effect = loop.send(reply)
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome
        match effect:
            case CallModel():
                reply = yield from _once(strand, effect, doubtful=False)
            case CallTools():
                reply = yield from _batch(strand, effect)
            case Wait():
                reply = wait(strand, effect)
            case Visits():
                reply = yield from _visits(strand, effect)
            case Classify():
                reply = yield from _classify(strand, effect)
            case Decided(record):
                strand.write({"kind": "decided", **record})
                reply = None


def _flush(pending: list[Row]) -> Operations:
    if pending:
        rows = tuple(pending)
        pending.clear()
        yield Append(rows)


def _classify(strand: Strand, effect: Classify) -> Operations:
    """The effect that the coming `decided` record names, or, live, the tool's own answer."""
    record = strand.peek()
    if record is None:
        return (yield replace(effect, strand=strand.path, n=strand.n))
    try:
        return record["calls"][effect.index]["effect"]
    except (KeyError, IndexError):
        raise Divergence(strand.path, strand.n, record, effect) from None


# ── one act ──────────────────────────────────────────────────────────────────────────────────────


def _once(
    strand: Strand, effect: CallModel | ToolCall, *, doubtful: bool
) -> Generator[Operation, Any, CallReply | ModelReply]:
    """Act once: what is answered is served, what is not is done again, or, if doubtful, put to a person."""
    first, lost = strand.n, 0.0
    while True:
        n, head = strand.n, strand.head
        entered_again = strand.write({"kind": "asked", **effect.record()})
        record = strand.take("answered", "cancelled", "waiting")
        if record is not None:
            if record["kind"] != "waiting":
                return _later(_reply(record), lost)
            lost += record["seconds"]
        elif not (entered_again and doubtful):
            key = f"{strand.run.id}/{strand.path}/{first}"
            reply = yield Act(strand.flush(), effect, strand.slot(), key, doubtful)
            if isinstance(reply, Suspended):
                return _put_off(strand, effect, None if entered_again else Slot(strand.path, n, head))
            if not isinstance(reply, InDoubt):
                return _later((yield from _answered(strand, reply, doubtful)), lost)
            doubt(strand, effect, reply.message, reply.seconds)
            lost += reply.seconds
        else:
            doubt(strand, effect, DIED)
        word = resolved(strand, effect, "in_doubt")
        if not isinstance(word, dict):
            return word
        if word["decision"] != "retry":
            return _later(settled(word), lost)


def _put_off(strand: Strand, effect: CallModel | ToolCall, before: Slot | None) -> Suspended:
    """The run was paused before the act, which stays unasked, unless it was asked before the process died."""
    if before is not None:
        strand.back(before)
    return Suspended("paused", ({"strand": strand.path, "n": strand.n, **shown(effect), "reason": "paused"},))


def _later(reply: CallReply | ModelReply, lost: float) -> CallReply | ModelReply:
    """The reply with the time that went by while it was in doubt whether there was one."""
    return replace(reply, seconds=reply.seconds + lost) if lost and isinstance(reply, Result) else reply


def _answered(strand: Strand, reply: Any, doubtful: bool) -> Generator[Operation, Any, CallReply | ModelReply]:
    if isinstance(reply, Cancelled):
        strand.write({"kind": "cancelled", "at": reply.at})
        return reply
    strand.write(answer_record(reply))
    if doubtful:
        yield from _flush(strand.pending)
    answer: ModelReply | Result = reply
    return answer


def _reply(record: Record) -> CallReply | ModelReply:
    return Cancelled(record["at"]) if record["kind"] == "cancelled" else answer_from(record)


# ── several acts ─────────────────────────────────────────────────────────────────────────────────


def _item(strand: Strand, call: ToolCall) -> Generator[Operation, Any, Any]:
    if call.effect == "nested":
        return _nested(strand, call)
    return _once(strand, call, doubtful=call.doubtful)


def _batch(strand: Strand, effect: CallTools) -> Generator[Operation, Any, tuple[CallReply, ...]]:
    """One call stands in this strand; several have a strand each, and are made side by side."""
    if len(effect.calls) == 1:
        return ((yield from _item(strand, effect.calls[0])),)
    run, paths = strand.run, [item(strand.path, strand.n, i) for i in range(len(effect.calls))]
    strand.write({"kind": "asked", "ask": "batch", "tools": [call.tool for call in effect.calls]})
    yield from _flush(strand.pending)
    branches = [_branch(run, path, call) for path, call in zip(paths, effect.calls, strict=True)]
    replies = tuple((yield Fork(branches)))
    _close_batch(strand, paths, replies)
    return replies


def _branch(run: Run, path: str, call: ToolCall) -> Operations:
    """An item on a line of its own: its rows are on disk before its siblings can see that it is done."""
    pending: list[Row] = []
    reply = yield from _item(run.open(path, pending), call)
    yield from _flush(pending)
    return reply


def _close_batch(strand: Strand, paths: Sequence[str], replies: Sequence[CallReply]) -> None:
    """Say that all items are done, unless one of them waits. A batch takes as long as its longest item."""
    if any(isinstance(reply, Suspended) for reply in replies):
        return
    closes = strand.run.closes(paths)
    at = max(reply.at for reply in replies if not isinstance(reply, Suspended))
    if any(isinstance(reply, Cancelled) for reply in replies):
        strand.write({"kind": "cancelled", "at": at, "closes": closes})
        return
    seconds = max(reply.seconds for reply in replies if isinstance(reply, Result))
    strand.write({"kind": "answered", "reply": "batch", "at": at, "seconds": seconds, "closes": closes})


def _nested(strand: Strand, call: ToolCall) -> Generator[Operation, Any, CallReply]:
    """A run in a child strand, under this call; it waits when the child waits."""
    run, path = strand.run, child(strand.path, call.tool, strand.n)
    strand.write({"kind": "asked", **call.record()})
    if path not in run.tape:
        refused = strand.take("answered", "cancelled")
        if refused is not None:
            return _tool_reply(refused)
    ended = yield from _run(run, path, Spec(call.tool, call.config, call.inherited), strand.pending)
    reply = _came_out(ended)
    if isinstance(reply, Suspended):
        return reply
    record = {"kind": "cancelled", "at": reply.at} if isinstance(reply, Cancelled) else answer_record(reply)
    strand.write({**record, "closes": run.closes([path])})
    return reply


def _tool_reply(record: Record) -> CallReply:
    reply = _reply(record)
    assert not isinstance(reply, ModelReply)
    return reply


def _came_out(ended: Ended | NotBegun) -> CallReply:
    if not isinstance(ended, Ended):
        return ended
    outcome = ended.outcome
    if outcome.waiting:
        return Suspended(outcome.finish_reason, outcome.waiting)
    answer = outcome.answer()
    return Cancelled(answer.at) if outcome.finish_reason == "cancelled" else answer


# ── the visits of a workflow ─────────────────────────────────────────────────────────────────────


def _visits(strand: Strand, effect: Visits) -> Operations:
    """Drives node visits side by side; each that ends may let others start."""

    def start(visits: Sequence[Visit]) -> list[Operations]:
        return [_visit(strand, visit) for visit in visits]

    yield from _flush(strand.pending)
    return (yield Fork(start(effect.first), lambda done: start(effect.more(*done))))


def _causes(strand: Strand, visit: Visit) -> tuple[str, ...]:
    own = child(strand.path, visit.node, visit.n)
    if visit.attempt:
        return (attempt(own, visit.attempt - 1),)
    before = [child(strand.path, node, n) for node, n in visit.after]
    return tuple(_last_attempt(strand, path) for path in before)


def _last_attempt(strand: Strand, path: str) -> str:
    k = 0
    while attempt(path, k + 1) in strand.run.strands:
        k += 1
    return attempt(path, k)


def _visit(strand: Strand, visit: Visit) -> Generator[Operation, Any, tuple[Visit, Any, Json | None]]:
    """One visit on a line of its own: (the visit, its reply or nested outcome, a nested run's journal)."""
    run, path = strand.run, attempt(child(strand.path, visit.node, visit.n), visit.attempt)
    strand.visited.append(path)
    run.causes[path] = _causes(strand, visit)
    if visit.delay and path not in run.tape:
        kept_from = yield Sleep(path, visit.delay)
        if isinstance(kept_from, Suspended):
            return visit, kept_from, None
    pending: list[Row] = []
    if visit.call.effect == "nested":
        call = visit.call
        ended = yield from _run(run, path, Spec(call.tool, call.config, call.inherited, visit.spent), pending)
        reply, journal = (ended.outcome, ended.journal) if isinstance(ended, Ended) else (ended, None)
        if isinstance(ended, Ended) and ended.outcome.waiting:  # none of its own records closes what is below it
            strand.visited += [below for below in run.strands if below != path and within(below, path)]
        if isinstance(ended, Failed) and not run.strands[path].n:
            run.strands[path].write(answer_record(ended))
    else:
        reply, journal = (yield from _item(run.open(path, pending), visit.call)), None
    yield from _flush(pending)
    return visit, reply, journal
