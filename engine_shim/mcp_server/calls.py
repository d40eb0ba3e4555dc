"""Calls: what becomes of a call of a tool, from its start over the questions that it meets to its result."""

import asyncio
from contextlib import suppress

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent_core.agents.errors import AgentNotFound
from agent_core.journal.control import calls_for_person
from engine_shim.mcp_server.asking import CallState, ask, can_be_asked
from engine_shim.mcp_server.callers import Caller, Context
from engine_shim.mcp_server.offers import find_target, list_tools
from engine_shim.mcp_server.progress import ProgressReporter
from engine_shim.mcp_server.questions import key_of, read_decisions
from engine_shim.mcp_server.work import Work
from engine_shim.service.feed_merge import Position
from engine_shim.service.workflows import WorkflowNotFound
from utools.schema.faults import hint

LINGER_S = 5.0
"""How long a call is known that was cut off: the library cuts it off before it says that its client cancelled it."""
Outcome = CallToolResult | InputRequiredResult
CallKey = tuple[str, str]


class Calls:
    """The calls that are under way, each by its session and request, so that a client can cancel it.

    A call that is cut off for another reason leaves its run alone: it continues, or the next start takes it up.
    """

    def __init__(self) -> None:
        self._works: dict[CallKey, Work] = {}
        self._cancelling: set[asyncio.Task[None]] = set()

    async def make(self, context: Context, params: CallToolRequestParams, caller: Caller) -> Outcome:
        """Return the outcome of a call. MCPError for an unknown tool; raises what the run is refused for."""
        state = CallState.read(params.request_state) if params.request_state else CallState("")
        work = _open(params.name, caller, state.run)
        key = call_key(context, context.request_id)
        self._works[key] = work
        try:
            outcome = await _complete(context, params, caller, work, state)
        except asyncio.CancelledError:
            if _is_cancelled_by_hanging_up(context):
                self._cancel(work)
            asyncio.get_running_loop().call_later(LINGER_S, self._forget, key, work)
            raise
        except BaseException:
            self._forget(key, work)
            raise
        self._forget(key, work)
        return outcome

    def cancel(self, key: CallKey) -> None:
        """Cancel the run of a call, as its client wants it."""
        if work := self._works.pop(key, None):
            self._cancel(work)

    def _cancel(self, work: Work) -> None:
        if work.run:
            task = asyncio.create_task(work.cancel())
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)

    def _forget(self, key: CallKey, work: Work) -> None:
        if self._works.get(key) is work:
            del self._works[key]


def call_key(context: Context, request: object) -> CallKey:
    """Return how a call is named among those of all sessions."""
    headers = getattr(context.request, "headers", {})
    return headers.get("mcp-session-id", ""), str(request)


def _open(tool: str, caller: Caller, run: str) -> Work:
    target = find_target(caller.tenant, tool)
    with suppress(WorkflowNotFound, AgentNotFound):
        if target is not None:
            return Work(caller.tenant, target, caller.by, run)
    known = [each.name for each in list_tools(caller.tenant)]
    raise MCPError(INVALID_PARAMS, f"Unknown tool: {tool}; {hint(tool, known)}")


def _is_cancelled_by_hanging_up(context: Context) -> bool:
    """Return whether a call that is cut off was cancelled: over HTTP without sessions, a client does it by hanging
    up."""
    return context.request is not None and context.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _complete(
    context: Context, params: CallToolRequestParams, caller: Caller, work: Work, state: CallState
) -> Outcome:
    reporter = _reporter(context, caller, state)
    try:
        answers = params.input_responses or {}
        if not state.run:
            await work.start(params.arguments or {})
        elif decisions := read_decisions(await work.find_waiting(), answers):
            caller.require("decide")
            await work.decide(decisions)
        else:
            return await work.result()
        if reporter:
            reporter.start(work.run)
        return await _go_on(context, caller, work, list(state.asked), reporter)
    finally:
        if reporter:
            await reporter.close()


async def _go_on(
    context: Context, caller: Caller, work: Work, asked: list[str], reporter: ProgressReporter | None
) -> Outcome:
    """Let the run continue to its end, asking about each call that waits once, if somebody can be asked."""
    may_ask = can_be_asked(context) and caller.principal.allows("decide")
    while True:
        await work.wait_settled()
        waiting = await work.find_waiting()
        if reporter:
            await reporter.flush(is_waiting=bool(waiting))
        new = [call for call in calls_for_person(waiting) if key_of(call) not in asked] if may_ask else []
        if not new:
            return await work.result()
        asked += map(key_of, new)
        answers = await ask(context, new, CallState(work.run, asked, reporter.position if reporter else (0, 0)))
        if isinstance(answers, InputRequiredResult):
            return answers
        if not (decisions := read_decisions(new, answers)):
            return await work.result()
        await work.decide(decisions)


def _reporter(context: Context, caller: Caller, state: CallState) -> ProgressReporter | None:
    """Return what reports progress, where the client wants it."""
    if (context.meta or {}).get("progress_token") is None:
        return None

    async def report(count: float, text: str) -> None:
        await context.session.report_progress(count, None, text)

    return ProgressReporter(caller.tenant.runs.feeds, report, Position(*state.position))
