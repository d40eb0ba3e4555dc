"""The state of one agent run: what was spent, said and traced so far, and how it may end. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from agent_core.effects import (
    CallModel,
    CallReply,
    Edit,
    Failed,
    FinishReason,
    Json,
    ModelReply,
    Result,
    ToolCall,
    ToolReply,
)
from agent_core.loop.budget import Budget, Limits
from agent_core.loop.judge import Verdict, judge, listed
from agent_core.loop.options import Options
from agent_core.loop.outcome import AgentOutcome, error_of
from agent_core.loop.provenance import texts_in
from agent_core.loop.result import error_in, failure, output_of, succeeded, tool_failed
from agent_core.loop.trace import Trace
from agent_core.loop.transcript import Transcript
from agent_core.protocol.clip import as_text, clip
from agent_core.protocol.dialect import ECHO_MAX, Dialect, Entry, Observation, Reading
from agent_core.protocol.feedback import Feedback, Repair
from agent_core.protocol.json_dialect import JsonDialect
from agent_core.protocol.messages import action_message, tool_message
from agent_core.protocol.parse import Action, Final, ProtocolError
from agent_core.protocol.tools_dialect import ToolsDialect, names_of
from utools.schema.compiled import compile_schema

FALLS_BACK = ("model_error", "timeout")
"""Failures of a model after which the next one is asked."""


class RunState:
    """A run in the making, from its `run_started` record."""

    def __init__(self, started: Json) -> None:
        self.config: Json = started["config"]
        self.prose = Feedback(started["texts"])
        self.tools: Json = started["tools"]
        self.started_at = self.at = started["at"]
        self.trusted: list[str] = list(started["trusted"])
        spent = dict(started.get("spent") or {})
        used = spent.pop("used_tools", {})
        self.budget = Budget(Limits(**started["limits"]), **spent)
        self.trace = Trace(self.config["observation_max_len"], self.config["trace_max_bytes"], tools=dict(used))
        self._steps_before = self.budget.steps
        self.repairs = 0
        self.repair: Repair | None = None
        self._prefix: str = started["call_prefix"]
        self._options = Options(started["options"])
        self._own_model = True
        self._models: list[str] = [self.config["model"], *self.config.get("fallback_models", ())]
        self._run: str = started["run"]
        self._dialect = _dialect(self.config, self.prose, self.tools)
        sent = _with_notice(self._dialect.opening(started["messages"]), self.prose.notice(self.budget))
        kept = [message for message in started["messages"] if message["role"] != "system"]
        room = self.config["max_input_tokens"] or started.get("window")
        beside = started["options"].get("tools")
        self.transcript = Transcript(sent, kept, room, beside=beside, rules=started.get("cuts", 1))

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def question(self) -> CallModel:
        """The next question, cut to size, with what it may cost in time."""
        cut = self.transcript.fit()
        step = self.budget.steps + 1
        within = self.budget.within(self.budget.limits.call_seconds)
        messages, digest = self.transcript.wire(), self.transcript.digest
        question = self.budget.steps - self._steps_before
        options = self._options.now(
            first=not self.trace.tools,
            last=self.prose.notice(self.budget) is not None,
            own=self._own_model,
        )
        return CallModel(step, question, self._models[0], messages, digest, options, within, cut)

    def falls_back(self, reply: Failed) -> bool:
        """Whether another model is asked from now on, since this one gave no answer."""
        if reply.reason not in FALLS_BACK or len(self._models) == 1 or self.budget.exceeded():
            return False
        del self._models[0]
        self._own_model = False
        return True

    def call(self, index: int, count: int, action: Action, effect: str) -> ToolCall:
        """A call with what its tool gets, bound by what is left now."""
        policy = self.tools.get(action.tool, {})
        return ToolCall(
            id=self._call_id(index, count),
            tool=action.tool,
            args=action.args,
            config={**policy.get("preset", {}), **action.args},
            effect=effect,
            within=self.budget.within(policy.get("timeout") or self.budget.limits.call_seconds),
            idempotent=policy.get("idempotent", False),
            fills=policy.get("fills", ()),
            rate_limit=policy.get("rate_limit"),
        )

    def _call_id(self, index: int, count: int) -> str:
        suffix = f"_{index}" if count > 1 else ""
        return f"call_{self._prefix}_{self.budget.steps}{suffix}"

    def starting(self, call: ToolCall) -> ToolCall:
        """The call as it starts now: counted, and bound by what the calls before it have left."""
        self.budget.tool_calls += 1
        self.budget.writes += call.doubtful
        if call.effect == "nested":
            return replace(call, within=None, inherited={**self.budget.remaining(), "trusted": list(self.trusted)})
        within = self.budget.within(call.within)
        return call if within == call.within else replace(call, within=within)

    def judge(self, call: ToolCall, *, edited: bool = False, beside: int = 0) -> Verdict:
        """The verdict on a call; `beside` counts those of the same tool that the same reply makes before it."""
        made = self.trace.tools.get(call.tool, {}).get("count", 0) + beside
        return judge(
            call.tool, call.args, call.effect, tools=self.tools, made=made, trusted=self.trusted, edited=edited
        )

    def limit(self, running: int) -> FinishReason | None:
        """The limit that keeps this step's calls from being run, if one does."""
        if self.budget.no_calls_left():
            return "max_tool_calls"
        if not running:
            return None
        if self.budget.last_step:
            return "max_steps"
        return self.budget.exceeded() or ("max_tool_calls" if self.budget.no_calls_left(running) else None)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def heard(self, reply: ModelReply | Failed) -> None:
        self.budget.heard(reply)
        self.at = reply.at

    def read(self, reply: ModelReply) -> Reading:
        """The legal step that the reply is, or why it is none."""
        schema = self.config["answer_schema"]
        parsed = self._dialect.read(reply, mode=self.config["parsing"], any_answer=schema is not None)
        if not isinstance(parsed, Final):
            return parsed
        if self.prose.is_quoted(self.repair, parsed.answer):
            told = "The answer only repeats the error message. Answer the user's question itself."
            return ProtocolError("wrong_type", told)
        if schema is not None and (faults := compile_schema(schema).faults(parsed.answer)):
            told = f"The answer does not have the form that was asked for: {listed(faults, '/answer')}."
            return ProtocolError("wrong_type", told)
        return parsed

    # ── going on ──────────────────────────────────────────────────────────────────────────────────

    def unreadable(self, reply: ModelReply, error: ProtocolError) -> AgentOutcome | None:
        """Send the reply back with what was wrong with it, or end the run."""
        self.trace.add(self.budget.steps, at=reply.at, seconds=reply.seconds, error=error.message)
        outcome = self._failed("protocol_error", error.message, counts=True)
        if outcome is None:
            echoed = clip(reply.content, ECHO_MAX) or "(an empty reply)"
            own, heard = self._dialect.unreadable(reply, error.message, self._call_id(0, 1))
            self.transcript.add(own, [{"role": "assistant", "content": echoed}])
            self._hear(heard, (), Repair(self.prose.error(error.message), tool_failed=False))
        return outcome

    def acted(
        self, reply: ModelReply, thought: str | None, results: Sequence[tuple[ToolCall, CallReply | Verdict]]
    ) -> AgentOutcome | None:
        """Feed the observations back, errors too, or end the run."""
        told = [self._observe(reply, thought, call, result) for call, result in results]
        neutral = [tool_message(each.call.id, each.call.tool, each.text) for each in told]
        action = action_message([(call.id, call.tool, call.args) for call, _ in results], thought)
        self.transcript.keep(action, *neutral)
        failures = [result for _, result in results if not succeeded(result)]
        outcome = self._weighed(failures)
        if outcome is None:
            own, heard = self._dialect.acted(reply, thought, told)
            self.transcript.add(own, [action])
            wrong = [self.prose.told(each.how, each.call.tool, each.text) for each in told if each.how != "seen"]
            self._hear(heard, neutral, Repair("\n\n".join(wrong), tool_failed(failures)) if wrong else None)
        return outcome

    def _hear(self, heard: Sequence[Entry], neutral: Sequence[Json], repair: Repair | None) -> None:
        """Send what came of a step; `repair` is what of it says that something went wrong."""
        self.repair, notice = repair, self.prose.notice(self.budget)
        text = "\n\n".join([entry.content for entry in heard])
        told = [{"role": "user", "content": part} for part in (None if neutral else text, notice) if part]
        self.transcript.add(_with_notice(heard, notice), [*neutral, *told])

    def _weighed(self, failures: Sequence[CallReply | Verdict]) -> AgentOutcome | None:
        """Whether what failed ends the run; a step without a failure starts the count anew."""
        if not failures:
            self.repairs = 0
            return None
        reason, message = failure(failures[0])
        if any(isinstance(result, Failed) and result.reason == "abandoned" for result in failures):
            return self.end("tool_error", message)
        if self.budget.exceeded() == "timeout":
            return self.end("timeout")
        return self._failed(reason, message, counts=self.config["repair_scope"] == "all")

    def _failed(self, reason: FinishReason, message: str, *, counts: bool) -> AgentOutcome | None:
        self.repairs += counts
        if counts and self.repairs > self.config["max_repairs"]:
            return self.end(reason, message)
        return self.end("max_steps", message) if self.budget.last_step else None

    def _observe(
        self, reply: ModelReply, thought: str | None, call: ToolCall, result: CallReply | Verdict
    ) -> Observation:
        """What the model is told of a call; the trace and the sums are told too."""
        limit = self.config["observation_max_len"]
        how: Literal["seen", "failed", "refused"] = "refused"
        if isinstance(result, Verdict):
            text, seconds, failed = result.message, 0.0, True
        else:
            assert isinstance(result, Result)
            error = error_in(result)
            text, seconds, failed = clip(error or as_text(output_of(result)), limit), result.seconds, error is not None
            how = "failed" if failed else "seen"
            self._account(call, result, failed=failed)
        cached = isinstance(result, ToolReply) and result.cached
        self.trace.add(
            self.budget.steps,
            at=reply.at,
            seconds=reply.seconds + seconds,
            tool=call.tool,
            args=call.args,
            observation=clip(text, limit),
            thought=thought,
            error=clip(text, limit) if failed else None,
            cached=cached,
        )
        return Observation(call, text, how)

    def _account(self, call: ToolCall, result: Result, *, failed: bool) -> None:
        self.at = max(self.at, result.at)
        self.trace.used(call.tool, result.seconds)
        if not failed and self.tools[call.tool]["trusted"]:
            self.trusted.extend(texts_in(output_of(result)))

    def spent(self, replies: Sequence[CallReply]) -> None:
        """Count what calls took: side by side, as long as the longest."""
        answers = [reply for reply in replies if isinstance(reply, Result)]
        for answer in answers:
            self.budget.did(answer)
        self.budget.seconds += max([answer.seconds for answer in answers], default=0.0)

    def edited(self, edit: Edit) -> None:
        """What a person wrote is trusted text."""
        self.trusted.extend(texts_in(edit.args))

    def not_run(self, reply: ModelReply, thought: str | None, calls: Sequence[ToolCall], why: str) -> None:
        for call in calls:
            self.trace.add(
                self.budget.steps,
                at=reply.at,
                seconds=reply.seconds,
                tool=call.tool,
                args=call.args,
                thought=thought,
                error=why,
            )

    # ── ending ────────────────────────────────────────────────────────────────────────────────────

    def final(self, reply: ModelReply, step: Final) -> AgentOutcome:
        self.trace.add(self.budget.steps, at=reply.at, seconds=reply.seconds, thought=step.thought)
        self.transcript.keep({"role": "assistant", "content": as_text(step.answer)})
        return self.end("final", answer=step.answer)

    def end(
        self, reason: FinishReason, message: str = "", *, answer: Any = None, waiting: tuple[Json, ...] = ()
    ) -> AgentOutcome:
        """The outcome, with everything gathered so far."""
        output = {
            "final_answer": answer if reason == "final" else None,
            "trace": self.trace.emitted(),
            "used_tools": self.trace.tools,
            "finish_reason": reason,
            "usage": self.budget.usage(),
            "messages_json": self.transcript.kept,
            "run_id": self._run,
            "waiting": list(waiting),
            "total_ms": round(self.budget.seconds * 1000, 3),
            "started_at": self.started_at,
            "ended_at": self.at,
            "error": error_of(reason, message),
        }
        spent = {**self.budget.spent(), "used_tools": self.trace.tools}
        return AgentOutcome(reason, output, self.config["primary_output"], spent, waiting)


def _dialect(config: Json, prose: Feedback, tools: Json) -> Dialect:
    return ToolsDialect(prose, names_of(tools)) if config["protocol"] == "tools" else JsonDialect(prose)


def _with_notice(sent: Sequence[Entry], notice: str | None) -> list[Entry]:
    """The messages, with a notice in the user's turn behind them."""
    if not notice:
        return list(sent)
    if sent and sent[-1].role == "user":
        return [*sent[:-1], sent[-1]._replace(content=f"{sent[-1].content}\n\n{notice}")]
    return [*sent, Entry("user", notice)]
