"""react(): the loop of an agent run. It asks, is told, decides, and at last returns an outcome. Pure."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from agent_core.effects import (
    CallReply,
    CallTools,
    Cancelled,
    Classify,
    Decided,
    Decision,
    Deny,
    Edit,
    Effect,
    Failed,
    FinishReason,
    Json,
    Loop,
    ModelReply,
    Result,
    Stop,
    Suspended,
    ToolCall,
    Wait,
)
from agent_core.loop.judge import Verdict, effect_of
from agent_core.loop.outcome import AgentOutcome
from agent_core.loop.run_state import RunState
from agent_core.protocol.parse import Action, Final, ProtocolError

Step = Generator[Effect, Any, AgentOutcome | None]
Judged = list[tuple[ToolCall, Verdict]]


def react(started: Json) -> Loop:
    """One agent run, from its `run_started` record to its outcome: ask, read, judge, act, feed back, again."""
    turn = RunState(started)
    while True:
        if limit := turn.budget.exceeded():
            return turn.end(limit)
        reply = yield turn.question()
        outcome = yield from _step(turn, reply)
        if outcome is not None:
            return outcome


def _step(turn: RunState, reply: ModelReply | Failed | Stop) -> Step:
    if isinstance(reply, Suspended):
        return turn.end("paused", waiting=reply.waiting)
    if isinstance(reply, Cancelled):
        turn.at = reply.at
        return turn.end("cancelled")
    turn.heard(reply)
    if isinstance(reply, Failed):
        return None if turn.falls_back(reply) else turn.end(_model_failure(turn, reply), reply.message)
    if reply.finish_reason == "content_filter":
        turn.trace.add(turn.budget.steps, at=reply.at, seconds=reply.seconds, error="content_filter")
        return turn.end("content_filter")
    step = turn.read(reply)
    if isinstance(step, Final):
        yield Decided(_decision(turn, step))
        return turn.final(reply, step)
    if isinstance(step, ProtocolError):
        yield Decided(_decision(turn, step))
        return turn.unreadable(reply, step)
    return (yield from _act(turn, reply, step))


def _model_failure(turn: RunState, reply: Failed) -> FinishReason:
    if turn.budget.exceeded() == "timeout":
        return "timeout"
    return "content_filter" if reply.reason == "content_filter" else "model_error"


def _act(turn: RunState, reply: ModelReply, actions: Sequence[Action]) -> Step:
    """Judge the calls of one reply, run those that may, and feed back what came of each."""
    thought = actions[0].thought
    judged = yield from _judged(turn, actions)
    runnable = [call for call, verdict in judged if verdict.verdict != "refuse"]
    limit = turn.limit(len(runnable))
    yield Decided(_decision(turn, actions[0], judged, limit))
    if limit:
        turn.not_run(reply, thought, [call for call, _ in judged], f"not run: {limit}")
        return turn.end(limit)
    settled = yield from _approved(turn, judged)
    if isinstance(settled, Stop):
        return _stopped(turn, reply, thought, runnable, settled)
    running = [call for call, verdict in settled if verdict.verdict == "run"]
    results = yield from _run(turn, running)
    replies = {call.id: result for call, result in zip(running, results, strict=False) if isinstance(result, Result)}
    came = [(call, replies.get(call.id, verdict)) for call, verdict in settled]
    made = [(call, result) for call, result in came if not _is_open(result)]
    outcome = turn.acted(reply, thought, made) if made else None
    if len(made) == len(came):
        return outcome
    left = [call for call, result in came if _is_open(result)]
    stops = [result for result in results if isinstance(result, Stop)]
    if stops:
        return _stopped(turn, reply, thought, left, _stop_of(stops))
    limit = turn.limit(len(left)) or "max_tool_calls"
    turn.not_run(reply, thought, left, f"not run: {limit}")
    return turn.end(limit)


def _is_open(result: Result | Verdict) -> bool:
    """Whether a call that may be made was not, or has not ended."""
    return isinstance(result, Verdict) and result.verdict == "run"


def _judged(turn: RunState, actions: Sequence[Action]) -> Generator[Effect, Any, Judged]:
    judged: Judged = []
    beside: Counter[str] = Counter()
    for index, action in enumerate(actions):
        effect = effect_of(turn.tools.get(action.tool), action.args)
        call = turn.call(index, len(actions), action, effect or "write")
        verdict = turn.judge(call, beside=beside[call.tool])
        if effect is None and verdict.verdict != "refuse":  # only a call that may be made is shown to the tool
            call = replace(call, effect=(yield Classify(index, call.tool, call.config)))
            verdict = turn.judge(call, beside=beside[call.tool])
        beside[call.tool] += verdict.verdict != "refuse"
        judged.append((call, verdict))
    return judged


def _approved(turn: RunState, judged: Judged) -> Generator[Effect, Any, Judged | Stop]:
    """The verdicts once a person has spoken on every call that waits."""
    waiting = [call for call, verdict in judged if verdict.verdict == "wait"]
    if not waiting:
        return judged
    decisions = yield Wait(tuple(waiting))
    if isinstance(decisions, Stop):
        return decisions
    spoken = dict(zip([call.id for call in waiting], decisions, strict=True))
    settled = [_spoken(turn, call, verdict, spoken.get(call.id)) for call, verdict in judged]
    if any(isinstance(decision, Edit) for decision in decisions):
        yield Decided({"step": turn.budget.steps, "edited": True, "calls": [_told(*entry) for entry in settled]})
    return settled


def _spoken(turn: RunState, call: ToolCall, verdict: Verdict, decision: Decision | None) -> tuple[ToolCall, Verdict]:
    match decision:
        case None:
            return call, verdict
        case Deny(message):
            told = f"A person refused the call of {call.tool}" + (f": {message}" if message else ".")
            return call, Verdict("refuse", "policy_denied", told)
        case Edit(args):
            turn.edited(decision)
            effect = effect_of(turn.tools.get(call.tool), args) or "write"
            changed = replace(turn.call(0, 1, Action(call.tool, args), effect), id=call.id)
            return changed, turn.judge(changed, edited=True)
        case _:
            return call, Verdict("run")


def _run(turn: RunState, calls: Sequence[ToolCall]) -> Generator[Effect, Any, list[CallReply]]:
    """Run the calls: side by side when all only read, else in order, up to one that stops the run, or to a limit."""
    if len(calls) > 1 and all(call.effect == "read" for call in calls):
        replies = yield CallTools(tuple([turn.starting(call) for call in calls]))
        turn.spent(replies)
        return list(replies)
    done: list[CallReply] = []
    for call in calls:
        if done and (isinstance(done[-1], Stop) or turn.limit(1)):
            break
        replies = yield CallTools((turn.starting(call),))
        turn.spent(replies)
        done.extend(replies)
    return done


def _stop_of(stops: Sequence[Stop]) -> Stop:
    """What stops a batch: a cancellation before all else, and of what waits, everything."""
    suspended = [stop for stop in stops if isinstance(stop, Suspended)]
    if len(suspended) < len(stops):
        return next(stop for stop in stops if isinstance(stop, Cancelled))
    return Suspended(suspended[0].reason, tuple([each for stop in suspended for each in stop.waiting]))


def _stopped(
    turn: RunState, reply: ModelReply, thought: str | None, calls: Sequence[ToolCall], stop: Stop
) -> AgentOutcome:
    if isinstance(stop, Cancelled):
        turn.at = max(turn.at, stop.at)
        turn.not_run(reply, thought, calls, "cancelled")
        return turn.end("cancelled")
    turn.not_run(reply, thought, calls, stop.reason)
    return turn.end(stop.reason, waiting=stop.waiting)


def _decision(
    turn: RunState, step: Action | Final | ProtocolError, judged: Judged | None = None, limit: str | None = None
) -> Json:
    """What the journal says of one reply."""
    record: Json = {"step": turn.budget.steps}
    if isinstance(step, ProtocolError):
        return {**record, "unreadable": {"kind": step.kind, "message": step.message}}
    if step.thought is not None:
        record["thought"] = step.thought
    if step.stripped:
        record["stripped"] = list(step.stripped)
    if isinstance(step, Final):
        return {**record, "final": True}
    record["calls"] = [_told(*entry) for entry in judged or ()]
    return {**record, "limit": limit} if limit else record


def _told(call: ToolCall, verdict: Verdict) -> Json:
    told = {"id": call.id, "tool": call.tool, "args": call.args, "effect": call.effect, "verdict": verdict.verdict}
    return told if verdict.verdict == "run" else {**told, "reason": verdict.reason, "message": verdict.message}
