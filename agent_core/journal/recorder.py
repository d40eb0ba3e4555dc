"""The recorder: turns what a loop asks into operations on the tape. Pure; a driver performs them.

What is on the tape is served from it and compared; where it ends, the run continues live. Rows wait in `pending` until
the next operation that needs them on disk, so every prefix of a journal is a legal one.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from agent_core.effects import (
    AwaitEvent,
    CallModel,
    CallReply,
    CallTools,
    Cancelled,
    Classify,
    Decided,
    Effect,
    Failed,
    Items,
    ModelReply,
    Outcome,
    Result,
    Suspended,
    ToolCall,
    ToolReply,
    Visit,
    Visits,
    Wait,
)
from agent_core.errors import Divergence
from agent_core.journal.acts import append_pending, record_act, record_question, reply_of, serve_act
from agent_core.journal.approvals import wait_for_person
from agent_core.journal.awaiting import await_event
from agent_core.journal.operations import Begin, Fork, Operation, Operations, Sleep, Spec
from agent_core.journal.path import attempt, child, is_below, item
from agent_core.journal.record import Record, Row
from agent_core.journal.started import share_alike
from agent_core.journal.strand import Run, Strand
from agent_core.outputs import Json
from agent_core.records import (
    Answered,
    FailureAnswered,
    Finished,
    Started,
    ToolAnswered,
    decode_answer,
    encode_answer,
    encode_asked,
)
from agent_core.records import Cancelled as CancelledRecord

# ── whole runs ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a run, and its journal just before `run_finished`."""

    outcome: Outcome
    journal: Json


NotStarted = Failed | Cancelled | Suspended
RunEnd = Generator[Operation, Any, Ended | NotStarted]


def record_run(run: Run, path: str, spec: Spec) -> RunEnd:
    """Return a whole run from its root strand; the rows that are left are appended at its end."""
    pending: list[Row] = []
    ended = yield from _record_run(run, path, spec, pending)
    yield from append_pending(pending)
    return ended


def continue_run(run: Run, path: str) -> RunEnd:
    """Return the same of a run whose beginning is recorded, so that nothing is prepared for it."""
    return record_run(run, path, Spec("", {}))


def _record_run(run: Run, path: str, spec: Spec, pending: list[Row]) -> RunEnd:
    strand = run.open(path, pending)
    started = strand.take("run_started", "cancelled", "answered")
    if started is None:
        body = yield (begin := Begin(strand.slot(), spec, tuple(pending)))
        if isinstance(body, Cancelled):
            strand.write({"kind": "cancelled", "at": body.at})
        if isinstance(body, NotStarted):
            return body
        started = share_alike(begin.started(body))
        del begin, body
        strand.write(cast(Started, started))
    elif started["kind"] == "cancelled":
        return Cancelled(started["at"])
    elif started["kind"] == "answered":
        return _read_refusal(started)
    elif run.variation is not None:
        started = run.variation.vary(path, started, spec.inherited)
    loop, taken = run.loops[started["loop"]](started), started.get("taken", {})
    del started  # it may be large, and the loop keeps what it needs
    outcome = yield from _pump(strand, loop)
    journal = taken.get("journal") or run.journal_of(path)
    if not outcome.waiting:
        closes = {"closes": run.close(strand.visited)} if strand.visited else {}
        strand.write(cast(Finished, {"kind": "run_finished", **outcome.finished(), **closes}))
    return Ended(outcome, journal)


def _read_refusal(record: Record) -> Failed:
    """Return why a run could not be started: its strand says so where there is no call to answer."""
    refusal = decode_answer(record)
    assert isinstance(refusal, Failed)
    return refusal


def _pump(strand: Strand, loop: Generator[Effect, Any, Any]) -> Generator[Operation, Any, Any]:
    """Record what a loop asks for; gives what it returns."""
    reply: Any = None
    while True:
        try:
            effect = loop.send(reply)
        except StopIteration as stop:
            return stop.value
        match effect:
            case CallModel():
                reply = serve_act(strand, effect)
                if reply is None:
                    reply = yield from record_question(strand, effect)
            case Decided(record):
                decided: Any = {"kind": "decided", **record}
                strand.write(decided)
                reply = None
            case CallTools((call,)) if call.effect != "nested" and (served := serve_act(strand, call)) is not None:
                reply = (served,)
            case CallTools():
                reply = yield from _record_calls(strand, effect)
            case Wait():
                reply = wait_for_person(strand, effect)
            case AwaitEvent():
                reply = yield from await_event(strand, effect)
            case Visits():
                reply = yield from _record_visits(strand, effect)
            case Items():
                reply = yield from _record_items(strand, effect)
            case Classify():
                reply = yield from _classify(strand, effect)


def _classify(strand: Strand, effect: Classify) -> Operations:
    """Return the effect that the coming `decided` record names, or, live, the tool's own answer."""
    record = strand.peek()
    if record is None:
        return (yield replace(effect, strand=strand.path, n=strand.n))
    try:
        return record["calls"][effect.index]["effect"]
    except (KeyError, IndexError):
        raise Divergence(strand.path, strand.n, record, effect) from None


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _record_calls(strand: Strand, effect: CallTools) -> Generator[Operation, Any, tuple[CallReply, ...]]:
    """One call is recorded in this strand; several have a strand each, and are made at the same time."""
    if len(effect.calls) == 1:
        return ((yield from _record_call(strand, effect.calls[0])),)
    run, paths = strand.run, [item(strand.path, strand.n, i) for i in range(len(effect.calls))]
    strand.write({"kind": "asked", "ask": "batch", "tools": [call.tool for call in effect.calls]})
    yield from append_pending(strand.pending)
    branches = [_record_item(run, path, call) for path, call in zip(paths, effect.calls, strict=True)]
    replies = tuple((yield Fork(branches)))
    _close_batch(strand, paths, replies)
    return replies


def _record_call(strand: Strand, call: ToolCall) -> Generator[Operation, Any, Any]:
    if call.effect == "nested":
        return _record_nested(strand, call)
    return record_act(strand, call, once_only=call.once_only)


def _record_item(run: Run, path: str, call: ToolCall) -> Operations:
    """Return an item of a batch in its own strand: its rows are on disk before the other items can see that it is
    done."""
    pending: list[Row] = []
    reply = yield from _record_call(run.open(path, pending), call)
    yield from append_pending(pending)
    return reply


def _close_batch(strand: Strand, paths: Sequence[str], replies: Sequence[CallReply]) -> None:
    """Write that all items are done, unless one of them waits. A batch takes as long as its longest item."""
    if any(isinstance(reply, Suspended) for reply in replies):
        return
    closes = strand.run.close(paths)
    at = max(reply.at for reply in replies if not isinstance(reply, Suspended))
    if any(isinstance(reply, Cancelled) for reply in replies):
        strand.write({"kind": "cancelled", "at": at, "closes": closes})
        return
    seconds = max(reply.seconds for reply in replies if isinstance(reply, Result))
    strand.write({"kind": "answered", "reply": "batch", "at": at, "seconds": seconds, "closes": closes})


def _record_nested(strand: Strand, call: ToolCall) -> Generator[Operation, Any, CallReply]:
    """A run in a child strand, under this call; it waits when the child waits."""
    run, path = strand.run, child(strand.path, call.tool, strand.n)
    strand.write(encode_asked(call))
    if path not in run.tape:
        refused = strand.take("answered", "cancelled")
        if refused is not None:
            return reply_of(refused)
    spec = Spec(call.tool, call.config, call.inherited, language=call.language)
    ended = yield from _record_run(run, path, spec, strand.pending)
    reply = _reply_of_outcome(ended.outcome, call.language) if isinstance(ended, Ended) else ended
    if isinstance(reply, Suspended):
        return reply
    record: CancelledRecord | Answered
    if isinstance(reply, Cancelled):
        record = {"kind": "cancelled", "at": reply.at, "closes": run.close([path])}
    else:
        assert not isinstance(reply, ModelReply)
        answered = cast(ToolAnswered | FailureAnswered, encode_answer(reply))
        answered["closes"] = run.close([path])
        record = answered
    strand.write(record)
    return reply


def _reply_of_outcome(outcome: Outcome, language: str) -> CallReply:
    if outcome.waiting:
        return Suspended(outcome.finish_reason, outcome.waiting)
    answer = outcome.answer(language)
    return Cancelled(answer.at) if outcome.finish_reason == "cancelled" else answer


# ── the visits of a workflow ─────────────────────────────────────────────────────────────────────


def _record_visits(strand: Strand, effect: Visits) -> Operations:
    """Node visits at the same time; each that ends may let others start."""

    def start(visits: Sequence[Visit]) -> list[Operations]:
        return [_record_visit(strand, visit) for visit in visits]

    yield from append_pending(strand.pending)
    return (yield Fork(start(effect.first), lambda ended: start(effect.more(*ended))))


def _record_visit(strand: Strand, visit: Visit) -> Generator[Operation, Any, tuple[Visit, Any, Json | None]]:
    """One visit in its own strand: (the visit, its reply or nested outcome, a nested run's journal)."""
    run, path = strand.run, attempt(child(strand.path, visit.node, visit.n), visit.attempt)
    strand.visited.append(path)
    run.causes[path] = strand.causes_of(visit)
    if visit.delay and path not in run.tape:
        stopped = yield Sleep(path, visit.delay)
        if isinstance(stopped, Suspended):
            return visit, stopped, None
    return (yield from _record_visited(strand, path, visit))


def _record_visited(
    strand: Strand, path: str, visit: Visit
) -> Generator[Operation, Any, tuple[Visit, Any, Json | None]]:
    """What a visit, or an item of one, asks for: its loop, or its one call."""
    if visit.loop is None:
        return (yield from _record_visited_call(strand, path, visit))
    pending: list[Row] = []
    reply = yield from _pump(strand.run.open(path, pending), visit.loop())
    if isinstance(reply, Suspended):
        strand.visited += [below for below in strand.run.strands if is_below(below, path)]
    yield from append_pending(pending)
    return visit, reply, None


def _record_visited_call(
    strand: Strand, path: str, visit: Visit
) -> Generator[Operation, Any, tuple[Visit, Any, Json | None]]:
    """The one call of a visit, in a strand of its own; a nested run is that strand's run."""
    pending: list[Row] = []
    if visit.call.effect == "nested":
        reply, journal = yield from _record_nested_visit(strand, path, visit, pending)
    else:
        reply, journal = (yield from _record_call(strand.run.open(path, pending), visit.call)), None
    yield from append_pending(pending)
    return visit, reply, journal


def _record_items(strand: Strand, effect: Items) -> Generator[Operation, Any, Suspended | None]:
    """Calls for the items of a list, recorded as a batch: each in a strand with the item's number."""
    if effect.delay and strand.peek() is None:
        stopped = yield Sleep(strand.path, effect.delay)
        if isinstance(stopped, Suspended):
            return stopped
    paths: list[str] = []

    def start(visits: Sequence[Visit]) -> list[Operations]:
        here = [item(strand.path, n, visit.n) for visit in visits]
        paths.extend(here)
        return [_record_visited(strand, path, visit) for path, visit in zip(here, visits, strict=True)]

    n = strand.n
    strand.write({"kind": "asked", "ask": "batch", "tools": list(effect.tools)})
    yield from append_pending(strand.pending)
    ended = yield Fork(start(effect.first), lambda end: start(effect.more(*end)))
    _close_batch(strand, paths, [_call_reply_of(reply) for _, reply, _ in ended])
    return None


def _call_reply_of(reply: Any) -> CallReply:
    """Return the reply to a call, or what a nested run's outcome is as one."""
    return reply if isinstance(reply, ToolReply | NotStarted) else _reply_of_outcome(reply, "en")


def _record_nested_visit(
    strand: Strand, path: str, visit: Visit, pending: list[Row]
) -> Generator[Operation, Any, tuple[Any, Json | None]]:
    run, call = strand.run, visit.call
    ended = yield from _record_run(run, path, Spec(call.tool, call.config, call.inherited, visit.spent), pending)
    if isinstance(ended, Ended):
        if ended.outcome.waiting:  # none of its own records closes what is below it
            strand.visited += [below for below in run.strands if is_below(below, path)]
        return ended.outcome, ended.journal
    if isinstance(ended, Failed) and not run.strands[path].n:
        run.strands[path].write(encode_answer(ended))
    return ended, None
