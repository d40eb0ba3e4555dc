"""The `poll` of a manifest: work that an HTTP call starts elsewhere, asked about until it is done."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from utools.builtin.http_request import is_transient, read_body, refuse_status
from utools.errors import ToolError
from utools.json_text import to_text
from utools.query import QueryError, check_query, holds, query
from utools.retry import Pauses
from utools.schema.json_value import as_json
from utools.sources.http_call import HttpPolicy, Url, refuse_truncated, send
from utools.sources.placeholder import ABSENT, fill_value, find_names
from utools.sources.request import Request
from utools.sources.url_template import fill_url
from utools.tool import Args, ToolContext, ToolResult
from utools.words.text import Text

if TYPE_CHECKING:
    from utools.net.transport import Fetched

KEY: Final = "call.key"
"""The placeholder of the call's own key: the same for each attempt of one call, in letters that any service takes."""
STARTED: Final = "started."
"""What the placeholders of the first answer begin with."""
WITHIN: Final = 0.95
"""The part of a call's time in which its work has to be done: then the call says that it goes on."""
CANCEL_S: Final = 5.0
"""Seconds in which work is cancelled over there."""
SHOWN: Final = 500
"""Characters of what failed that a model reads."""


def _check_expression(text: str) -> str:
    try:
        check_query(text)
    except QueryError as error:
        raise ValueError(str(error)) from None
    return text


Expression = Annotated[str, AfterValidator(_check_expression)]
"""JMESPath, on the body of an answer."""


class CancelCall(BaseModel):
    """The request that ends the work."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    method: Literal["POST", "PUT", "PATCH", "DELETE"] = "POST"
    url: Url
    json_: Any = Field(None, alias="json")


class Poll(BaseModel):
    """How to go on after the first answer. `started` are the statuses by which the service says that an earlier attempt
    of the same call has started the work; the URLs take the arguments, `call.key`, and `started.NAME` of the first
    answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: Url
    started: list[Annotated[int, Field(ge=400, le=499)]] = []
    done: Expression
    failed: Expression
    output: Expression | None = None
    error: Expression | None = None
    result_url: Url | None = None
    cancel: CancelCall | None = None
    interval: float = Field(1.0, ge=0.05, le=3600)
    longest: float = Field(60.0, ge=0.05, le=3600)
    within: float = Field(3600.0, gt=0, le=7 * 24 * 3600)

    def urls(self) -> Iterator[tuple[str, str]]:
        """Yield the URLs that are asked, each with its key."""
        yield "url", self.url
        if self.result_url is not None:
            yield "result_url", self.result_url
        if self.cancel is not None:
            yield "cancel/url", self.cancel.url

    def reads_answer(self) -> bool:
        """Return whether one of the URLs takes a part of the first answer."""
        return any(name.startswith(STARTED) for _, url in self.urls() for name in find_names(url))


def make_key(context: ToolContext) -> str:
    """Return the key of a call: of letters, digits and any of _ . ~ -, at most 100."""
    told = context.idempotency_key or uuid4().hex
    shown = re.sub(r"[^A-Za-z0-9_.~-]+", "-", told)[:80].strip("-.")
    return f"{shown}-{sha256(told.encode()).hexdigest()[:16]}"


@dataclass(slots=True)
class PolledCall:
    """One call. `reads` and `idempotent` say what another attempt at its start may do."""

    poll: Poll
    policy: HttpPolicy
    context: ToolContext
    args: Args
    reads: bool
    idempotent: bool
    _first: Any = field(default=ABSENT, init=False)

    async def execute(self, start: Request) -> ToolResult:
        """Return what came of the work, once it is done or has failed. One that is not done in time goes on over there.
        A call that is cancelled cancels its work, where the manifest says how; one that is let go leaves it."""
        seconds = min(self.poll.within, (self.context.deadline_s or inf) * WITHIN)
        starting, limit = asyncio.create_task(self._start(start)), asyncio.timeout(seconds)
        try:
            async with limit:
                refusal = await asyncio.shield(starting)
                return refusal or await self._follow()
        except TimeoutError:
            if not limit.expired():
                raise
            return self._unknown(Text("it was not done within {seconds:g} seconds, and goes on there", seconds=seconds))
        except asyncio.CancelledError:
            if self.poll.cancel is not None and not self.context.is_let_go():
                await asyncio.shield(asyncio.create_task(self._cancel(self.poll.cancel, starting)))
            raise
        finally:
            starting.cancel()

    async def _start(self, start: Request) -> ToolResult | None:
        """Start the work, and note the first answer. Return the failure where it was not started. What may be started
        twice is tried again while the service is away."""
        may_repeat = self.reads or self.idempotent
        for pause in self._pauses():
            try:
                response = await send(start, self.policy, self.context)
            except (ConnectionError, TimeoutError) as error:
                if not may_repeat:
                    raise
                self._tell_away(error)
            else:
                if response.status < 400 or response.status in self.poll.started:
                    body = read_body(response.headers, response.body) if response.status < 400 else {}
                    self._first = as_json(body)
                    return None
                if not (may_repeat and is_transient(response.status)):
                    return self._refuse(response)
                self._tell_away(response.status)
            await asyncio.sleep(pause)
        raise AssertionError

    async def _follow(self) -> ToolResult:
        url = self._fill(self.poll.url)
        for pause in self._pauses():
            answer = await self._ask(url)
            if isinstance(answer, ToolResult):
                return answer
            if holds(self._find(self.poll.failed, answer)):
                return self._fail(answer)
            if holds(self._find(self.poll.done, answer)):
                return await self._read_result(answer)
            await asyncio.sleep(pause)
        raise AssertionError

    async def _read_result(self, answer: Any) -> ToolResult:
        if self.poll.result_url is not None:
            answer = await self._ask(self._fill(self.poll.result_url))
        if isinstance(answer, ToolResult):
            return answer
        return ToolResult(output=answer if self.poll.output is None else self._find(self.poll.output, answer))

    async def _ask(self, url: str) -> Any:
        """Return the body of an answer, however long the service is away; a failure where it refuses."""
        request = Request("GET", url, {"accept": "application/json"})
        for pause in self._pauses():
            try:
                response = await send(request, self.policy, self.context)
            except (ConnectionError, TimeoutError) as error:
                self._tell_away(error)
            else:
                if not is_transient(response.status):
                    return self._read(response)
                self._tell_away(response.status)
            await asyncio.sleep(pause)
        raise AssertionError

    def _read(self, response: "Fetched") -> Any:
        body = read_body(response.headers, response.body)
        if response.status >= 400:
            why = refuse_status(response.status, body, reads=True).error
            return self._unknown(Text("it was started, and cannot be followed: {why}", why=why))
        if response.truncated:
            return refuse_truncated("the server", self.policy, reads=self.reads)
        return as_json(body)

    async def _cancel(self, call: CancelCall, starting: "asyncio.Task[ToolResult | None]") -> None:
        """Cancel the work, as soon as it is known. Nobody waits for what comes of it."""
        with suppress(ToolError, OSError):
            async with asyncio.timeout(CANCEL_S):
                if await starting is None:
                    content = None if call.json_ is None else json.dumps(fill_value(call.json_, self.args)).encode()
                    headers = {} if content is None else {"content-type": "application/json"}
                    request = Request(call.method, self._fill(call.url), headers, content)
                    await send(request, self.policy, self.context)

    def _refuse(self, response: "Fetched") -> ToolResult:
        """Return the failure of a start; of a write, a server that fails may have made it."""
        refusal = refuse_status(response.status, read_body(response.headers, response.body), reads=False)
        is_known = self.reads or not is_transient(response.status)
        return refusal if is_known else ToolResult(False, error=refusal.error, metadata={"cut_off": True})

    def _fail(self, answer: Any) -> ToolResult:
        said = answer if self.poll.error is None else self._find(self.poll.error, answer)
        text = to_text(said)
        return ToolResult(False, error=Text("it was started, and failed: {said}", said=text[:SHOWN]))

    def _unknown(self, error: str) -> ToolResult:
        """Return that the call knows nothing of the end of its work: a write that another attempt would start anew is
        in doubt."""
        is_doubtful = not (self.reads or self.idempotent)
        return ToolResult(False, error=error, metadata={"cut_off": True} if is_doubtful else {})

    def _find(self, expression: str, answer: Any) -> Any:
        try:
            return query(expression, answer, clock=monotonic)
        except QueryError as error:
            raise ToolError("the answer of the server cannot be read: {error}", error=error) from None

    def _fill(self, url: str) -> str:
        found = {name: _look_up(self._first, name) for name in find_names(url) if name.startswith(STARTED)}
        if missing := [name for name, value in found.items() if value is None]:
            raise ToolError("the first answer of the server has no {name}", name=missing[0].removeprefix(STARTED))
        return fill_url(url, {}, {**self.args, **found})

    def _pauses(self) -> Iterator[float]:
        return iter(Pauses(self.poll.interval, longest=self.poll.longest))

    def _tell_away(self, why: object) -> None:
        self.context.log.info("the service of a call is away, and is asked again: %s", why)


def _look_up(answer: Any, name: str) -> Any:
    """Return what the first answer has under `started.a.b`; None for nothing."""
    for part in name.removeprefix(STARTED).split("."):
        answer = answer.get(part) if isinstance(answer, Mapping) else None
    return answer
