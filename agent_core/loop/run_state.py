"""The state of one agent run: what it has spent, sent and traced so far. It decides nothing. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from agent_core.config import AfterUntrusted
from agent_core.effects import CallModel, CallReply, Failed, ModelReply, ReadMessage, ToolCall, ToolReply
from agent_core.loop.budget import Budget, Limits
from agent_core.loop.masked import marks_of
from agent_core.loop.options import Models, Stage
from agent_core.loop.outcome import AgentOutcome, CallResult, error_of, has_tool_failure
from agent_core.loop.reading import READ_OBSERVATION, CutObservations
from agent_core.loop.references import GRAMMARS
from agent_core.loop.trace import Trace
from agent_core.loop.transcript import Transcript
from agent_core.origins.proof import proof_of
from agent_core.outputs import FinishReason, Json, UsedTool, WaitingCall
from agent_core.policy import arguments_of
from agent_core.protocol.argument_names import own_names
from agent_core.protocol.clip import as_text
from agent_core.protocol.dialect import MAX_ECHO, Dialect, Entry, Observation, with_notice
from agent_core.protocol.feedback import Feedback, Repair
from agent_core.protocol.json_dialect import JsonDialect
from agent_core.protocol.parse import Action, Final, Plan, ProtocolError, render
from agent_core.protocol.plan_dialect import PlanDialect
from agent_core.protocol.tokens import estimate_question
from agent_core.protocol.tools_dialect import ToolsDialect, codes_by_name
from agent_core.records import AgentStarted, StepStatus
from agent_core.rules import rules_of
from agent_core.tool_policy import Policies
from agent_core.words.catalogue import ENGLISH, words_of
from utools.schema.value_shape import ANYTHING, Shape, shape_of
from utools.tool import Effect as ToolEffect

UNKNOWN_TOOL: Mapping[str, Any] = {"preset": {}}
"""The policy of a tool that is not on the whitelist, for a call that judge will refuse."""


class ObservedStep(NamedTuple):
    """What became of the calls of one reply: as the model reads it, and as neutral messages."""

    observations: list[Observation]
    action: Json
    answers: list[Json]


class RunState:
    """A run in progress, from its `run_started` record."""

    def __init__(self, started: AgentStarted) -> None:
        self.config: Json = {key: each for key, each in started["config"].items() if key != "messages_json"}
        self.tools: Policies = started["tools"]
        self.started_at = self.at = started["at"]
        self.proof = proof_of(started)
        self.words = words_of(started)
        self.marks = marks_of(started)
        request = next((each["content"] for each in reversed(started["messages"]) if each["role"] == "user"), "")
        self.feedback = Feedback(started["texts"], self.words, request)
        spent: Json = {**(started.get("spent") or {})}
        recorded: dict[str, UsedTool] = spent.pop("used_tools", {})
        used_tools = {code: used.copy() for code, used in recorded.items()}  # the record's stay
        rules = rules_of(started)
        self.budget = Budget(Limits(**started["limits"]), **spent, counts_parts=rules["usage"] > 1)
        self.trace = Trace(self.config["observation_max_len"], self.config["trace_max_bytes"], tools=used_tools)
        self.repairs = 0
        self.repair: Repair | None = None
        self.must_answer = False
        self.plan: list[Json] | None = None
        self.references, self.plans = GRAMMARS[rules["plans"]], rules["plans"]
        self.after_untrusted: AfterUntrusted = self.config.get("after_untrusted", "run")
        self.keeps_json = rules["cuts"] > 3
        self.rules = rules["replies"]
        self.dialect = _dialect_of(started, self.feedback)
        self._run = started["run"]
        self._call_prefix = started["call_prefix"]
        self._first_step = self.budget.steps
        self._made_room_in: int | None = None
        self.models = Models(self.config, started["options"])
        self.reading_policy = started.get("reading")
        limit = self.config["observation_max_len"] if self.reading_policy else None
        self.cut_observations = CutObservations(limit, self.words)
        self.transcript = self._open_transcript(started)

    def _open_transcript(self, started: AgentStarted) -> Transcript:
        system, *neutral = started["messages"]
        examples = [e._replace(observation=False) for e in self.dialect.open_conversation(started.get("examples", ()))]
        first, *rest = self.dialect.open_conversation([system, *neutral])
        sent = with_notice([first, *examples, *rest], self._notice())
        max_tokens = self.config["max_input_tokens"] or started.get("window")
        extra = started["options"].get("tools")
        return Transcript(sent, neutral, max_tokens, extra=extra, rules=rules_of(started)["cuts"], words=self.words)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def next_question(self) -> CallModel:
        """Return the next question, cut to size, with the seconds that it may take."""
        cut = self.transcript.fit()
        budget = self.budget
        return CallModel(
            step=budget.steps + 1,
            question=budget.steps - self._first_step,
            model=self.models.current,
            messages=self.transcript.messages(),
            digest=self.transcript.digest,
            options=self.models.options(self._stage()),
            within=budget.within(budget.limits.call_seconds),
            cut=cut,
            tools=self.tools,
            config=self.config,
        )

    def make_room(self, overflow: Json) -> bool:
        """Cut what the model could not take, once for each question; whether there is something to cut."""
        step = self.budget.steps
        if self.rules == 1 or self._made_room_in == step:
            return False
        self._made_room_in = step
        return self.transcript.narrow(overflow["room"], overflow["counted"])

    def find_shortage(self, question: CallModel) -> str | None:
        """Return why a question is not asked: it alone would use up more tokens than are left; None where it would
        not."""
        limit = self.budget.limits.tokens
        if limit is None or self.rules == 1:
            return None
        needed, left = estimate_question(question.messages, question.options), limit - self.budget.tokens
        return ENGLISH.question_beyond_budget.format(needed=needed, left=left) if needed > left else None

    def _stage(self) -> Stage:
        if self.must_answer or self.budget.last_chance():
            return "last"
        return "between" if self.trace.tools else "first"

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def make_call(
        self, index: int, count: int, action: Action, effect: ToolEffect, origins: Mapping[str, str] | None = None
    ) -> ToolCall:
        """Return the call of an action, call `index` of `count` in its reply, bound by what is left now."""
        policy: Mapping[str, Any] = self.tools.get(action.tool, UNKNOWN_TOOL)
        return ToolCall(
            id=self.call_id(index, count),
            tool=action.tool,
            args=action.args,
            config=arguments_of(policy, action.args),
            effect=effect,
            within=self.budget.within(policy.get("timeout") or self.budget.limits.call_seconds),
            idempotent=policy.get("idempotent", False),
            fills=policy.get("fills", ()),
            rate_limit=policy.get("rate_limit"),
            language=self.words.language,
            origins=origins,
        )

    def shape_of_arguments(self, tool: str) -> Shape:
        """Return what the arguments of a tool may be, for the references of a plan; anything under the rules before
        them."""
        policy = self.tools.get(tool)
        return shape_of(policy["schema"]) if policy is not None and self.plans > 2 else ANYTHING

    def call_id(self, index: int, count: int) -> str:
        suffix = f"_{index}" if count > 1 else ""
        return f"call_{self._call_prefix}_{self.budget.steps}{suffix}"

    def bind_limits(self, call: ToolCall) -> ToolCall:
        """Return the call as it starts now: counted, and bound by what the calls before it have left."""
        self.budget.tool_calls += 1
        self.budget.writes += call.once_only
        if call.tool == READ_OBSERVATION and self.reads_on(call.tool):
            call = call._replace(given=self.cut_observations.read(call.args))
        if call.effect == "nested":
            return call._replace(within=None, inherited={**self.budget.remaining(), **self.proof.hand_down()})
        within = self.budget.within(call.within)
        return call if within == call.within else call._replace(within=within)

    def reads_on(self, tool: str) -> bool:
        """Return whether it is the loop's own tool."""
        return tool == READ_OBSERVATION and self.reading_policy is not None

    def calls_made(self, tool: str) -> int:
        used = self.trace.tools.get(tool)
        return used["count"] if used else 0

    # ── recording ─────────────────────────────────────────────────────────────────────────────────

    def add_messages(self, messages: Sequence[ReadMessage]) -> None:
        """Messages that somebody added: part of the conversation from the next question on."""
        for each in messages:
            message = {"role": each["role"], "content": each["content"]}
            self.transcript.append(self.dialect.open_conversation([message]), [message], step=self.budget.steps)
            self.transcript.record(message)
            if message["role"] == "user":
                self.proof.add_message(message["content"], vouched=self.config.get("trusted_text") is None)

    def record_reply(self, reply: ModelReply | Failed) -> None:
        self.budget.add_model_reply(reply)
        self.at = reply.at

    def record_results(self, replies: Sequence[CallReply]) -> None:
        """Count what calls took: those made at the same time, as long as the longest."""
        longest = 0.0
        for reply in replies:
            match reply:
                case ToolReply(seconds=seconds, usage=usage):
                    if usage:
                        self.budget.add_result(reply)
                case Failed(seconds=seconds):
                    pass
                case _:
                    continue
            longest = seconds if seconds > longest else longest
        self.budget.seconds += longest

    def record_not_run(self, reply: ModelReply, thought: str | None, calls: Sequence[ToolCall], why: str) -> None:
        step, at, seconds = self.budget.steps, reply.at, reply.seconds
        for call in calls:
            self.trace.add(
                step,
                at=at,
                seconds=seconds,
                tool=call.tool,
                args=call.args,
                thought=thought,
                error=why,
                origins=call.origins,
            )

    # ── feeding back ──────────────────────────────────────────────────────────────────────────────

    def feed_protocol_error(self, reply: ModelReply, error: ProtocolError) -> None:
        """Send an unreadable reply back with what is wrong with it."""
        echoed = self.feedback.echo(reply.content, MAX_ECHO)
        own, feedback = self.dialect.write_protocol_error(reply, error.message, self.call_id(0, 1))
        self.transcript.append(own, [{"role": "assistant", "content": echoed}], step=self.budget.steps)
        self.repair, notice = Repair(self.feedback.error(error.message), tool_failed=False), self._notice()
        text = "\n\n".join([entry.content for entry in feedback])
        told = [{"role": "user", "content": part} for part in (text, notice) if part]
        self.transcript.append(with_notice(feedback, notice), told, step=self.budget.steps)

    def feed_results(
        self, reply: ModelReply, thought: str | None, step: ObservedStep, failures: Sequence[CallResult]
    ) -> None:
        """Send what became of the calls, errors too."""
        notice = self._notice()

        def write() -> list[Entry]:
            own, feedback = self.dialect.write_results(reply, thought, step.observations)
            return [*own, *with_notice(feedback, notice)]

        self.repair = self._repair_of(step, failures) if failures else None
        answers = [*step.answers, {"role": "user", "content": notice}] if notice else step.answers
        count = self.dialect.count_results(len(step.answers), has_notice=notice is not None)
        self.transcript.append_later(count, write, ([step.action], answers), step=self.budget.steps)

    def _repair_of(self, step: ObservedStep, failures: Sequence[CallResult]) -> Repair:
        """Return the part of the feedback that reports errors."""
        wrong = [
            self.feedback.result(each.status, each.call.tool, each.text)
            for each in step.observations
            if each.status != "seen"
        ]
        return Repair("\n\n".join(wrong), has_tool_failure(failures))

    def _notice(self) -> str | None:
        limit = self.budget.last_chance()
        return None if limit is None else self.feedback.notice(limit)

    # ── a plan ────────────────────────────────────────────────────────────────────────────────────

    def feed_plan(self, plan: Plan) -> None:
        """The plan that begins, as the model sees it again; the output tells what becomes of its steps."""
        text = render(plan)
        self.plan = [{**asdict(step), "status": "pending"} for step in plan.steps]
        own = {"role": "assistant", "content": text}
        self.transcript.append([Entry("assistant", text)], [own], step=self.budget.steps)

    def mark_step(self, number: int, status: StepStatus) -> None:
        """Note what became of a step of the plan."""
        assert self.plan is not None
        self.plan[number - 1]["status"] = status

    def feed_report(self, template: str, report: Sequence[str]) -> None:
        """Tell the model what became of the plan's steps, and what is wanted of it now."""
        text = self.feedback.report(template, report)
        notice = None if self.must_answer else self._notice()
        entries = with_notice([Entry("user", text, observation=True)], notice)
        self.transcript.append(entries, [entry.to_wire() for entry in entries], step=self.budget.steps)

    # ── ending ────────────────────────────────────────────────────────────────────────────────────

    def finish(self, reply: ModelReply, step: Final) -> AgentOutcome:
        self.trace.add(self.budget.steps, at=reply.at, seconds=reply.seconds, thought=step.thought)
        self.transcript.record({"role": "assistant", "content": as_text(step.answer)})
        return self.end("final", answer=step.answer)

    def end(
        self, reason: FinishReason, message: str = "", *, answer: Any = None, waiting: tuple[WaitingCall, ...] = ()
    ) -> AgentOutcome:
        """Return the outcome, with everything gathered so far."""
        output = {
            "final_answer": answer if reason == "final" else None,
            "trace": self.trace.emitted(),
            "used_tools": self.trace.tools,
            "finish_reason": reason,
            "usage": self.budget.usage(),
            "messages_json": self.transcript.neutral,
            "run_id": self._run,
            "waiting": list(waiting),
            "total_ms": round(self.budget.seconds * 1000, 3),
            "started_at": self.started_at,
            "ended_at": self.at,
            "error": error_of(reason, message),
        }
        if self.plan is not None:
            output["plan"] = self.plan
        spent = {**self.budget.spent(), "used_tools": self.trace.tools}
        return AgentOutcome(reason, output, self.config["primary_output"], spent, waiting, self.transcript.added)


def _dialect_of(started: AgentStarted, feedback: Feedback) -> Dialect:
    config, rules = started["config"], rules_of(started)
    codes = [*started["tools"], *([READ_OBSERVATION] if started.get("reading") and rules["replies"] > 1 else [])]
    if config["protocol"] == "tools":
        names = codes_by_name(codes)
        own = own_names(started["options"].get("tools") or (), names, started["tools"])
        return ToolsDialect(feedback, names, rules["replies"], rules["texts"], own)
    has_plans = config.get("mode") == "plan" and rules["texts"] >= 5
    dialect = PlanDialect if has_plans else JsonDialect
    return dialect(feedback, codes, rules["replies"])
