"""flow(): the loop of a workflow run. It asks for node visits and returns an outcome. Pure."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from agent_core.effects import Cancelled, Effect, Failed, Json, Outcome, Suspended, ToolCall, ToolReply, Visit, Visits
from agent_core.loop.judge import without_filled
from agent_core.policy import ToolPolicy, effect_of
from engine_shim.definition.graph import Edge
from engine_shim.definition.template import Names
from engine_shim.errors import DefinitionError
from engine_shim.flow.ask import JUDGE, judge_of, question
from engine_shim.flow.branch import Unjudged, taken
from engine_shim.flow.outcome import error_of, outcome_of
from engine_shim.flow.schedule import schedule
from engine_shim.flow.state import Key, State, Visited

RETRIED = ("model_error", "tool_error")
"""What may be better the next time."""


def flow(started: Json) -> Generator[Effect, Any, Outcome]:
    """One workflow run, from its `run_started` record to its outcome."""
    state = State(started)
    del started  # it may be large, and thousands of runs may be under way
    first = _start(state)
    if first:
        yield Visits(tuple(first), lambda visit, reply, journal: _ended(state, visit, reply, journal))
    return outcome_of(state)


# ── starting ─────────────────────────────────────────────────────────────────────────────────────


def _start(state: State) -> list[Visit]:
    """The visits that may start now.

    A branch that failed, waits or was cancelled stops; the others go on. If they stopped as well, what had started
    by then would depend on time, and a replay would find another path.
    """
    visits: list[Visit] = []
    while True:
        while state.unjudged and not state.turn_taken:
            visits.append(_judge(state, *state.next_unjudged()))
        ready = [name for name in schedule(state.progress) if not (_is_nested(state, name) and state.turn_taken)]
        if not ready:
            return visits
        for name in ready:
            visited = state.begin(name)
            call = _call(state, visited)
            if not isinstance(call, ToolCall):
                _failed(state, visited, call)
                break  # what it leads to may change what else may start
            state.under_way.add((visited.node, visited.n))
            state.budget.writes += call.once_only
            visits.append(Visit(visited.node, visited.n, call, after=(*visited.after, *_judgements(state, visited))))
            if state.turn_taken:
                break


def _judgements(state: State, visited: Visited) -> Iterator[Key]:
    """What was judged of the visits before this one: it follows from that, too."""
    for key in visited.after:
        earlier = state.visits[key]
        yield from ((judge_of(link), earlier.n) for link in _links(state, earlier) if link.index in earlier.judged)


def _is_nested(state: State, name: str) -> bool:
    return bool(state.tools[state.nodes[name].tool]["effect"] == "nested")


def _call(state: State, visited: Visited) -> ToolCall | Json:
    """The node's call with its placeholders filled, or the error that keeps it from being made."""
    node = state.nodes[visited.node]
    where = f"nodes/{state.index[visited.node]}/config"
    tool = state.tools[node.tool]
    names = Names(state.names(visited.seen), state.definition.secrets)
    try:
        config = names.render(node.config, where)
    except DefinitionError as error:
        return error_of(error)
    if faults := without_filled(names.fills, state.schemas[node.tool].faults(config)):
        message = " ".join(fault.message for fault in faults)
        return {"kind": "definition", "message": message, "where": where}
    left = state.left(visited)
    if left is not None and left <= 0:
        return _error("timeout", "no time was left to run it", visited)
    effect = effect_of(cast(ToolPolicy, tool), config) or "write"
    call = ToolCall(node.id, node.tool, config, config, effect, None, tool["idempotent"], fills=names.fills)
    return state.bound(call, left)


# ── ending ───────────────────────────────────────────────────────────────────────────────────────


def _ended(state: State, visit: Visit, reply: Any, journal: Json | None) -> Sequence[Visit]:
    """Take in what a visit came to, and name those that may start now."""
    state.under_way.discard((visit.node, visit.n))
    if (visit.node, visit.n) in state.judging:
        _judged(state, visit, reply)
        return _start(state)
    visited = state.visits[visit.node, visit.n]
    match reply:
        case Suspended(waiting=waiting):
            visited.waiting = waiting
        case Cancelled(at):
            state.cancelled, state.at = True, max(state.at, at)
        case ToolReply(success=True):
            _took(state, visited, visit, reply)
            _succeeded(state, visited, reply.output)
        case ToolReply() | Failed():
            _took(state, visited, visit, reply)
            error = _plain_error(state, visited, visit, reply)
            again = _next_attempt(state, visited, visit, error, None)
            if again is not None:
                return [again, *_start(state)]
            _failed(state, visited, error)
        case _:
            return [*_nested(state, visited, visit, reply, journal), *_start(state)]
    return _start(state)


def _took(state: State, visited: Visited, visit: Visit, reply: ToolReply | Failed) -> None:
    visited.seconds += reply.seconds + visit.delay
    state.at = max(state.at, reply.at)
    if isinstance(reply, ToolReply):
        state.budget.add_result(reply)


def _plain_error(state: State, visited: Visited, visit: Visit, reply: ToolReply | Failed) -> Json:
    """A plain tool's failure, or a nested run that could not be started; what it gave is there to read."""
    kind = "tool_error"
    if isinstance(reply, Failed):
        out_of_time = reply.reason == "timeout" and visit.call.within != _usual(state, visit)
        kind = "definition" if reply.reason == "definition" else "timeout" if out_of_time else kind
    message = reply.message if isinstance(reply, Failed) else reply.error or "the tool failed"
    error = _error(kind, message, visited)
    visited.give({"error": {"kind": kind, "message": message}, "output": getattr(reply, "output", None)})
    return error


def _usual(state: State, visit: Visit) -> Any:
    return state.tools[visit.call.tool]["within"]


def _nested(state: State, visited: Visited, visit: Visit, outcome: Any, journal: Json | None) -> Sequence[Visit]:
    """A nested run's outcome; its output is there to read however it ended."""
    visited.give({**outcome.output, "journal": journal})
    if outcome.waiting:
        visited.waiting = outcome.waiting
        return ()
    answer = outcome.answer()
    message = (outcome.output.get("error") or {}).get("message", answer.error)
    error = _error(outcome.finish_reason, message, visited)
    again = None if answer.success else _next_attempt(state, visited, visit, error, outcome.spent)
    if again is not None:  # what this one spent is among what the next one starts with, and is counted there
        visited.seconds += visit.delay
        return (again,)
    _took(state, visited, visit, answer)
    if outcome.finish_reason == "cancelled":
        state.cancelled = True
    elif answer.success:
        _succeeded(state, visited, visited.output)
    else:
        _failed(state, visited, error)
    return ()


def _succeeded(state: State, visited: Visited, output: Any) -> None:
    visited.give(output)
    _branched(state, visited)


def _failed(state: State, visited: Visited, error: Json) -> None:
    """The node has failed for good: its error edges are taken, or the run fails with it."""
    if not visited.given:
        visited.give({"error": {key: error[key] for key in ("kind", "message")}, "output": None})
    visited.failure = error
    _branched(state, visited)


def _branched(state: State, visited: Visited) -> None:
    """Take the edges that hold, or note what has to be judged first."""
    try:
        links = taken(state, visited, failed=visited.failure is not None)
    except DefinitionError as fault:
        visited.error = error_of(fault)
        return
    if isinstance(links, Unjudged):
        state.unjudged.append((visited, links.link))
    elif links is None:
        visited.error = visited.failure
    else:
        state.go_on(visited, links)


def _judge(state: State, visited: Visited, link: Edge) -> Visit:
    """The visit in which a model says whether an edge is taken."""
    name = judge_of(link)
    state.judging[name, visited.n] = visited, link
    state.under_way.add((name, visited.n))
    config = question(link, visited.output, state.definition.model or "")
    call = state.bound(ToolCall(name, JUDGE, config, config, "nested", None), state.left(visited))
    earlier = [(judge_of(other), visited.n) for other in _links(state, visited) if other.index in visited.judged]
    return Visit(name, visited.n, call, after=((visited.node, visited.n), *earlier))


def _judged(state: State, visit: Visit, reply: Any) -> None:
    """Take in what a model said of an edge; one that could not be judged fails the run."""
    visited, link = state.judging.pop((visit.node, visit.n))
    match reply:
        case Suspended(waiting=waiting):
            visited.waiting = waiting
        case Cancelled(at):
            state.cancelled, state.at = True, max(state.at, at)
        case Failed(message=message):
            visited.error = {"kind": "definition", "message": message, "where": f"edges/{link.index}"}
        case _ if reply.waiting:
            visited.waiting = reply.waiting
        case _:
            answer = reply.answer()
            _took(state, visited, visit, answer)
            if answer.success:
                visited.judged[link.index] = answer.output
                _branched(state, visited)
            elif reply.finish_reason == "cancelled":
                state.cancelled = True
            else:
                told = f"{link.ask!r} could not be judged: {answer.error}"
                visited.error = {"kind": reply.finish_reason, "message": told, "where": f"edges/{link.index}"}


def _links(state: State, visited: Visited) -> Sequence[Edge]:
    return state.progress.graph.outgoing[visited.node]


def _next_attempt(state: State, visited: Visited, visit: Visit, error: Json, spent: Json | None) -> Visit | None:
    """The node's next attempt, in a strand of its own and with what is left; None when there is none.

    Only what may be better the next time is tried again, and never what must not happen twice.
    """
    retry = state.nodes[visited.node].retry
    written = visit.call.once_only if spent is None else spent["writes"]
    if not retry or visit.attempt + 1 >= retry.max_attempts or error["kind"] not in RETRIED or written:
        return None
    delay = retry.delay * retry.backoff**visit.attempt
    before = visit.delay if spent is not None else 0.0
    left = state.left(visited)
    if left is not None:
        left -= before + delay
        if left <= (spent or {}).get("seconds", 0.0):
            return None
    state.under_way.add((visited.node, visited.n))
    return replace(visit, call=state.bound(visit.call, left), attempt=visit.attempt + 1, delay=delay, spent=spent)


def _error(kind: str, message: str, visited: Visited) -> Json:
    return {"kind": kind, "message": message, "where": visited.node}
