"""The executor: the one door to the outside world. Deadlines, retries and redaction are here, then model or tool."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import orjson

from agent_core.effects import CallModel, Cancelled, Classify, Failed, InDoubt, ModelReply, ToolCall, ToolReply
from agent_core.errors import DefinitionError
from agent_core.journal.operations import Act, Begin, Slot
from agent_core.journal.path import nesting_depth
from agent_core.models.client import ClientOf, Completion, Delta, ModelClient, ModelError, Question
from agent_core.models.finish_reasons import is_known, settle_finish_reason
from agent_core.models.usage import count_usage, read_usage
from agent_core.protocol.tokens import estimate_question
from agent_core.run.admission import Admission, admit, call_to_admit, wait_for_rate_limit
from agent_core.run.answer_stream import AnswerStream
from agent_core.run.clock import now
from agent_core.run.deadline import CancelledItself, TooLate, run_within
from agent_core.run.documents import read_documents
from agent_core.run.prepare import Prepare
from agent_core.run.row_listener import ActListener, AnswerListener
from agent_core.run.secrets import Secrets, fill_secrets
from agent_core.words.catalogue import ENGLISH, words_in
from utools.error_text import describe, failed_at
from utools.errors import ToolError, UnknownTool
from utools.registry import ToolRegistry
from utools.secrets.redaction import Redactor
from utools.secrets.scrub import scrub
from utools.tool import ToolContext, ToolResult
from utools.words.text import error_words, translate

TRANSIENT_RETRIES = 2
BACKOFF = 0.2
MIN_WAIT = 0.05
"""Seconds of waiting before a call from which its deadline is corrected."""
ALLOW_MORE = "single_call_timeout in the node's config gives a reply more of them, timeout the run"
MAX_NESTING = 8
"""How many runs may be nested in one another."""

log = logging.getLogger("agent_core")
ActReply = ModelReply | ToolReply | Failed | Cancelled | InDoubt


@dataclass(frozen=True, slots=True)
class Executor:
    """What one run needs of its host. `prepare` knows, by tool code, how a nested run is started; `clock` gives the
    time that waits go by, in seconds since 1970. `is_let_go` says of acts that are cancelled whether the run goes on
    elsewhere. `deps` is what the program gives its tools."""

    run: str
    registry: ToolRegistry
    models: ClientOf
    prepare: dict[str, Prepare]
    secrets: Secrets = field(default_factory=Secrets)
    redactor: Redactor = field(default_factory=lambda: Redactor({}))
    events: AnswerListener | None = None
    observer: ActListener | None = None
    clock: Callable[[], float] | None = None
    is_let_go: Callable[[], bool] = lambda: False
    deps: object = None

    async def begin(self, op: Begin) -> Mapping[str, Any] | Failed:
        """Return the `run_started` body of a run nested under a call; a bad config is a failure of that call."""
        words = words_in(op.spec.language)
        if nesting_depth(op.path) > MAX_NESTING:
            return Failed("tool_error", words.nested_too_deep.format(most=MAX_NESTING), now(), 0.0)
        if op.spec.tool not in self.prepare:
            return Failed("tool_error", words.needs_engine.format(tool=op.spec.tool), now(), 0.0)
        try:
            config = await read_documents(op.spec.config, self.registry)
            return self.prepare[op.spec.tool](self.run, op.path, config, op.spec.inherited)
        except DefinitionError as error:
            return Failed("definition", str(error), now(), 0.0)

    def classify(self, op: Classify) -> str:
        return self.registry.get(op.tool).effect_of(op.args)

    async def admit(self, op: Act) -> Admission | None:
        """Wait until an act may be asked, where `call_to_admit` says so."""
        call = call_to_admit(op)
        return await admit(self.registry._calls.store, call) if call else None

    async def act(self, op: Act, admission: Admission | None = None) -> ActReply:
        """Act once, within its time, and say how it went. Only cancellation is raised."""
        if self.observer is None:
            return await self._act(op, admission)
        with self.observer.acting(op):
            return await self._act(op, admission)

    async def _act(self, op: Act, admission: Admission | None) -> ActReply:
        if isinstance(op.effect, CallModel):
            return await self._ask_model(op.effect, op.slot)
        return await self._call_tool(op.effect, op, admission or await self.admit(op) or Admission(perf_counter()))

    # ── models ────────────────────────────────────────────────────────────────────────────────────

    async def _ask_model(self, effect: CallModel, slot: Slot) -> ModelReply | Failed:
        start, requests = perf_counter(), _Counter()
        question = Question(
            effect.model,
            tuple(effect.messages),
            effect.options,
            slot.path,
            effect.question,
            effect.within,
            requests.add,
            effect.tools,
            effect.config,
        )
        try:
            client = self.models(effect.model, effect.options)
            is_shown = self.events is not None and self.events.wants_answers
            work = self._stream_reply(client, question, slot) if is_shown else client.complete(question)
            return self._model_reply(effect, await run_within(work, effect.within), start)
        except TooLate:
            message = f"{effect.model} gave no reply within {effect.within:g} seconds; {ALLOW_MORE}"
            seconds = max(perf_counter() - start, effect.within or 0.0)
            return Failed("timeout", message, now(), seconds, requests=max(1, requests.count))
        except ModelError as error:
            message = self.redactor.redact_truncated_text(error_words(error))
            seconds = perf_counter() - start
            return Failed(error.kind, message, now(), seconds, error.requests, overflow=error.overflow)
        except Exception as error:  # the edge to foreign code: no mistake in a client may end the run
            log.warning("the client of the model %s failed: %s", effect.model, failed_at(error))
            message = self.redactor.redact_truncated_text(scrub(describe(error), os.environ))
            return Failed("model_error", message, now(), perf_counter() - start, requests=requests.count)

    async def _stream_reply(self, client: ModelClient, question: Question, slot: Slot) -> Completion:
        """Return the reply, with its thought and its answer shown while they are being written."""
        assert self.events is not None
        show = partial(self.events.show_delta, slot.path, slot.n - 1)
        native = question.options.get("protocol") == "tools"
        tolerant = question.options.get("parsing") == "tolerant"
        answer = AnswerStream(self.redactor, native=native, tolerant=tolerant)
        async with aclosing(client.stream(question)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    show(None if native and piece.calls else answer.finish(self._clean_text(piece.content)))
                    return piece
                if not isinstance(piece, Delta):
                    raise ModelError(
                        f"the model's client streamed a {type(piece).__name__}, neither a Delta nor a Completion"
                    )
                if piece.anew:
                    answer = AnswerStream(self.redactor, native=native, tolerant=tolerant)
                    show(None)
                shown = answer.feed(piece.text)
                if thought := answer.take_thought():
                    self.events.show_thought(slot.path, slot.n - 1, thought)
                show(shown)
        raise ModelError("the stream ended without a reply")

    def _model_reply(self, effect: CallModel, completion: Completion, start: float) -> ModelReply:
        """Return the reply as a journal can hold it: without secrets, a lone surrogate as its JSON escape."""
        if not isinstance(completion, Completion):
            raise ModelError(f"the model's client gave a {type(completion).__name__}, not a Completion")
        content = self._clean_text(completion.content)
        asked = estimate_question(effect.messages, effect.options)
        usage, seconds = count_usage(completion, asked), perf_counter() - start
        reason = settle_finish_reason(effect.model, completion.finish_reason)
        calls, echo = [self._clean(call) for call in completion.calls], self._clean(completion.echo)
        if not _is_writable(calls, echo):
            raise ModelError("the reply's calls nest too deep to be recorded", requests=completion.requests)
        return ModelReply(
            content,
            reason if is_known(reason) else self._clean_text(reason),
            usage,
            now(),
            seconds,
            completion.requests,
            effect.model,
            calls,
            echo,
            self._clean_text(completion.refusal) if completion.refusal else "",
            completion.dropped,
        )

    def _clean_text(self, text: str) -> str:
        return self.redactor.json_text(_writable(text))

    def _clean(self, value: Any) -> Any:
        """Return a value of the reply, with as many keys and items: its arguments are JSON within a text."""
        if value is None:
            return None
        return self.redactor.value(_writable(value))

    # ── tools: within its time → from the cache → within the rate limit, with retries ─────────────

    async def _call_tool(self, call: ToolCall, op: Act, admission: Admission) -> ToolReply | Failed | InDoubt:
        start, words = admission.began, words_in(call.language)
        if call.given is not None:
            return ToolReply(True, call.given, None, now(), perf_counter() - start)
        if admission.refusal is not None:
            return ToolReply(
                False, None, self.redactor.redact_truncated_text(admission.refusal), now(), perf_counter() - start
            )
        left = None if call.within is None else max(0.0, call.within - (perf_counter() - start))
        try:
            result = await run_within(self._call_or_get_cached(call, op, start), left)
        except TooLate:
            seconds, reader = max(perf_counter() - start, call.within or 0.0), ENGLISH if op.once_only else words
            message = reader.tool_too_late.format(tool=call.tool, seconds=f"{call.within:g}")
            return InDoubt(message, now(), seconds) if op.once_only else Failed("timeout", message, now(), seconds)
        except CancelledItself:
            result = ToolResult(False, error=words.tool_cancelled_itself)
        except (UnknownTool, ToolError) as error:
            return Failed("tool_error", translate(error, call.language), now(), perf_counter() - start)
        error_text = None if result.error is None else self.redactor.redact_truncated_text(result.error)
        seconds = perf_counter() - start
        if op.once_only and result.metadata.get("cut_off"):
            return InDoubt(f"{call.tool} was cut off: {error_text}", now(), seconds)
        cached = bool(result.metadata.get("cached"))
        permanent = not result.success and bool(result.metadata.get("permanent"))
        output = self.redactor.redact_truncated_value(result.output)
        usage = read_usage(result.metadata.get("usage"))
        return ToolReply(result.success, output, error_text, now(), seconds, cached, usage, permanent)

    async def _call_or_get_cached(self, call: ToolCall, op: Act, start: float) -> ToolResult:
        """Return the cached answer to the same call of a reading tool, or the call itself. None is cached where a
        program gives `deps`, which an answer may depend on."""
        context, tool = self._context(call, op), self.registry.get(call.tool)
        if tool.cache is None or call.effect != "read" or self.deps is not None:
            return await self._call_with_retries(call, op, start, context)
        key = [call.config, *call.fills] if call.fills else call.config
        make = partial(self._call_with_retries, call, op, start)
        return await self.registry._calls.answers.answer(tool, key, context, make, self.redactor.redact_truncated_value)

    async def _call_with_retries(self, call: ToolCall, op: Act, start: float, context: ToolContext) -> ToolResult:
        """Return the call, repeated after a transient failure where it may happen twice.

        Judge has validated the arguments, but not the secrets in them.
        """
        validated, store = not call.fills, self.registry._calls.store
        # judge went by the schema that the run began with: by now the host may have bound the tool further
        validated = validated and not self.registry._policy.presets.get(call.tool)
        config = fill_secrets(call.config, call.fills, context.secret)
        if call_to_admit(op) is None and (refusal := await wait_for_rate_limit(store, call, start)):
            return ToolResult(False, error=refusal)
        execute = partial(self.registry.execute, call.tool, config, validated=validated)
        result = await execute(_with_time_left(context, start))
        for attempt in range(TRANSIENT_RETRIES):
            if op.once_only or not result.metadata.get("transient"):
                break
            await asyncio.sleep(BACKOFF * 2**attempt)
            if await wait_for_rate_limit(store, call, start):
                break
            result = await execute(_with_time_left(context, start))
        return result

    def _context(self, call: ToolCall, op: Act) -> ToolContext:
        context = ToolContext(
            run_id=self.run,
            strand=op.slot.path,
            n=op.slot.n - 1,
            deadline_s=call.within,
            idempotency_key=op.key,
            secret=self.secrets,
            clean=self.redactor.text,
            language=call.language,
            clock=self.clock,
            is_let_go=self.is_let_go,
            deps=self.deps,
        )
        return context if self.events is None else replace(context, progress=partial(self._show_progress, op.slot))

    def _show_progress(self, slot: Slot, text: str, fraction: float | None = None) -> None:
        if self.events is not None:
            self.events.show_progress(slot.path, slot.n - 1, self.redactor.text(text), fraction)


@dataclass(slots=True)
class _Counter:
    count: int = 0

    def add(self) -> None:
        self.count += 1


def _writable(value: Any) -> Any:
    """Return a value whose lone surrogates are escapes, as a journal can hold it."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_writable(key): _writable(each) for key, each in value.items()}
        case list() | tuple():
            return [_writable(each) for each in value]
        case _:
            return value


def _is_writable(*values: Any) -> bool:
    """Return whether a journal can hold the values: JSON that is neither too deep nor too large."""
    try:
        orjson.dumps(values)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True


def _with_time_left(context: ToolContext, start: float) -> ToolContext:
    """Return the context of an attempt: time that passed before it is not its own."""
    waited = perf_counter() - start
    if context.deadline_s is None or waited < MIN_WAIT:
        return context
    return replace(context, deadline_s=max(0.0, context.deadline_s - waited))
