"""A call of a tool of another `agent-core serve`: a run of one step there, which is begun, followed and cancelled.

The run has the call's idempotency key, so that another attempt of the same call finds the run of the first.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

from utools.builtin.http_request import is_transient, read_body
from utools.errors import ToolError
from utools.retry import Pauses
from utools.sources.http_call import HttpPolicy, read_response, refuse_truncated, send
from utools.sources.request import Request, encode_segment
from utools.tool import Args, ToolContext, ToolResult
from utools.words.text import Text

NODE: Final = "call"
POLLS: Final = Pauses(0.05, longest=1.0, factor=1.5)
"""How often a run is asked for, at first and at last."""
CANCEL_S: Final = 5.0
"""Seconds in which a run is cancelled over there."""
WITHIN: Final = 0.95
"""The part of a call's time that is waited for its run: then the call says where the run is."""
LONGEST_KEY: Final = 200
SHOWN: Final = 1000
HELD: Final = ("waiting", "paused")
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServedCall:
    """One call. `name` is what this host calls the other one, at `url`."""

    name: str
    url: str
    policy: HttpPolicy
    context: ToolContext
    reads: bool

    async def execute(self, code: str, args: Args) -> ToolResult:
        """Return what the tool gives. TimeoutError, with the run and what to do, if it is not there in time; a call
        that is cancelled cancels its run, and one that is let go leaves it to the next attempt."""
        seconds = min(self.policy.timeout, (self.context.deadline_s or self.policy.timeout) * WITHIN)
        run: list[str] = []
        begun = asyncio.create_task(self._begin(code, args, run))
        try:
            async with asyncio.timeout(seconds):
                first = await asyncio.shield(begun)
                return first if isinstance(first, ToolResult) else await self._follow(first)
        except TimeoutError:
            raise TimeoutError(await self._explain_late(run, seconds)) from None
        except asyncio.CancelledError:
            if self.context.is_let_go():
                begun.cancel()
            else:
                await asyncio.shield(asyncio.create_task(self._cancel(begun)))
            raise

    async def _begin(self, code: str, args: Args, run: list[str]) -> ToolResult | Json:
        """Return the run as it begins; the result where there is none."""
        key = self.context.idempotency_key or uuid4().hex
        key = key if len(key) <= LONGEST_KEY and key.isascii() else sha256(key.encode()).hexdigest()
        url = f"{self.url}/tools/{encode_segment(code)}/execute?wait=false"
        content = json.dumps({"args": dict(args)}, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", "idempotency-key": key}
        answer = await self._ask(Request("POST", url, headers, content))
        if isinstance(answer, Mapping) and isinstance(answer.get("run_id"), str):
            run.append(answer["run_id"])
        return answer

    async def _follow(self, view: Json) -> ToolResult:
        """Return the result of a run once it has ended. Meanwhile the host may be away."""
        told, pauses = "", iter(POLLS)
        run = str(view.get("run_id", ""))
        while view.get("status") in (None, "pending", "running", *HELD):
            if view.get("status") in HELD and told != view["status"]:
                told = str(view["status"])
                self.context.progress(self._explain_held(run, told))
            await asyncio.sleep(next(pauses))
            with suppress(ToolError, ConnectionError):
                answer = await self._ask(Request("GET", f"{self.url}/runs/{encode_segment(run)}", {}))
                if isinstance(answer, Mapping):
                    view = answer
                elif "permanent" in answer.metadata:
                    return _lost(run, self.name, answer, reads=self.reads)
        return self._read(view, run)

    def _read(self, view: Json, run: str) -> ToolResult:
        if view.get("status") == "completed":
            outputs = view.get("outputs")
            output = outputs.get(NODE) if isinstance(outputs, Mapping) else view.get("output")
            return ToolResult(output=output)
        if view.get("status") == "cancelled":
            text = Text("the run {run} of this call was cancelled at {name}", run=run, name=self.name)
            return ToolResult(False, error=text, metadata={} if self.reads else {"cut_off": True})
        error = view.get("error")
        said = error.get("message") if isinstance(error, Mapping) else None
        return ToolResult(
            False, error=str(said) if said else Text("the run {run} failed at {name}", run=run, name=self.name)
        )

    async def _ask(self, request: Request) -> Json | ToolResult:
        """Return the JSON object of an answer; a failure in the words of the other host."""
        response = await send(request, self.policy, self.context)
        if response.status >= 400:
            return _refused(self.name, response.status, read_body(response.headers, response.body), reads=self.reads)
        result = read_response(response, reads=self.reads)
        if response.truncated:
            return refuse_truncated(self.name, self.policy, reads=self.reads)
        if not isinstance(result.output, Mapping):
            raise ToolError("{name} answered something else than a run", name=self.name)
        return result.output

    async def _cancel(self, begun: "asyncio.Task[ToolResult | Json]") -> None:
        """Cancel the run, as soon as it is known. Nobody waits for what comes of it."""
        with suppress(ToolError, OSError):
            async with asyncio.timeout(CANCEL_S):
                view = await begun
                if isinstance(view, Mapping) and isinstance(view.get("run_id"), str):
                    url = f"{self.url}/runs/{encode_segment(view['run_id'])}/cancel"
                    await self._ask(Request("POST", url, {"content-type": "application/json"}, b""))
        begun.cancel()

    async def _explain_late(self, run: list[str], seconds: float) -> str:
        if not run:
            return Text("no answer within {seconds:g} seconds", seconds=seconds)
        status = ""
        with suppress(ToolError, OSError):
            async with asyncio.timeout(CANCEL_S):
                view = await self._ask(Request("GET", f"{self.url}/runs/{encode_segment(run[0])}", {}))
                status = str(view.get("status", "")) if isinstance(view, Mapping) else ""
        if status in HELD:
            return self._explain_held(run[0], status)
        return Text(
            "{name} did not end the run {run} of this call within {seconds:g} seconds; it goes on there, and another "
            "attempt of the call finds it",
            name=self.name,
            run=run[0],
            seconds=seconds,
        )

    def _explain_held(self, run: str, status: str) -> str:
        if status == "paused":
            return Text("the run {run} of this call is paused at {name}: resume it there", run=run, name=self.name)
        return Text(
            "the call waits for a person at {name}: decide it there, by `agent-core decide {run}` on that host or by "
            "POST {url}/runs/{run}/decide; another attempt of the call then finds what came of it",
            name=self.name,
            run=run,
            url=self.url,
        )


def _refused(name: str, status: int, body: Any, *, reads: bool) -> ToolResult:
    """Return what the other host says when it refuses a request: its problem details (RFC 9457) in words."""
    said = _words_of(body)
    marks = {"transient": True} if is_transient(status) else {"permanent": True}
    has_begun_nothing = status == 503 and isinstance(body, Mapping) and "kind" in body
    if status >= 500 and not reads and not has_begun_nothing:
        marks["cut_off"] = True
    error = Text("{name} answered {status}: {said}", name=name, status=status, said=said or "nothing")
    return ToolResult(False, error=error, metadata=marks)


def _words_of(body: Any) -> str:
    if not isinstance(body, Mapping):
        return str(body)[:SHOWN]
    fields = body.get("errors")
    faults = [
        f"{each.get('where', '')}: {each.get('message', '')}"
        for each in (fields if isinstance(fields, list) else ())
        if isinstance(each, Mapping)
    ]
    detail = body.get("detail") or body.get("error") or json.dumps(dict(body), ensure_ascii=False)
    said = str(detail)[:SHOWN]
    return "; ".join([said, *(each for each in dict.fromkeys(faults) if each not in said)])[: 2 * SHOWN]


def _lost(run: str, name: str, refused: ToolResult, *, reads: bool) -> ToolResult:
    """Return a run that the other host does not show any more: it may have done its work."""
    text = Text("the run {run} of this call cannot be followed at {name}: {why}", run=run, name=name, why=refused.error)
    return ToolResult(False, error=text, metadata={} if reads else {"cut_off": True})
