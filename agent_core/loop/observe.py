"""What a model reads of the calls that were made, and what a run keeps of them. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent_core.effects import ModelReply, Result, ToolCall, ToolReply
from agent_core.loop.judge import Verdict
from agent_core.loop.outcome import CallResult, error_in, output_of
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.loop.run_state import ObservedStep, RunState
from agent_core.protocol.clip import as_text, clip, clip_value
from agent_core.protocol.dialect import Observation
from agent_core.protocol.feedback import Status
from agent_core.protocol.messages import action_message, tool_message
from agent_core.protocol.parse import PlanStep


def observe_calls(
    state: RunState, reply: ModelReply, thought: str | None, results: Sequence[tuple[ToolCall, CallResult]]
) -> ObservedStep:
    """Return what the model reads of each call; trace, sums and the neutral conversation are updated."""
    observations = [_observe(state, reply, thought, index, *made) for index, made in enumerate(results, start=1)]
    action = action_message([(call.id, call.tool, call.args) for call, _ in results], thought)
    answers = [tool_message(each.call.id, each.call.tool, each.text) for each in observations]
    state.transcript.record(action, *answers)
    return ObservedStep(observations, action, answers)


def observe_step(state: RunState, reply: ModelReply, step: PlanStep, call: ToolCall, result: CallResult) -> str:
    """Return what the model will read of a step's call; trace, sums and the neutral conversation are updated."""
    seen = _observe(state, reply, step.description, step.step, call, result)
    action = action_message([(call.id, call.tool, call.args)], step.description)
    state.transcript.record(action, tool_message(call.id, call.tool, seen.text))
    return seen.text


def _observe(
    state: RunState, reply: ModelReply, thought: str | None, index: int, call: ToolCall, result: CallResult
) -> Observation:
    """Return what the model reads of call `index` of the reply."""
    limit, words = state.config["observation_max_len"], state.words
    status: Status
    if isinstance(result, Verdict):
        status, text, seconds, is_failure, cached, hint = "refused", result.message, 0.0, True, False, ""
        shown = clip(text, limit, words)
    else:
        error, output, seconds, hint = error_in(result, words), output_of(result), result.seconds, ""
        is_failure = error is not None
        status = "failed" if is_failure else "seen"
        whole = error or as_text(output)
        text = shown = clip(whole, limit, words)
        if text is not whole and not is_failure and state.keeps_json:
            shown = clip_value(output, limit, words)
        if text is not whole or call.tool == READ_OBSERVATION:
            hint = _hint_at_rest(state, index, call, whole)
        cached = isinstance(result, ToolReply) and result.cached
        _count_call(state, call, index, result, output, is_failure=is_failure)
    state.trace.add(
        state.budget.steps,
        at=reply.at,
        seconds=reply.seconds + seconds,
        tool=call.tool,
        args=call.args,
        observation=shown,
        thought=thought,
        error=shown if is_failure else None,
        cached=cached,
        origins=call.origins,
    )
    return Observation(call, text, status, hint)


def _hint_at_rest(state: RunState, index: int, call: ToolCall, whole: str) -> str:
    """Return how the model reads on in what it sees cut; from the first such observation on, it may."""
    if state.reads_on(call.tool):
        rest = state.cut_observations.rest_of(call.args)
    else:
        rest = state.cut_observations.add(state.budget.steps, index, whole)
    if rest is None:
        return ""
    reading = state.reading_policy
    if reading is not None and READ_OBSERVATION not in state.tools:
        state.tools = {**state.tools, READ_OBSERVATION: reading}
        state.models.offer(READ_OBSERVATION, reading)
    return state.feedback.reading(**asdict(rest))


def _count_call(state: RunState, call: ToolCall, index: int, result: Result, output: Any, *, is_failure: bool) -> None:
    if result.at > state.at:
        state.at = result.at
    state.trace.count_call(call.tool, result.seconds)
    if not is_failure and not (call.tool == READ_OBSERVATION and state.reads_on(call.tool)):
        place = f"{state.budget.steps}.{index}" if index > 1 else str(state.budget.steps)
        trusted = state.tools[call.tool]["trusted"]
        state.proof.add_answer(call.tool, place, output, trusted=trusted)
