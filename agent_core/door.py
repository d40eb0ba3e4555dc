"""The one door to the outside world: deadlines, retries and redaction stand here, then the model or the tool."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import orjson

from agent_core.errors import DefinitionError
from agent_core.journal.operations import Act, Begin
from agent_core.loop.effects import CallModel, Cancelled, Classify, Did, Doubt, Failed, Json, Said, ToolCall
from agent_core.loop.tokens import estimate
from agent_core.models.client import Completion, ModelError, Models, Question
from agent_core.prepare import Prepare
from agent_core.secrets import Secrets
from utools.guards.redaction import Redactor
from utools.registry import ToolRegistry
from utools.tool import Progress, ToolContext, ToolResult

log = logging.getLogger("agent_core")
TRANSIENT_RETRIES = 2
BACKOFF = 0.2
DEEPEST = 8
"""How many runs may be nested in one another."""

Reply = Said | Did | Failed | Cancelled | Doubt


def now() -> str:
    """The time, ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Door:
    """What one run needs of its host. `prepare` knows, by tool code, how a nested run is started."""

    run: str
    registry: ToolRegistry
    models: Models
    prepare: dict[str, Prepare]
    secrets: Secrets = field(default_factory=Secrets)
    redactor: Redactor = field(default_factory=lambda: Redactor({}))
    progress: Callable[[str, str, float | None], None] | None = None

    def begin(self, op: Begin) -> Json | Failed:
        """The `run_started` body of a run nested under a call; a bad config is the caller's mistake, told to it."""
        if op.path.count("/") > 2 * DEEPEST:
            return Failed("tool_error", f"runs may be nested {DEEPEST} deep, no deeper", now(), 0.0)
        try:
            return self.prepare[op.spec.tool](self.run, op.path, op.spec.config, op.spec.inherited)
        except DefinitionError as error:
            return Failed("definition", str(error), now(), 0.0)

    def classify(self, op: Classify) -> str:
        return self.registry.get(op.tool).effect_of(op.args)

    async def act(self, op: Act) -> Reply:
        """Do it once, within its time, and say how it went. Only cancellation is raised."""
        if isinstance(op.effect, CallModel):
            return await self._ask(op.effect, op.slot.path)
        return await self._call(op.effect, op)

    # ── models ────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, effect: CallModel, strand: str) -> Said | Failed:
        start = perf_counter()
        question = Question(effect.model, effect.messages, effect.options, strand, effect.question)
        try:
            client = self.models(effect.model, effect.options)
            async with asyncio.timeout(effect.within):
                completion = await client.complete(question)
        except TimeoutError:
            told = f"the model gave no reply within {effect.within:g} seconds"
            return Failed("timeout", told, now(), max(perf_counter() - start, effect.within or 0.0), requests=1)
        except (ModelError, DefinitionError) as error:
            kind, requests = (error.kind, error.requests) if isinstance(error, ModelError) else ("model_error", 0)
            text = self.redactor.text(str(error))
            return Failed(kind, text, now(), perf_counter() - start, requests=requests)
        content = self._redacted_reply(completion.content)
        seconds = perf_counter() - start
        usage = _usage(effect, completion)
        return Said(content, completion.finish_reason, usage, now(), seconds, completion.requests, effect.model)

    def _redacted_reply(self, content: str) -> str:
        """The reply without secrets, those too that only show once its JSON escapes are read.

        A lone surrogate, which no journal can hold, becomes the JSON escape that the parser refuses.
        """
        clean = self.redactor.text(content.encode("utf-8", "backslashreplace").decode())
        if "\\" not in clean or not self.redactor.rules:
            return clean
        try:
            read = orjson.loads(clean)
        except orjson.JSONDecodeError:
            return clean
        redacted = self.redactor.value(read)
        return clean if redacted == read else orjson.dumps(redacted).decode()

    # ── tools ─────────────────────────────────────────────────────────────────────────────────────

    async def _call(self, call: ToolCall, op: Act) -> Did | Failed | Doubt:
        start = perf_counter()
        try:
            result = await _bounded(self._attempts(call, op), call.within)
        except TimeoutError:
            told = f"{call.tool} gave no result within {call.within:g} seconds"
            seconds = max(perf_counter() - start, call.within or 0.0)
            return Doubt(told, now(), seconds) if op.doubtful else Failed("timeout", told, now(), seconds)
        error = None if result.error is None else self.redactor.text(result.error)
        output = self.redactor.value(result.output)
        cached = bool(result.metadata.get("cached"))
        return Did(result.success, output, error, now(), perf_counter() - start, cached)

    async def _attempts(self, call: ToolCall, op: Act) -> ToolResult:
        """The call, which judge has validated, and where nothing can be done twice, again after what may pass."""
        context = self._context(call, op)
        result = await self.registry.execute(call.tool, call.config, context, validated=True)
        for attempt in range(TRANSIENT_RETRIES):
            if op.doubtful or result.success or not result.metadata.get("transient"):
                break
            await asyncio.sleep(BACKOFF * 2**attempt)
            result = await self.registry.execute(call.tool, call.config, context, validated=True)
        return result

    def _context(self, call: ToolCall, op: Act) -> ToolContext:
        context = ToolContext(
            run_id=self.run,
            strand=op.slot.path,
            n=op.slot.n - 1,
            deadline_s=call.within,
            idempotency_key=op.key,
            secret=self.secrets,
        )
        return context if self.progress is None else replace(context, progress=self._progress(op.slot.path))

    def _progress(self, strand: str) -> Progress:
        def tell(text: str, fraction: float | None = None) -> None:
            if self.progress is not None:
                self.progress(strand, self.redactor.text(text), fraction)

        return tell


def _usage(effect: CallModel, completion: Completion) -> Json:
    """The vendor's count, or an estimate that says so."""
    given, got = completion.input_tokens, completion.output_tokens
    if given is None:
        given = sum(len(message) for message in effect.messages) // 4
    if got is None:
        got = estimate(completion.content)
    estimated = completion.input_tokens is None or completion.output_tokens is None
    return {"input_tokens": given, "output_tokens": got, "cost": completion.cost, "estimated": estimated}


async def _bounded(work: Coroutine[Any, Any, ToolResult], seconds: float | None) -> ToolResult:
    """What `work` gives within `seconds`. One that does not heed its cancellation is left behind, not waited for."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        raise TimeoutError
    return ToolResult(False, error="the tool cancelled itself") if task.cancelled() else task.result()


def _abandon(task: "asyncio.Future[Any]") -> None:
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    task.cancel()
