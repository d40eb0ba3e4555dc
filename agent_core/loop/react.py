"""react(): the loop of an agent run: ask, read, judge, act, feed back, until the outcome. Pure."""

from collections.abc import Generator, Sequence
from typing import Any, cast

from agent_core.effects import Cancelled, Decided, Effect, Failed, Loop, ModelReply, Received, Stop, Suspended, ToolCall
from agent_core.loop.calls import Judged, ask_person, judge_calls, record_calls, run_calls
from agent_core.loop.judge import list_faults
from agent_core.loop.observe import observe_calls
from agent_core.loop.outcome import AgentOutcome, CallResult, explain_failure
from agent_core.loop.run_state import RunState
from agent_core.outputs import FinishReason, Json
from agent_core.protocol.dialect import Reading
from agent_core.protocol.parse import Action, Final, ProtocolError
from agent_core.records import AgentStarted, DecidedBody
from agent_core.rules import BY_DECIMALS
from utools.schema.compiled import compile_schema

Step = Generator[Effect, Any, AgentOutcome | None]
"""One step of the loop; it returns the outcome when the run has ended, else None."""
FALLBACK_REASONS = ("model_error", "timeout")
"""Failures of a model after which the next one is asked."""


def react(started: Json) -> Loop:
    """Run an agent, from its `run_started` record to its outcome."""
    state = RunState(cast(AgentStarted, started))
    del started  # it may be large, and thousands of runs may be under way
    while True:
        reply = yield from ask(state)
        if isinstance(reply, AgentOutcome):
            return reply
        step = _read(state, reply)
        match step:
            case Final():
                return (yield from finish(state, reply, step))
            case ProtocolError():
                outcome = yield from refuse_reply(state, reply, step)
            case _:
                outcome = yield from _act(state, reply, step)
        if outcome is not None:
            return outcome


def ask(state: RunState) -> Generator[Effect, Any, ModelReply | AgentOutcome]:
    """The next reply that has something to read, or the outcome when the run has ended."""
    while True:
        if limit := state.budget.exceeded():
            return state.end(limit)
        question = state.next_question()
        if state.budget.limits.tokens is not None and (shortage := state.find_shortage(question)):
            return state.end("token_budget", shortage)
        reply = yield question
        match reply:
            case ModelReply(finish_reason=reason) if reason != "content_filter":
                state.record_reply(reply)
                return reply
            case _:
                outcome = _handle_no_reply(state, reply)
        if outcome is not None:
            return outcome


def _handle_no_reply(state: RunState, reply: ModelReply | Failed | Stop | Received) -> AgentOutcome | None:
    match reply:
        case Received(messages):
            state.add_messages(messages)
            return None
        case Suspended() | Cancelled():
            return stop_run(state, reply)
        case Failed():
            state.record_reply(reply)
            return _handle_failed_question(state, reply)
        case ModelReply(refusal=why):
            state.record_reply(reply)
            state.trace.add(state.budget.steps, at=reply.at, seconds=reply.seconds, error="content_filter")
            return state.end("content_filter", why)


def _read(state: RunState, reply: ModelReply) -> Reading:
    """Return the legal step that the reply is, or why it is none."""
    any_answer = state.config["answer_schema"] is not None
    step = state.dialect.read_reply(reply, mode=state.config["parsing"], any_answer=any_answer)
    match step:
        case Final():
            return check_answer(state, step)
        case _:
            return step


def check_answer(state: RunState, step: Final) -> Final | ProtocolError:
    """Return the answer, or what is wrong with it: it quotes the error sent last, or does not fit the
    `answer_schema`."""
    schema, words = state.config["answer_schema"], state.words
    if state.feedback.is_quoted(state.repair, step.answer):
        return ProtocolError("wrong_type", words.quoted_error)
    if schema is None:
        return step
    if faults := compile_schema(schema, decimals=state.proof.comparison >= BY_DECIMALS).faults(step.answer, words):
        return ProtocolError("wrong_type", words.wrong_answer.format(faults=list_faults(faults, words, "/answer")))
    return step


def _act(state: RunState, reply: ModelReply, actions: Sequence[Action]) -> Step:
    """Do what the reply asks for: judge its calls, run those that may run, and feed their results back."""
    thought = actions[0].thought
    judged = yield from judge_calls(state, actions)
    verdicts = [verdict.verdict for _, verdict in judged]
    limit = state.budget.forbids(len(verdicts) - verdicts.count("refuse"))
    yield Decided(_record_step(state, actions[0], judged, limit))
    if limit:
        return end_at_limit(state, reply, thought, [call for call, _ in judged], limit)
    settled: Judged | Stop = (yield from ask_person(state, judged)) if "wait" in verdicts else judged
    if not isinstance(settled, list):
        return stop_run(state, settled, reply, thought, [call for call, v in judged if v.verdict != "refuse"])
    made = yield from run_calls(state, settled)
    outcome = _feed_back(state, reply, thought, made.results) if made.results else None
    if not made.open:
        return outcome
    if made.stop:
        return stop_run(state, made.stop, reply, thought, made.open)
    return end_at_limit(state, reply, thought, made.open, state.budget.forbids(len(made.open)) or "max_tool_calls")


def _feed_back(
    state: RunState, reply: ModelReply, thought: str | None, results: Sequence[tuple[ToolCall, CallResult]]
) -> AgentOutcome | None:
    """Send the observations to the model, errors too, or end the run over a failure."""
    step = observe_calls(state, reply, thought, results)
    made = zip(results, step.observations, strict=True)
    failures = [result for (_, result), seen in made if seen.status != "seen"]
    outcome = weigh_failures(state, failures)
    if outcome is None:
        state.feed_results(reply, thought, step, failures)
    return outcome


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def _handle_failed_question(state: RunState, reply: Failed) -> AgentOutcome | None:
    """Ask again with a shorter question where it was too long, ask the next model from now on, or end the run."""
    limit = state.budget.exceeded()
    if reply.overflow and not limit and state.make_room(reply.overflow):
        return None
    if reply.reason in FALLBACK_REASONS and state.models.has_fallback() and not limit:
        state.models.use_fallback()
        return None
    if limit == "timeout":
        return state.end("timeout", reply.message)
    return state.end("content_filter" if reply.reason == "content_filter" else "model_error", reply.message)


def refuse_reply(state: RunState, reply: ModelReply, error: ProtocolError) -> Step:
    """Send an unreadable reply back with what is wrong with it, or end the run."""
    yield Decided({"step": state.budget.steps, "unreadable": {"kind": error.kind, "message": error.message}})
    state.trace.add(state.budget.steps, at=reply.at, seconds=reply.seconds, error=error.message)
    outcome = _count_failure(state, "protocol_error", error.message)
    if outcome is None:
        state.feed_protocol_error(reply, error)
    return outcome


def weigh_failures(state: RunState, failures: Sequence[CallResult]) -> AgentOutcome | None:
    """Return the outcome if these failures end the run; a step without a failure resets the count of repairs."""
    if not failures:
        state.repairs = 0
        return None
    reason, message = explain_failure(failures[0])
    if any(isinstance(result, Failed) and result.reason == "abandoned" for result in failures):
        return state.end("tool_error", message)
    if state.budget.exceeded() == "timeout":
        return state.end("timeout")
    if state.config["repair_scope"] == "all":
        return _count_failure(state, reason, message)
    return state.end("max_steps", message) if state.budget.is_last_step else None


def _count_failure(state: RunState, reason: FinishReason, message: str) -> AgentOutcome | None:
    """Count a repair; the outcome when no more is allowed, or no step is left for it."""
    state.repairs += 1
    if state.repairs > state.config["max_repairs"]:
        return state.end(reason, message)
    return state.end("max_steps", message) if state.budget.is_last_step else None


# ── endings ──────────────────────────────────────────────────────────────────────────────────────


def finish(state: RunState, reply: ModelReply, step: Final) -> Generator[Effect, Any, AgentOutcome]:
    """Return the outcome of a run that has answered."""
    yield Decided(_record_step(state, step))
    return state.finish(reply, step)


def end_at_limit(
    state: RunState, reply: ModelReply, thought: str | None, calls: Sequence[ToolCall], limit: FinishReason
) -> AgentOutcome:
    state.record_not_run(reply, thought, calls, f"not run: {limit}")
    return state.end(limit)


def stop_run(
    state: RunState,
    stop: Stop,
    reply: ModelReply | None = None,
    thought: str | None = None,
    calls: Sequence[ToolCall] = (),
) -> AgentOutcome:
    """Return the outcome of a run that is cancelled or suspended, before a question or over the calls of a reply."""
    if isinstance(stop, Cancelled):
        reason: FinishReason = "cancelled"
        state.at = max(state.at, stop.at) if reply else stop.at
    else:
        reason = stop.reason if reply else "paused"
    if reply:
        state.record_not_run(reply, thought, calls, reason)
    return state.end(reason, waiting=stop.waiting if isinstance(stop, Suspended) else ())


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def _record_step(
    state: RunState, step: Action | Final, judged: Judged | None = None, limit: str | None = None
) -> DecidedBody:
    """Return what the journal says of one readable reply: an answer, or calls with the verdicts on them."""
    record: DecidedBody = {"step": state.budget.steps}
    if step.thought is not None:
        record["thought"] = step.thought
    if step.stripped:
        record["stripped"] = list(step.stripped)
    if judged is None:
        record["final"] = True
        return record
    record["calls"] = record_calls(judged)
    if limit:
        record["limit"] = limit
    return record
