"""The calls of one reply: judged, put to a person where that is needed, run. Pure."""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from agent_core.decisions import Decision, Deny, Edit
from agent_core.effects import (
    CallReply,
    CallTools,
    Cancelled,
    Classify,
    Decided,
    Effect,
    Failed,
    Stop,
    Suspended,
    ToolCall,
    ToolReply,
    Wait,
)
from agent_core.loop.judge import RUN, Verdict, denied_by_person, judge, with_schema
from agent_core.loop.outcome import CallResult
from agent_core.loop.run_state import RunState
from agent_core.outputs import Json
from agent_core.policy import arguments_of, effect_of
from agent_core.protocol.parse import Action
from agent_core.records import DecidedBody, JudgedCall
from utools.tool import Effect as ToolEffect

Judged = list[tuple[ToolCall, Verdict]]


def judge_calls(state: RunState, actions: Sequence[Action], *, first: int = 0) -> Generator[Effect, Any, Judged]:
    """The verdict on each action; a tool whose effect only its host knows is asked for it. `first` is their number."""
    judged: Judged = []
    in_this_reply: dict[str, int] = {}
    for index, action in enumerate(actions):
        tool, policy = action.tool, state.tools.get(action.tool)
        known, earlier = effect_of(policy, action.args), in_this_reply.get(tool, 0)
        effect = known or "write"
        verdict = _judge(state, action, effect, earlier=earlier)
        if known is None and verdict.verdict != "refuse":  # a refused call is not shown to the tool
            effect = yield Classify(index, tool, arguments_of(policy, action.args))
            verdict = _judge(state, action, effect, earlier=earlier)
        in_this_reply[tool] = earlier + (verdict.verdict != "refuse")
        call = state.make_call(first + index, first + len(actions), action, effect, verdict.origins)
        judged.append((call._replace(question=verdict.question) if verdict.question else call, verdict))
    return judged


def _judge(
    state: RunState,
    action: Action,
    effect: ToolEffect,
    *,
    edited: bool = False,
    earlier: int = 0,
    schema: Json | None = None,
) -> Verdict:
    """Return the verdict on a call; `earlier` counts the calls of the same tool before it in the same reply. `schema`
    is that of a tool which has changed since the run began."""
    tool, words = action.tool, state.words
    tools = state.tools if schema is None else with_schema(state.tools, tool, schema)
    made = state.calls_made(tool) + earlier
    verdict = judge(
        tool,
        action.args,
        effect,
        tools=tools,
        made=made,
        proof=state.proof,
        edited=edited,
        after_untrusted=state.after_untrusted,
        marks=state.marks,
        words=words,
    )
    if verdict.verdict == "run" and state.reads_on(tool) and (fault := state.cut_observations.fault(action.args)):
        message = words.refused_arguments.format(tool=tool, faults=fault)
        return Verdict("refuse", "invalid_action", message)
    return verdict


def ask_person(state: RunState, judged: Judged) -> Generator[Effect, Any, Judged | Stop]:
    """The verdicts once a person has decided about every call that waits."""
    waiting = [call for call, verdict in judged if verdict.verdict == "wait"]
    if not waiting:
        return judged
    decisions = yield Wait(tuple(waiting))
    if isinstance(decisions, Stop):
        return decisions
    by_id = dict(zip([call.id for call in waiting], decisions, strict=True))
    settled = [_apply_decision(state, call, verdict, by_id.get(call.id)) for call, verdict in judged]
    if any(isinstance(decision, Edit) for decision in decisions):
        record: DecidedBody = {"step": state.budget.steps, "edited": True, "calls": record_calls(settled)}
        yield Decided(record)
    return settled


def _apply_decision(
    state: RunState, call: ToolCall, verdict: Verdict, decision: Decision | None
) -> tuple[ToolCall, Verdict]:
    match decision:
        case None:
            return call, verdict
        case Deny(message):
            return call, denied_by_person(call.tool, message, state.words)
        case Edit(args, schema=schema):
            state.proof.add_edit(args, call.args)
            effect, action = effect_of(state.tools.get(call.tool), args) or "write", Action(call.tool, args)
            verdict = _judge(state, action, effect, edited=True, schema=schema)
            return state.make_call(0, 1, action, effect, verdict.origins)._replace(id=call.id), verdict
        case _:
            return call, RUN


def record_calls(judged: Judged) -> list[JudgedCall]:
    """Return the calls of a `decided` record."""
    return [_record_call(call, verdict) for call, verdict in judged]


def _record_call(call: ToolCall, verdict: Verdict) -> JudgedCall:
    record: JudgedCall = {
        "id": call.id,
        "tool": call.tool,
        "args": call.args,
        "effect": call.effect,
        "verdict": verdict.verdict,
    }
    if verdict.verdict != "run":
        record["reason"], record["message"] = verdict.reason, verdict.message
    if call.origins:
        record["origins"] = call.origins
    return record


class CallOutcomes(NamedTuple):
    """What became of the calls of one reply: those with a result or a refusal, those still open, and what stopped."""

    results: list[tuple[ToolCall, CallResult]]
    open: list[ToolCall]
    stop: Stop | None


def run_calls(state: RunState, settled: Judged) -> Generator[Effect, Any, CallOutcomes]:
    """Run the calls that may run, at once when all only read, else in order, up to a stop or a limit."""
    runnable = [call for call, verdict in settled if verdict.verdict == "run"]
    if len(runnable) == 1:
        replies: Sequence[CallReply] = yield CallTools((state.bind_limits(runnable[0]),))
        state.record_results(replies)
    else:
        replies = yield from _run(state, runnable)
    results: list[tuple[ToolCall, CallResult]] = []
    still_open: list[ToolCall] = []
    stops: list[Stop] = []
    made = iter(replies)
    for call, verdict in settled:
        if verdict.verdict != "run":
            results.append((call, verdict))
            continue
        match next(made, None):
            case ToolReply() | Failed() as reply:
                results.append((call, reply))
            case Cancelled() | Suspended() as stop:
                still_open.append(call)
                stops.append(stop)
            case _:
                still_open.append(call)
    return CallOutcomes(results, still_open, _merge_stops(stops) if stops else None)


def _run(state: RunState, calls: Sequence[ToolCall]) -> Generator[Effect, Any, list[CallReply]]:
    if len(calls) > 1 and all(call.effect == "read" for call in calls):
        replies = yield CallTools(tuple([state.bind_limits(call) for call in calls]))
        state.record_results(replies)
        return list(replies)
    made: list[CallReply] = []
    for call in calls:
        if made and (isinstance(made[-1], Stop) or state.budget.forbids(1)):
            break
        replies = yield CallTools((state.bind_limits(call),))
        state.record_results(replies)
        made.extend(replies)
    return made


def _merge_stops(stops: Sequence[Stop]) -> Stop:
    """Return what stops a batch: a cancellation first; of several that wait, all together."""
    suspended = [stop for stop in stops if isinstance(stop, Suspended)]
    if len(suspended) < len(stops):
        return next(stop for stop in stops if isinstance(stop, Cancelled))
    return Suspended(suspended[0].reason, tuple([entry for stop in suspended for entry in stop.waiting]))
