"""The one door to the outside world: deadlines, retries and redaction stand here, then the model or the tool."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import orjson

from agent_core.effects import CallModel, Cancelled, Classify, Failed, InDoubt, Json, ModelReply, ToolCall, ToolReply
from agent_core.errors import DefinitionError
from agent_core.journal.operations import Act, Begin, Slot
from agent_core.journal.record import depth
from agent_core.models.client import Completion, ModelClient, ModelError, Models, Question
from agent_core.protocol.tokens import estimate
from agent_core.run.answer_stream import AnswerStream
from agent_core.run.events import Events
from agent_core.run.prepare import Prepare
from agent_core.run.secrets import Secrets, filled
from utools.calls.rate_limit import RateLimit, acquire
from utools.errors import ToolError, UnknownTool
from utools.registry import ToolRegistry
from utools.secrets.redaction import Redactor
from utools.secrets.scrub import scrub
from utools.tool import ToolContext, ToolResult

TRANSIENT_RETRIES = 2
BACKOFF = 0.2
WAITS = 0.9
"""How much of a call's time may pass while it waits for its tool's rate limit: it must still end in time."""
WAITED = 0.05
"""Seconds before a call that are not worth telling it."""
MOST_TOKENS = 2**40
DEEPEST = 8
"""How many runs may be nested in one another."""

Result = TypeVar("Result")
Reply = ModelReply | ToolReply | Failed | Cancelled | InDoubt


def now() -> str:
    """The time, ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Executor:
    """What one run needs of its host. `prepare` knows, by tool code, how a nested run is started."""

    run: str
    registry: ToolRegistry
    models: Models
    prepare: dict[str, Prepare]
    secrets: Secrets = field(default_factory=Secrets)
    redactor: Redactor = field(default_factory=lambda: Redactor({}))
    events: Events | None = None

    def begin(self, op: Begin) -> Json | Failed:
        """The `run_started` body of a run nested under a call; a bad config is the caller's mistake, told to it."""
        if depth(op.path) > DEEPEST:
            return Failed("tool_error", f"runs may be nested {DEEPEST} deep, no deeper", now(), 0.0)
        if op.spec.tool not in self.prepare:
            return Failed("tool_error", f"{op.spec.tool} can only be run by a workflow engine", now(), 0.0)
        try:
            return self.prepare[op.spec.tool](self.run, op.path, op.spec.config, op.spec.inherited)
        except DefinitionError as error:
            return Failed("definition", str(error), now(), 0.0)

    def classify(self, op: Classify) -> str:
        return self.registry.get(op.tool).effect_of(op.args)

    async def act(self, op: Act) -> Reply:
        """Do it once, within its time, and say how it went. Only cancellation is raised."""
        if isinstance(op.effect, CallModel):
            return await self._ask(op.effect, op.slot)
        return await self._call(op.effect, op)

    # ── models ────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, effect: CallModel, slot: Slot) -> ModelReply | Failed:
        start, made = perf_counter(), list[None]()
        place = slot.path, effect.question
        requested = partial(made.append, None)
        question = Question(effect.model, effect.messages, effect.options, *place, effect.within, requested)
        try:
            client = self.models(effect.model, effect.options)
            reply = client.complete(question) if self.events is None else self._heard(client, question, slot)
            return self._said(effect, await _bounded(reply, effect.within), start)
        except TooLate:
            told = f"the model gave no reply within {effect.within:g} seconds"
            seconds = max(perf_counter() - start, effect.within or 0.0)
            return Failed("timeout", told, now(), seconds, requests=max(1, len(made)))
        except ModelError as error:
            text = self.redactor.text(str(error))
            return Failed(error.kind, text, now(), perf_counter() - start, requests=error.requests)
        except Exception as error:  # the edge to foreign code: no mistake in a client may end the run
            text = self.redactor.text(scrub(f"{type(error).__name__}: {error}", os.environ))
            return Failed("model_error", text, now(), perf_counter() - start, requests=len(made))

    async def _heard(self, client: ModelClient, question: Question, slot: Slot) -> Completion:
        """The reply, its answer told while it is being written."""
        assert self.events is not None
        tell, native = partial(self.events.delta, slot.path, slot.n - 1), question.options.get("protocol") == "tools"
        tolerant = question.options.get("parsing") == "tolerant"
        answer = AnswerStream(self.redactor, native=native, tolerant=tolerant)
        async with aclosing(client.stream(question)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    rest = None if native and piece.calls else answer.rest(self._clean(piece.content))
                    tell(rest)
                    return piece
                if piece.anew:
                    answer = AnswerStream(self.redactor, native=native, tolerant=tolerant)
                    tell(None)
                tell(answer.more(piece.text))
        raise ModelError("the stream ended without a reply")

    def _said(self, effect: CallModel, completion: Completion, start: float) -> ModelReply:
        """The reply as a journal can hold it: without secrets, and a lone surrogate as the JSON escape that it is."""
        content = self._clean(completion.content)
        usage, seconds = _usage(effect, completion), perf_counter() - start
        calls, echo = [self._sound(call) for call in completion.calls], self._sound(completion.echo)
        if not _is_writable(calls, echo):
            raise ModelError("the reply's calls nest too deep to be recorded", requests=completion.requests)
        return ModelReply(
            content, completion.finish_reason, usage, now(), seconds, completion.requests, effect.model, calls, echo
        )

    def _clean(self, text: str) -> str:
        return self.redactor.json_text(text.encode("utf-8", "backslashreplace").decode())

    def _sound(self, value: Any) -> Any:
        """A value of the reply, its texts treated as the reply's own is."""
        match value:
            case str():
                return self._clean(value)
            case dict():
                return {self._sound(key): self._sound(each) for key, each in value.items()}
            case list() | tuple():
                return [self._sound(each) for each in value]
        return value

    # ── tools ─────────────────────────────────────────────────────────────────────────────────────

    async def _call(self, call: ToolCall, op: Act) -> ToolReply | Failed | InDoubt:
        start = perf_counter()
        try:
            result = await _bounded(self._attempts(call, op), call.within)
        except TooLate:
            told = f"{call.tool} gave no result within {call.within:g} seconds"
            seconds = max(perf_counter() - start, call.within or 0.0)
            return InDoubt(told, now(), seconds) if op.doubtful else Failed("timeout", told, now(), seconds)
        except CancelledItself:
            result = ToolResult(False, error="the tool cancelled itself")
        except (UnknownTool, ToolError) as error:
            return Failed("tool_error", str(error), now(), perf_counter() - start)
        failure = None if result.error is None else self.redactor.cut_text(result.error)
        seconds = perf_counter() - start
        if op.doubtful and result.metadata.get("cut_off"):
            return InDoubt(f"{call.tool} was cut off: {failure}", now(), seconds)
        cached = bool(result.metadata.get("cached"))
        return ToolReply(result.success, self.redactor.cut_value(result.output), failure, now(), seconds, cached)

    async def _attempts(self, call: ToolCall, op: Act) -> ToolResult:
        """The answer that is kept of such a call, or the call itself."""
        context, tool = self._context(call, op), self.registry.get(call.tool)
        if tool.cache is None or call.effect != "read":
            return await self._made(call, op, context)
        said = [call.config, *call.fills] if call.fills else call.config
        made = partial(self._made, call, op)
        return await self.registry.calls.answers.answer(tool, said, context, made, self.redactor.cut_value)

    async def _made(self, call: ToolCall, op: Act, context: ToolContext) -> ToolResult:
        """The call, and where nothing can be done twice, again after what may pass.

        Judge has validated it, all but what is secret.
        """
        begun, validated = perf_counter(), not call.fills
        config = filled(call.config, call.fills, context.secret)
        if told := await self._turn(call, begun):
            return ToolResult(False, error=told)
        execute = partial(self.registry.execute, call.tool, config, validated=validated)
        result = await execute(_with_time_left(context, begun))
        for attempt in range(TRANSIENT_RETRIES):
            if op.doubtful or not result.metadata.get("transient"):
                break
            await asyncio.sleep(BACKOFF * 2**attempt)
            if await self._turn(call, begun):
                break
            result = await execute(_with_time_left(context, begun))
        return result

    async def _turn(self, call: ToolCall, begun: float) -> str | None:
        """Wait for the tool's rate limit; the reason why not where that leaves too little of the call's time."""
        if call.rate_limit is None:
            return None
        within = None if call.within is None else call.within * WAITS - (perf_counter() - begun)
        return await acquire(self.registry.calls.store, call.tool, RateLimit.of(call.rate_limit), within=within)

    def _context(self, call: ToolCall, op: Act) -> ToolContext:
        context = ToolContext(
            run_id=self.run,
            strand=op.slot.path,
            n=op.slot.n - 1,
            deadline_s=call.within,
            idempotency_key=op.key,
            secret=self.secrets,
            clean=self.redactor.text,
        )
        return context if self.events is None else replace(context, progress=partial(self._progress, op.slot))

    def _progress(self, slot: Slot, text: str, fraction: float | None = None) -> None:
        if self.events is not None:
            self.events.progress(slot.path, slot.n - 1, self.redactor.text(text), fraction)


def _is_writable(*values: Any) -> bool:
    """Whether a journal can hold what stands beside a reply's text."""
    try:
        orjson.dumps(values)
    except (TypeError, orjson.JSONEncodeError):  # nested deeper, or longer, than what it can write
        return False
    return True


def _counted(tokens: int | None) -> int | None:
    """A count that can be one; sums of others would not fit into a journal."""
    return tokens if tokens is None or 0 <= tokens < MOST_TOKENS else None


def _usage(effect: CallModel, completion: Completion) -> Json:
    """The vendor's count, or an estimate that says so."""
    given, got = _counted(completion.input_tokens), _counted(completion.output_tokens)
    estimated = given is None or got is None
    if given is None:
        given = (sum(map(len, effect.messages)) + len(orjson.dumps(effect.options.get("tools", [])))) // 4
    if got is None:
        got = sum([estimate(text) for text in (completion.content, *(c["arguments"] for c in completion.calls))])
    return {"input_tokens": given, "output_tokens": got, "cost": completion.cost, "estimated": estimated}


class TooLate(Exception):
    """What was begun did not end in its time."""


class CancelledItself(Exception):
    """What was begun raised a cancellation that nobody had asked for."""


def _with_time_left(context: ToolContext, begun: float) -> ToolContext:
    """The context of an attempt: what has been waited for before it is no longer its time."""
    waited = perf_counter() - begun
    if context.deadline_s is None or waited < WAITED:
        return context
    return replace(context, deadline_s=max(0.0, context.deadline_s - waited))


async def _bounded(work: Coroutine[Any, Any, Result], seconds: float | None) -> Result:
    """What `work` gives within `seconds`. One that does not heed its cancellation is left behind, not waited for."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        raise TooLate
    if task.cancelled():
        raise CancelledItself
    return task.result()


def _abandon(task: "asyncio.Future[Any]") -> None:
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    task.cancel()
