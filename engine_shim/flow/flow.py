"""flow(): the loop of a workflow run. It asks for node visits and returns an outcome. Pure."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agent_core.effects import Cancelled, Effect, Failed, Outcome, Suspended, ToolCall, ToolReply, Visit, Visits
from agent_core.loop.outcome import AgentOutcome
from agent_core.outputs import Json
from engine_shim.definition.graph import Edge
from engine_shim.definition.model import AGENT
from engine_shim.errors import DefinitionError
from engine_shim.flow.approval import LetThrough, ask_and_call, make_call, needs_person
from engine_shim.flow.awaiting import call_and_await
from engine_shim.flow.branch import NeedsJudgement, choose_edges, judged_part, judgement_config, judgement_name
from engine_shim.flow.call import build_call
from engine_shim.flow.ending import End, nested_output, read_end
from engine_shim.flow.foreach import ForeachEnd, build_items, foreach
from engine_shim.flow.outcome import error_of, outcome_of
from engine_shim.flow.state import CompiledFlow, Key, State, VisitState
from engine_shim.flow.visit_limit import next_node


def flow(started: Json, compiled: CompiledFlow | None = None) -> Generator[Effect, Any, Outcome]:
    """One workflow run, from its `run_started` record to its outcome. `compiled` is its definition, if read."""
    state = State(started, compiled)
    del started  # it may be large, and thousands of runs may be under way
    first = _start_visits(state)
    if first:
        yield Visits(tuple(first), lambda visit, reply, journal: _end_visit(state, visit, reply, journal))
    return outcome_of(state)


# ── starting ─────────────────────────────────────────────────────────────────────────────────────


def _start_visits(state: State) -> list[Visit]:
    """Return the visits that may start now.

    A branch that failed, waits or was cancelled stops; the others continue. If they stopped as well, what had started
    by then would depend on time, and a replay would find another path.
    """
    visits: list[Visit] = []
    while True:
        while state.has_unjudged and not state.nested_must_wait:
            visits.append(_start_judgement(state, *state.next_unjudged()))
        name = next_node(state)
        if name is None:
            return visits
        visit = state.begin(name)
        started = _start_visit(state, visit)
        if started is not None:
            state.under_way.add(visit.key)
            visits.append(replace(started, after=(*visit.after, *_judgements_before(state, visit))))


def _start_visit(state: State, visit: VisitState) -> Visit | None:
    """Return the visit with what it calls; None for one that ends at once, because it has nothing to call, or
    cannot."""
    node = state.nodes[visit.node]
    if node.foreach is not None:
        items = build_items(state, visit)
        if isinstance(items, ForeachEnd):
            _end_foreach(state, visit, items)
            return None
        return Visit(visit.node, visit.n, items[0].call, loop=partial(foreach, state, visit, items))
    call = build_call(state, visit)
    if not isinstance(call, ToolCall):
        _fail(state, visit, call)
        return None
    left = state.seconds_left(visit)
    if left is not None and left <= 0:
        _fail(state, visit, _error("timeout", "no time was left to run it", visit))
        return None
    call = state.bind(call, left)
    make = call_and_await if state.awaits(node) else make_call
    if needs_person(node, call):
        return Visit(visit.node, visit.n, call, loop=partial(ask_and_call, state, call, make))
    if state.awaits(node):
        return Visit(visit.node, visit.n, call, loop=partial(call_and_await, call))
    state.budget.writes += call.once_only
    return Visit(visit.node, visit.n, call)


def _judgements_before(state: State, visit: VisitState) -> Iterator[Key]:
    """Yield the judgements about the visits before this one, which it follows from as well."""
    for key in visit.after:
        earlier = state.visits[key]
        edges = state.graph.outgoing[earlier.node] if earlier.judgements else ()
        yield from ((judgement_name(edge), earlier.n) for edge in edges if edge.index in earlier.judgements)


# ── ending ───────────────────────────────────────────────────────────────────────────────────────


def _end_visit(state: State, visit: Visit, reply: Any, journal: Json | None) -> Sequence[Visit]:
    """Apply the reply to a visit, and name the visits that may start now."""
    key = (visit.node, visit.n)
    state.under_way.discard(key)
    if key in state.judging:
        _end_judgement(state, visit, reply)
        return _start_visits(state)
    ended = state.visits[key]
    if isinstance(reply, LetThrough):
        visit, reply = replace(visit, call=reply.call, loop=None), reply.reply
        state.budget.writes += visit.call.once_only
    if isinstance(reply, ForeachEnd):
        _end_foreach(state, ended, reply)
        return _start_visits(state)
    if not isinstance(reply, ToolReply | Failed | Cancelled | Suspended):  # a nested run, which has outputs if it waits
        ended.set_output(nested_output(state, reply, journal))
        ended.messages = reply.added if isinstance(reply, AgentOutcome) else ()
    retry: Visit | None = None
    match read_end(state, visit.call, reply, journal):
        case Suspended(waiting=waiting):
            ended.waiting = waiting
        case Cancelled(at):
            _cancel(state, at)
        case End() as end:
            retry = _end_call(state, ended, visit, end)
    return [*([retry] if retry else []), *_start_visits(state)]


def _end_call(state: State, ended: VisitState, visit: Visit, end: End) -> Visit | None:
    """Apply the end of a node's call; return the next attempt, if there is one."""
    ended.set_output(end.output)
    if end.spent is None:
        _charge(state, ended, visit, end.answer)
    retry = _build_retry(state, ended, visit, end.spent) if end.may_pass else None
    if retry is not None:
        if end.spent is not None:  # what this attempt spent is part of what the next one starts with, and counted there
            ended.seconds += visit.delay
        return retry
    if end.spent is not None:
        _charge(state, ended, visit, end.answer)
    if end.kind is None:
        _take_edges(state, ended)
    elif end.kind == "cancelled":
        state.cancelled = True
    else:
        _fail(state, ended, _error(end.kind, end.message, ended))
    return None


def _end_foreach(state: State, ended: VisitState, end: ForeachEnd) -> None:
    """The items have ended; one that failed fails the node unless the others continue."""
    ended.seconds, state.at = end.seconds, max(state.at, end.at)
    if end.failure is None:
        _succeed(state, ended, end.output)
        return
    error = _error(*end.failure, ended)
    ended.set_output({"error": {key: error[key] for key in ("kind", "message")}, "output": end.output})
    _fail(state, ended, error)


def _charge(state: State, ended: VisitState, visit: Visit, reply: ToolReply | Failed) -> None:
    """Count the time of an attempt, and what it spent."""
    ended.seconds += reply.seconds + visit.delay
    state.at = max(state.at, reply.at)
    if isinstance(reply, ToolReply):
        state.budget.add_result(reply)


def _cancel(state: State, at: str) -> None:
    state.cancelled, state.at = True, max(state.at, at)


def _succeed(state: State, visit: VisitState, output: Any) -> None:
    visit.set_output(output)
    _take_edges(state, visit)


def _fail(state: State, visit: VisitState, error: Json) -> None:
    """The node has failed for good: its error edges are taken, or the run fails with it."""
    if not visit.has_output:
        visit.set_output({"error": {key: error[key] for key in ("kind", "message")}, "output": None})
    visit.failure = error
    _take_edges(state, visit)


def _take_edges(state: State, visit: VisitState) -> None:
    """Take the edges that hold, or note which one a model has to judge first."""
    try:
        choice = choose_edges(state, visit, failed=visit.failure is not None)
    except DefinitionError as error:
        visit.error = error_of(error)
        return
    if isinstance(choice, NeedsJudgement):
        state.add_unjudged(visit, choice.edge)
    elif choice is None:
        visit.error = visit.failure
    else:
        if state.nodes[visit.node].on_error == "fail_at_end":
            visit.error = visit.failure
        state.finish(visit, choice)


def _build_retry(state: State, ended: VisitState, visit: Visit, spent: Json | None) -> Visit | None:
    """Return the node's next attempt, in a strand of its own and with the time that is left; None when there is
    none."""
    retry = state.nodes[ended.node].retry
    if not retry or visit.attempt + 1 >= retry.max_attempts:
        return None
    delay = retry.delay * retry.backoff**visit.attempt
    before = visit.delay if spent is not None else 0.0
    left = state.seconds_left(ended)
    if left is not None:
        left -= before + delay
        if left <= (spent or {}).get("seconds", 0.0):
            return None
    state.under_way.add(ended.key)
    return replace(visit, call=state.bind(visit.call, left), attempt=visit.attempt + 1, delay=delay, spent=spent)


def _error(kind: str, message: str, visit: VisitState) -> Json:
    return {"kind": kind, "message": message, "where": visit.node}


# ── edges that a model judges ────────────────────────────────────────────────────────────────────


def _start_judgement(state: State, judged: VisitState, edge: Edge) -> Visit:
    """Return the visit in which a model says whether an edge is taken."""
    name = judgement_name(edge)
    state.judging[name, judged.n] = judged, edge
    state.under_way.add((name, judged.n))
    output = judged_part(state.nodes[judged.node], judged.output) if state.judges_answer else judged.output
    config = judgement_config(edge, output, edge.model or state.definition.model or "")
    call = state.bind(ToolCall(name, AGENT, config, config, "nested", None), state.seconds_left(judged))
    edges = state.graph.outgoing[judged.node]
    earlier = [(judgement_name(other), judged.n) for other in edges if other.index in judged.judgements]
    return Visit(name, judged.n, call, after=(judged.key, *earlier))


def _end_judgement(state: State, visit: Visit, reply: Any) -> None:
    """Apply what a model said about an edge; an edge that could not be judged fails the run."""
    judged, edge = state.judging.pop((visit.node, visit.n))
    match reply:
        case Suspended(waiting=waiting):
            judged.waiting = waiting
        case Cancelled(at):
            _cancel(state, at)
        case Failed(message=message):
            judged.error = {"kind": "definition", "message": message, "where": f"edges/{edge.index}"}
        case _ if reply.waiting:
            judged.waiting = reply.waiting
        case _:
            answer = reply.answer()
            _charge(state, judged, visit, answer)
            if answer.success:
                judged.judgements[edge.index] = answer.output
                _take_edges(state, judged)
            elif reply.finish_reason == "cancelled":
                state.cancelled = True
            else:
                message = f"{edge.ask!r} could not be judged: {answer.error}"
                judged.error = {"kind": reply.finish_reason, "message": message, "where": f"edges/{edge.index}"}
