"""Routes for runs: list, follow, decide, stop, fork, verify."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator, TypeAdapter

from agent_core.audit.verify import verify
from agent_core.errors import DefinitionError
from agent_core.journal.store import Journal
from agent_core.outputs import Json
from agent_core.run.events import Event
from agent_core.run.secrets import verifying_keys
from agent_core.statuses import ENDED, ListedStatus
from engine_shim.api.access import Access, Caller, TraceParent
from engine_shim.api.answers import describe_events, write_json
from engine_shim.api.decision_links import choose_call, require_links
from engine_shim.api.held_stream import HeldStream, chain
from engine_shim.api.problems import open_router, responses
from engine_shim.api.run_answers import CAME, Answered, Nodes, Wait, answer_run
from engine_shim.api.run_models import (
    DecideRequest,
    ForkRequest,
    MessageRequest,
    RecordRef,
    ReplayedRun,
    ReplayRequest,
    Run,
    RunList,
    RunStatusView,
    SignalRequest,
    Verdict,
)
from engine_shim.runs.trial import try_replay
from engine_shim.service.feed_merge import POSITION_TEXT, Position
from engine_shim.service.linked_calls import find_open_calls
from engine_shim.store.digest import RunDigest
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.search import RunQuery, read_cursor, write_cursor
from utools.lazy_pattern import lazy_compile
from utools.signal_name import SIGNAL_NAME

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events", "content": describe_events(TypeAdapter(Event).json_schema())},
    204: {"description": "The run has ended, and there are no later events"},
}
WithLinks = Annotated[bool, Query(description="With a link for each waiting call; needs the scope `decide`.")]
POSITION = "Journal-Position"
DATE = lazy_compile(r"\d{4}-\d\d-\d\d")


def run_routes(access: Access) -> APIRouter:
    """Return the routes for runs."""
    router = open_router("runs")
    read, run, decide = access.needs("read"), access.needs("run"), access.needs("decide")

    @router.get("/runs", response_model=RunList, responses=responses())
    async def list_all_runs(
        status: Annotated[list[ListedStatus] | None, Query(max_length=16)] = None,
        workflow: Annotated[str | None, Query(max_length=256)] = None,
        since: Annotated[datetime | None, BeforeValidator(check_date)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        reason: Annotated[str | None, Query(max_length=64, description="Why one of its agents ended.")] = None,
        tool: Annotated[str | None, Query(max_length=128, description="A tool that it called.")] = None,
        text: Annotated[str | None, Query(min_length=1, max_length=200, description="What was recorded.")] = None,
        before: Annotated[str | None, Query(max_length=2048, description="`next` of the previous page.")] = None,
        caller: Caller = read,
    ) -> Response:
        """Return the newest runs, those of a status, of a workflow, begun since a time; and those with something in
        their records. A page may have fewer than there are, and says by `next` where the following one begins."""
        place = None if before is None else read_cursor(before)
        wanted = RunFilter(statuses=status or (), workflow=workflow, since=aware(since), limit=limit, before=place)
        page = await caller.tenant.list_runs(RunQuery(wanted, reason, tool, text))
        runs = [_describe(entry, page.digests[entry.run]) for entry in page.entries]
        return write_json({"runs": runs, "next": None if page.next is None else write_cursor(page.next)})

    @router.get("/runs/{run_id}", response_model=Run, responses=responses(404, 409))
    async def show_run(run_id: str, nodes: Nodes = False, links: WithLinks = False, caller: Caller = read) -> Response:
        """Return a run: its status, what waits, and once it came to rest its outputs."""
        about = (await caller.tenant.view(run_id)).as_json(nodes=nodes)
        return write_json(_add_links(access, caller, about) if links else about)

    @router.get(
        "/runs/{run_id}/events",
        response_class=StreamingResponse,
        responses={**EVENTS, **responses(404, 409)},
    )
    async def follow_run(
        run_id: str,
        last_event_id: Annotated[str, Header(pattern=POSITION_TEXT)] = "",
        caller: Caller = read,
    ) -> Response:
        """Return the events of a run from its beginning, or after Last-Event-ID, then those to come, until the run
        ends. Who has them all is answered 204, after which an EventSource does not connect again."""
        await caller.tenant.runs.check_exists(run_id)
        await caller.tenant.runs.feeds.check_readable(run_id)
        frames = caller.tenant.runs.feeds.follow(run_id, Position.read(last_event_id))
        if not last_event_id or (await caller.tenant.view(run_id)).status not in ENDED:
            return HeldStream(caller, frames)
        first = await anext(frames, None)
        return Response(status_code=204) if first is None else HeldStream(caller, chain(first, frames))

    @router.get(
        "/runs/{run_id}/journal",
        response_class=Response,
        responses={
            200: {
                "description": "The journal",
                "content": {"application/jsonl": {"schema": {"type": "string"}}},
                "headers": {POSITION: {"description": "Where it ends.", "schema": {"type": "integer"}}},
            },
            **responses(404, 409),
        },
    )
    async def export_journal(
        run_id: str,
        after: Annotated[
            int, Query(ge=0, le=2**53, description="A `Journal-Position`: only later records are sent.")
        ] = 0,
        caller: Caller = read,
    ) -> Response:
        """Return the run's records as a journal file: what `agent-core verify FILE` and `replay FILE` take."""
        await caller.tenant.runs.check_exists(run_id)
        lines, position = await asyncio.to_thread(caller.tenant.export, run_id, after)
        return Response(lines, media_type="application/jsonl", headers={POSITION: str(position)})

    @router.get("/runs/{run_id}/verify", response_model=Verdict, responses=responses(404, 409))
    async def verify_run(run_id: str, caller: Caller = read) -> Response:
        """Return whether the run's records are whole, and its seal; `replay` says whether they come out the same."""
        await caller.tenant.runs.check_exists(run_id)
        return write_json(await asyncio.to_thread(_verify, caller.tenant.store.journal, run_id))

    @router.post("/runs/{run_id}/replay", response_model=ReplayedRun, responses=responses(404))
    async def replay_run(run_id: str, body: ReplayRequest, caller: Caller = read) -> Response:
        """Run the real loop on the records, offline; with a policy, as if that had been in force."""
        await caller.tenant.runs.check_exists(run_id)
        load = caller.tenant.store.journal.load
        found = await asyncio.to_thread(try_replay, run_id, load, body.policy, body.strand)
        return write_json(found.as_json())

    @router.post("/runs/{run_id}/decide", response_model=Answered, responses={**CAME, **responses(404, 409, 429)})
    async def decide_run(
        run_id: str, body: DecideRequest, wait: Wait = True, nodes: Nodes = False, caller: Caller = decide
    ) -> Response:
        """Decide on a call that waits; the run continues. The records say who decided."""
        await caller.tenant.runs.check_exists(run_id)
        decisions = {await _find_call(caller, run_id, body.at): body.read()}
        await caller.tenant.runs.decide(run_id, decisions, by=caller.name, is_followed=not wait)
        return await answer_run(caller, run_id, wait=wait, nodes=nodes)

    @router.post("/runs/{run_id}/resume", response_model=Answered, responses={**CAME, **responses(404, 409, 429)})
    async def resume_run(run_id: str, wait: Wait = True, nodes: Nodes = False, caller: Caller = run) -> Response:
        """Let a paused run continue."""
        await caller.tenant.runs.check_goes_on(run_id)
        await caller.tenant.runs.resume(run_id, by=caller.name, is_followed=not wait)
        return await answer_run(caller, run_id, wait=wait, nodes=nodes)

    @router.post("/runs/{run_id}/pause", response_model=RunStatusView, responses=responses(404, 409))
    async def pause_run(run_id: str, caller: Caller = run) -> Response:
        """Begin nothing more in a run until it is resumed."""
        await caller.tenant.runs.check_goes_on(run_id)
        status = await caller.tenant.engine.pause(run_id, by=caller.name)
        return write_json({"run_id": run_id, "status": status})

    @router.post("/runs/{run_id}/cancel", response_model=RunStatusView, responses=responses(404, 409))
    async def cancel_run(run_id: str, caller: Caller = run) -> Response:
        """End a run for good: what is under way is aborted."""
        await caller.tenant.runs.check_goes_on(run_id)
        status = await caller.tenant.engine.cancel(run_id, by=caller.name)
        return write_json({"run_id": run_id, "status": status})

    @router.post("/runs/{run_id}/fork", response_model=Answered, responses={**CAME, **responses(404, 409, 429)})
    async def fork_run(
        run_id: str,
        body: ForkRequest,
        wait: Wait = True,
        nodes: Nodes = False,
        traceparent: TraceParent = None,
        caller: Caller = run,
    ) -> Response:
        """Begin a run with the past of this one up to a record, or, without a place, where a failed run failed."""
        await caller.tenant.runs.check_goes_on(run_id)
        runs = caller.tenant.runs
        if body.at is None:
            new = await runs.retry_failed(run_id, by=caller.name, trace=traceparent, is_followed=not wait)
        else:
            about: dict[str, Any] = {"repeat_writes": body.repeat_writes, "is_followed": not wait}
            with _naming(body.at.place):
                new = await runs.fork(run_id, body.at.place, by=caller.name, trace=traceparent, **about)
        return await answer_run(caller, new, wait=wait, nodes=nodes)

    @router.post("/runs/{run_id}/signals/{name}", response_model=RunStatusView, responses=responses(404, 409, 429))
    async def send_signal(
        run_id: str,
        name: Annotated[str, Path(pattern=SIGNAL_NAME)],
        body: SignalRequest | None = None,
        caller: Caller = run,
    ) -> Response:
        """Send a named signal to a run: the first node takes it that waits, or comes to wait, for one of this name."""
        await caller.tenant.runs.check_goes_on(run_id)
        runs = caller.tenant.runs
        await runs.signal(run_id, name, None if body is None else body.data, by=caller.name)
        return write_json({"run_id": run_id, "status": await runs.store.status(run_id)})

    @router.post("/runs/{run_id}/messages", response_model=RunStatusView, responses=responses(404, 409))
    async def add_message(run_id: str, body: MessageRequest, caller: Caller = run) -> Response:
        """Add a message to a run: the next question of one of its agents has it. One that does not speak for the user
        needs the scope `admin`."""
        if body.role != "user" and not caller.allows("admin"):
            raise HTTPException(
                403, f"the token {caller.name!r} lacks the scope 'admin' for a message of {body.role!r}"
            )
        await caller.tenant.runs.check_goes_on(run_id)
        engine = caller.tenant.engine

        def add() -> str:
            engine.add_message(run_id, body.content, role=body.role, by=caller.name)
            return engine.status(run_id)

        return write_json({"run_id": run_id, "status": await caller.tenant.runs.store.run_blocking(add)})

    return router


def _add_links(access: Access, caller: Caller, run: Json) -> Json:
    """Return a run whose waiting calls come with links, for a caller who may decide."""
    if not caller.allows("decide"):
        raise HTTPException(403, f"the token {caller.name!r} lacks the scope 'decide' for links that decide")
    links, tenant = require_links(access), caller.tenant
    expires = int(tenant.store.clock.read()) + links.lifetime
    return {**run, "waiting": links.add_to(run["waiting"], run["run_id"], expires, caller.name, tenant.name)}


@contextmanager
def _naming(place: tuple[str, int]) -> Iterator[None]:
    """Say of what is wrong with a place that it is the field `at`."""
    written = f"{place[0]}:{place[1]}"
    try:
        yield
    except DefinitionError as error:
        if error.where != written:
            raise
        raise DefinitionError(error.message, where="at", value=written) from None


def _verify(journal: Journal, run_id: str) -> dict[str, Any]:
    """Return the verdict on a run's records, with the keys of this host."""
    found = verify(journal, run_id=run_id, keys=verifying_keys())
    return {key: getattr(found, key) for key in Verdict.model_fields}


async def _find_call(caller: Caller, run_id: str, at: RecordRef | None) -> tuple[str, int]:
    """Return the call that is decided on: the named one, or the only one that waits."""
    if at is not None:
        return at.place
    _, waiting = await find_open_calls(caller.tenant.runs, run_id)
    call = choose_call(run_id, waiting, None)
    return call["strand"], call["n"]


def _describe(entry: RunEntry, digest: RunDigest) -> dict[str, Any]:
    about = {name: getattr(entry, name) for name in ("workflow", "version", "status", "started_at")}
    return {"run_id": entry.run, **about, **digest.as_json()}


def check_date(text: Any) -> Any:
    """Return the text of a time. ValueError for a number, which may count anything."""
    if isinstance(text, str) and not DATE.match(text):
        raise ValueError("must be a time as in 2026-01-31T12:00:00Z")
    return text


def aware(time: datetime | None) -> datetime | None:
    """Return a time with a zone. DefinitionError for one without: it is ambiguous."""
    if time is None:
        return None
    if time.tzinfo is None:
        raise DefinitionError("must have a time zone, as in 2026-01-31T12:00:00Z", where="query/since")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        message = "must lie in the years 1 to 9999, in UTC"
        raise DefinitionError(message, where="query/since", value=time.isoformat()) from None
