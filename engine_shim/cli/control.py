"""Commands that stop runs, in whichever process they are, and start them from somewhere else: pause, cancel, fork."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.host import engine_of
from engine_shim.cli.live import drive, interrupted, report
from engine_shim.cli.output import Options
from engine_shim.cli.run import AsJson, Config, Store, place_of
from engine_shim.runs.engine import Engine

RunId = Annotated[str, typer.Argument(metavar="RUN")]


def pause(run_id: RunId, store: Store = None, config: Config = None, as_json: AsJson = False) -> int:
    """Let what is under way in a run answer, and begin nothing more; `resume` goes on."""
    return _stop(
        run_id, "paused", lambda engine: engine.pause(run_id, by=output.user()), Options(store, config, as_json)
    )


def cancel(run_id: RunId, store: Store = None, config: Config = None, as_json: AsJson = False) -> int:
    """End a run for good: what is under way is aborted, what waits is withdrawn."""
    return _stop(
        run_id, "cancelled", lambda engine: engine.cancel(run_id, by=output.user()), Options(store, config, as_json)
    )


def fork(
    run_id: RunId,
    at: Annotated[str, typer.Option(help="STRAND:N, the first record that is not taken over; `show` lists them.")],
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Start a new run with this one's past up to a record, and go on from there."""
    options, place = Options(store, config, as_json), place_of(at)
    engine, new = engine_of(config, store), new_run_id()
    workflow = engine.workflow(run_id)
    result = drive(
        engine,
        workflow,
        lambda tell: engine.fork(run_id, place, new_id=new, on_event=tell),
        on_interrupt=interrupted(new, options),
    )
    return report(result, workflow, options)


def _stop(run_id: str, wanted: str, ask: Callable[[Engine], Awaitable[str]], options: Options) -> int:
    """Ask, and tell what the run's status is then; it may still be running when a call takes its time."""
    engine = engine_of(options.config, options.store)

    async def asked() -> str:
        try:
            return await ask(engine)
        finally:
            await engine.close()

    status = asyncio.run(asked())
    if options.as_json:
        output.document({"run_id": run_id, "status": status})
    else:
        output.line(status if status == wanted else f"{status}; it will be {wanted} when what is under way has ended")
    return output.OK
