"""plan(): the loop of plan mode: a plan, a person's word on it, its steps in order, the summary. Pure.

It is made of the parts of react(): questions, repairs, judge, approvals, budgets and endings are the same.
"""

from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import Any, cast

from agent_core.decisions import Deny, Edit
from agent_core.effects import Decided, Effect, Loop, ModelReply, Stop, Wait
from agent_core.loop.calls import CallOutcomes, ask_person, judge_calls, record_calls, run_calls
from agent_core.loop.judge import Verdict, denied_by_person
from agent_core.loop.observe import observe_step
from agent_core.loop.outcome import AgentOutcome, CallResult, explain_failure, has_succeeded, output_of
from agent_core.loop.plan_check import PLAN, judge_plan, read_steps
from agent_core.loop.react import ask, check_answer, end_at_limit, finish, refuse_reply, stop_run, weigh_failures
from agent_core.loop.references import MissingValue, fill_references
from agent_core.loop.run_state import RunState
from agent_core.outputs import Json
from agent_core.protocol.parse import Action, Final, Plan, PlanStep, ProtocolError
from agent_core.protocol.reading import read_step
from agent_core.records import AgentStarted, DecidedBody, PlanStatus, StepStatus

Asking = Generator[Effect, Any, "Planned | AgentOutcome | None"]
"""It gives a plan that may begin, or the outcome when the run has ended; None to ask the model again."""


@dataclass(slots=True)
class Planned:
    """A plan under way: its steps, what they gave so far, and what the model reads of each."""

    reply: ModelReply
    steps: list[PlanStep]
    outputs: dict[int, Any]
    report: list[str]
    failure: CallResult | None = None
    """That of the last step, where it failed."""


def plan(started: Json) -> Loop:
    """Run an agent in plan mode, from its `run_started` record to its outcome."""
    state = RunState(cast(AgentStarted, started))
    del started  # it may be large, and thousands of runs may be under way
    while True:
        planned = yield from _ask_for_plan(state)
        if isinstance(planned, AgentOutcome):
            return planned
        outcome = yield from _run_steps(state, planned)
        if outcome is None and planned.failure and state.config["plan"]["on_failure"] == "replan":
            outcome = weigh_failures(state, [planned.failure])
            if outcome is None:
                state.feed_report("replan", planned.report)
                continue
        return outcome or (yield from _summarize(state, planned))


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────


def _ask_for_plan(state: RunState) -> Generator[Effect, Any, Planned | AgentOutcome]:
    """A plan that may begin, or how the run ended."""
    while True:
        reply = yield from ask(state)
        if isinstance(reply, AgentOutcome):
            return reply
        step = _read(state, reply, (Plan, Final))
        if isinstance(step, Final):
            return (yield from finish(state, reply, step))
        if isinstance(step, ProtocolError):
            found: Planned | AgentOutcome | None = yield from refuse_reply(state, reply, step)
        else:
            found = yield from _settle_plan(state, reply, step)
        if found is not None:
            return found


def _settle_plan(state: RunState, reply: ModelReply, made: Plan) -> Asking:
    """Judge a plan, put it to a person where the author wants that, and judge what the person made of it."""
    steps = list(made.steps)
    refusal = _judge(state, steps)
    record: DecidedBody = {"step": state.budget.steps, "plan": [asdict(step) for step in steps]}
    if made.thought is not None:
        record["thought"] = made.thought
    if made.stripped:
        record["stripped"] = list(made.stripped)
    if refusal:
        record["refused"] = {"kind": refusal.reason or "invalid_action", "message": refusal.message}
    yield Decided(record)
    if refusal is None and (limit := state.budget.forbids(1)):
        return _end_at_limit(state, reply, made, limit)
    if refusal is None and state.config["plan"]["confirm"]:
        answer = yield from _confirm(state, reply, steps)
        if isinstance(answer, AgentOutcome):
            return answer
        steps, refusal = answer
    if refusal:
        return _send_back(state, reply, refusal)
    state.feed_plan(Plan(tuple(steps), made.thought))
    return Planned(reply, steps, {}, [])


def _judge(state: RunState, steps: list[PlanStep], *, edited: bool = False) -> Verdict | None:
    left = state.budget.remaining().get("tool_calls")
    return judge_plan(
        steps,
        state.tools,
        state.proof,
        state.words,
        grammar=state.references,
        marks=state.marks,
        calls_left=left,
        edited=edited,
    )


def _confirm(
    state: RunState, reply: ModelReply, steps: list[PlanStep]
) -> Generator[Effect, Any, AgentOutcome | tuple[list[PlanStep], Verdict | None]]:
    """The steps as a person approved or wrote them, with the refusal when that is what was decided."""
    action = Action(PLAN, {"steps": [asdict(step) for step in steps]})
    call = state.make_call(0, 2, action, "read")._replace(idempotent=True)
    decisions = yield Wait((call,))
    if isinstance(decisions, Stop):
        return stop_run(state, decisions, reply, None, [call])
    match decisions[0]:
        case Deny(message):
            return steps, denied_by_person(PLAN, message, state.words)
        case Edit(args):
            return (yield from _read_edited(state, args, call.args))
        case _:
            return steps, None


def _read_edited(
    state: RunState, args: Json, before: Json
) -> Generator[Effect, Any, tuple[list[PlanStep], Verdict | None]]:
    """A person's plan: its values are the person's, and it is judged like the model's."""
    steps = read_steps(args, state.words)
    if isinstance(steps, ProtocolError):
        return [], Verdict("refuse", "invalid_action", steps.message)
    state.proof.add_edit(args, before)
    refusal = _judge(state, steps, edited=True)
    record: DecidedBody = {"step": state.budget.steps, "edited": True, "plan": [asdict(step) for step in steps]}
    if refusal:
        record["refused"] = {"kind": refusal.reason or "invalid_action", "message": refusal.message}
    yield Decided(record)
    return steps, refusal


def _send_back(state: RunState, reply: ModelReply, refusal: Verdict) -> AgentOutcome | None:
    """Tell the model what is wrong with its plan, or end the run."""
    state.trace.add(state.budget.steps, at=reply.at, seconds=reply.seconds, error=refusal.message)
    outcome = weigh_failures(state, [refusal])
    if outcome is None:
        state.feed_protocol_error(reply, ProtocolError("wrong_type", refusal.message))
    return outcome


def _end_at_limit(state: RunState, reply: ModelReply, made: Plan, limit: Any) -> AgentOutcome:
    calls = [state.make_call(s.step, 2, Action(s.tool, s.parameters), "read") for s in made.steps]
    return end_at_limit(state, reply, made.thought, calls, limit)


# ── its steps ────────────────────────────────────────────────────────────────────────────────────


def _run_steps(state: RunState, planned: Planned) -> Generator[Effect, Any, AgentOutcome | None]:
    """Run the steps in order, up to a stop, a limit, or a failure that the author does not let pass."""
    on_failure = state.config["plan"]["on_failure"]
    for step in planned.steps:
        outcome = yield from _run_step(state, planned, step)
        if outcome is not None:
            return outcome
        if planned.failure is None:
            state.repairs = 0
        elif on_failure == "abort":
            return state.end(*explain_failure(planned.failure))
        elif on_failure == "replan":
            return None
    return None


def _run_step(state: RunState, planned: Planned, step: PlanStep) -> Generator[Effect, Any, AgentOutcome | None]:
    """One step: its references filled in, judged, run; what came of it stands in `planned`."""
    planned.failure = None
    try:
        shape = state.shape_of_arguments(step.tool)
        args = fill_references(step.parameters, planned.outputs, state.references, state.words, shape)
    except MissingValue as error:
        missing = Verdict("refuse", "invalid_action", str(error))
        yield from _close_step(state, planned, step, "skipped", missing)
        return None
    timing = _timing_of(state, planned.reply)
    action = Action(step.tool, args, step.description)
    if limit := state.budget.exceeded() if state.plans < 4 else state.budget.forbids(1):
        return end_at_limit(state, timing, step.description, [state.make_call(step.step, 2, action, "read")], limit)
    judged = yield from judge_calls(state, [action], first=step.step)
    running: PlanStatus = {"step": step.step, "status": "running"}
    yield Decided({"step": state.budget.steps, "plan_step": running, "calls": record_calls(judged)})
    state.mark_step(step.step, "running")
    settled = yield from ask_person(state, judged)
    if isinstance(settled, Stop):
        return stop_run(state, settled, timing, step.description, [call for call, _ in judged])
    made = yield from run_calls(state, settled)
    if made.stop:
        return stop_run(state, made.stop, timing, step.description, made.open)
    return (yield from _read_result(state, planned, step, made, timing))


def _timing_of(state: RunState, reply: ModelReply) -> ModelReply:
    """Return the reply for the trace of a step: its seconds are those of the first."""
    return reply if not state.trace.has_step(state.budget.steps) else reply._replace(seconds=0.0)


def _read_result(
    state: RunState, planned: Planned, step: PlanStep, made: CallOutcomes, timing: ModelReply
) -> Generator[Effect, Any, AgentOutcome | None]:
    call, result = made.results[0]
    text = observe_step(state, timing, step, call, result)
    if not has_succeeded(result):
        yield from _close_step(state, planned, step, "failed", result, text)
        if outcome := _find_ending(state, result):
            return outcome
        return None
    planned.outputs[step.step] = output_of(result)  # type: ignore[arg-type]
    yield from _close_step(state, planned, step, "done", None, text)
    return None


def _find_ending(state: RunState, result: CallResult) -> AgentOutcome | None:
    """Return the outcome when a failure ends the run whatever the author says of failures."""
    if getattr(result, "reason", None) == "abandoned":
        return state.end("tool_error", explain_failure(result)[1])
    return state.end("timeout") if state.budget.exceeded() == "timeout" else None


def _close_step(
    state: RunState, planned: Planned, step: PlanStep, status: StepStatus, failure: CallResult | None, text: str = ""
) -> Generator[Effect, Any, None]:
    """Record how a step ended."""
    ended: PlanStatus = {"step": step.step, "status": status}
    if failure is not None:
        ended["message"] = text or explain_failure(failure)[1]
    yield Decided({"step": state.budget.steps, "plan_step": ended})
    state.mark_step(step.step, status)
    planned.failure = failure
    line = {"done": state.words.step_done, "failed": state.words.step_failed, "skipped": state.words.step_skipped}
    said = text if status == "done" else ended.get("message", "")
    planned.report.append(line[status].format(step=step.step, what=step.description, tool=step.tool, text=said))


# ── the summary ──────────────────────────────────────────────────────────────────────────────────


def _summarize(state: RunState, planned: Planned) -> Generator[Effect, Any, AgentOutcome]:
    """The answer, made of what the steps gave."""
    state.must_answer = True
    state.feed_report("summary", planned.report)
    while True:
        reply = yield from ask(state)
        if isinstance(reply, AgentOutcome):
            return reply
        step = _read(state, reply, (Final,))
        if isinstance(step, Final):
            return (yield from finish(state, reply, step))
        outcome = yield from refuse_reply(state, reply, step)
        if outcome is not None:
            return outcome


def _read(state: RunState, reply: ModelReply, wanted: tuple[type, ...]) -> Any:
    """Return the step that the reply is, one of the wanted kinds, or why it is none."""
    step = read_step(
        reply,
        mode=state.config["parsing"],
        any_answer=state.config["answer_schema"] is not None,
        words=state.words,
        rules=state.rules,
        names=state.tools,
    )
    if isinstance(step, ProtocolError):
        return step
    if not isinstance(step, wanted):
        return ProtocolError("unknown_type", state.words.plan_wanted if Plan in wanted else state.words.answer_wanted)
    return check_answer(state, step) if isinstance(step, Final) else step
