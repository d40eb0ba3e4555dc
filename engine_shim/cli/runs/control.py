"""The commands pause and cancel, which reach runs in whichever process drives them, and those that fork a run."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from typing import Any

import typer

from agent_core.journal.path import parent_of, parse_segment, segments
from agent_core.run.events import Event
from agent_core.run.run_id import new_run_id
from agent_core.statuses import ENDED, RunStatus
from engine_shim.cli import output
from engine_shim.cli.engine import open_engine
from engine_shim.cli.output import Options
from engine_shim.cli.runs.live import drive_run
from engine_shim.cli.runs.run import read_at
from engine_shim.cli.runs.summary import report
from engine_shim.cli.store import open_named_store
from engine_shim.definition.model import ROOT
from engine_shim.errors import WritesRepeated
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine

StartNew = Callable[[Engine, str, Callable[[Event], None]], Coroutine[Any, Any, RunResult]]
"""What starts a run of this id on an engine, with a listener."""


def pause_run(run_id: str, options: Options) -> int:
    """Pause a run."""
    return _stop(run_id, "paused", lambda engine: engine.pause(run_id, by=output.user()), options)


def cancel_run(run_id: str, options: Options) -> int:
    """Cancel a run."""
    return _stop(run_id, "cancelled", lambda engine: engine.cancel(run_id, by=output.user()), options)


def find_beginning(run_id: str, node: str, options: Options) -> str:
    """Return the place, STRAND:N, at which a node of a run began last; BadParameter for one that did not begin."""
    with closing(open_named_store(options.store)) as store:
        paths = [path for path in store.journal.load(run_id) if parent_of(path) == ROOT]
    visits = {path: parse_segment(segments(path, ROOT)[0]) for path in paths}
    begun = {path: visit for path, visit in visits.items() if not visit.item}  # others are further attempts
    found = [(visit.number, path) for path, visit in begun.items() if visit.name == node]
    if not found:
        names = ", ".join(sorted({str(visit.name) for visit in begun.values()})) or "none"
        raise typer.BadParameter(f"--from: no node {node!r} has begun in {run_id}; there are {names}")
    return f"{max(found)[1]}:0"


def fork_run(run_id: str, at: str, options: Options, *, repeat_writes: bool) -> int:
    """Fork a run at STRAND:N, and drive the new one to its end. Ask before writes are made again."""
    location = read_at(at)

    def fork(repeat: bool) -> int:
        return _drive_new(
            run_id,
            options,
            lambda engine, new, tell: engine.fork(run_id, location, new_id=new, repeat_writes=repeat, on_event=tell),
        )

    try:
        return fork(repeat_writes)
    except WritesRepeated as repeated:
        if options.as_json or not sys.stdin.isatty():
            raise
        output.line("These writes were made after that record, and may be made again:")
        for write in repeated.writes:
            output.line(f"  {write.strand}:{write.n}  {write.tool} {output.as_text(write.args)}")
        typer.confirm("Go on?", abort=True, err=True)
        return fork(True)


def retry_run(run_id: str, options: Options) -> int:
    """Start a new run where a failed one failed, and drive it to its end."""
    return _drive_new(run_id, options, lambda engine, new, tell: engine.retry_failed(run_id, new_id=new, on_event=tell))


def _drive_new(run_id: str, options: Options, start: StartNew) -> int:
    """Drive a new run that has the past of another one."""
    engine, new = open_engine(options, run=run_id), new_run_id()
    workflow = engine.workflow(run_id)
    result = drive_run(engine, workflow, new, lambda tell: start(engine, new, tell), options)
    return report(result, workflow, options)


def _stop(run_id: str, wanted: RunStatus, stop: Callable[[Engine], Awaitable[RunStatus]], options: Options) -> int:
    """Stop a run, and write its status then; it may still be running when a call takes long."""
    engine = open_engine(options, run=run_id)

    async def stop_and_close() -> RunStatus:
        try:
            return await stop(engine)
        finally:
            await engine.close()

    status = asyncio.run(stop_and_close())
    told = f"{run_id}  {_describe_stop(status, wanted)}"
    return output.answer({"run_id": run_id, "status": status}, told, as_json=options.as_json)


def _describe_stop(status: RunStatus, wanted: str) -> str:
    """Return the status that a run has once it was to be stopped, and what became of the request."""
    if status == wanted:
        return status
    if status in ENDED:
        return f"{status}: it ended before it could be {wanted}"
    return f"{status}; it will be {wanted} when what is under way has ended"
