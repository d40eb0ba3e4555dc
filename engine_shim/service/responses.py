"""wait_response(): what a run's `respond` node says to the caller who waits for the run."""

import asyncio
from typing import Final, NamedTuple

from agent_core.effects import ToolReply
from agent_core.journal.facts import Answered, Call, Fact
from agent_core.journal.reader import Reader
from agent_core.outputs import Json
from engine_shim.definition.model import RESPOND
from engine_shim.intervals import RESPONSE_INTERVAL_S
from engine_shim.service.run_service import RunService

KINDS: Final = ("run_started", "asked", "answered")


class RunResponse(NamedTuple):
    """The HTTP status and the body that a workflow's author has chosen."""

    status: int
    body: Json


async def wait_response(runs: RunService, run: str, seconds: float) -> RunResponse | None:
    """Return the first response of a run, at once if it is there; None where it ends, waits or is paused without one,
    where the time is over, and at once for a workflow without a `respond` node."""
    loop, reader, after = asyncio.get_running_loop(), Reader(), 0
    until = loop.time() + seconds
    while True:
        left = until - loop.time()
        is_over = left <= 0 or runs.is_closing or not (runs.drives(run) or await runs.store.holder(run))
        for position, row in await runs.store.tail(run, after):
            after = position
            fact = reader.read(row) if row.kind in KINDS else None
            if fact is not None and (found := _read_response(fact)) is not None:
                return found
        if is_over:
            return None
        if not _responds(reader):
            return None
        await runs.wait(run, min(RESPONSE_INTERVAL_S, left))


def _responds(reader: Reader) -> bool:
    """Return whether the workflow of a run, or one that it has invoked so far, has a `respond` node."""
    definitions = [run.definition for run in reader.runs.values() if run.definition]
    return any(node.get("tool") == RESPOND for each in definitions for node in each["nodes"])


def _read_response(fact: Fact) -> RunResponse | None:
    match fact:
        case Answered(asked=Call(tool=tool), answer=ToolReply(success=True, output=output)) if tool == RESPOND:
            return RunResponse(output["status"], output["body"])
        case _:
            return None
