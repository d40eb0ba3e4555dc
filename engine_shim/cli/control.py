"""The commands pause, cancel and fork: they reach runs in whichever process drives them."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.host import build_engine
from engine_shim.cli.live import drive, on_interrupt
from engine_shim.cli.output import Options
from engine_shim.cli.run import read_place
from engine_shim.cli.summary import report
from engine_shim.runs.engine import Engine


def pause_run(run_id: str, options: Options) -> int:
    """Pause a run."""
    return _stop(run_id, "paused", lambda engine: engine.pause(run_id, by=output.user()), options)


def cancel_run(run_id: str, options: Options) -> int:
    """Cancel a run."""
    return _stop(run_id, "cancelled", lambda engine: engine.cancel(run_id, by=output.user()), options)


def fork_run(run_id: str, at: str, options: Options) -> int:
    """Fork a run at STRAND:N, and drive the new one to its end."""
    location, engine, new = read_place(at), build_engine(options.config, options.store), new_run_id()
    workflow = engine.workflow(run_id)
    result = drive(
        engine,
        workflow,
        lambda tell: engine.fork(run_id, location, new_id=new, on_event=tell),
        on_interrupt=on_interrupt(new, options),
    )
    return report(result, workflow, options)


def _stop(run_id: str, wanted: str, stop: Callable[[Engine], Awaitable[str]], options: Options) -> int:
    """Stop a run, and write its status then; it may still be running when a call takes long."""
    engine = build_engine(options.config, options.store)

    async def stop_and_close() -> str:
        try:
            return await stop(engine)
        finally:
            await engine.close()

    status = asyncio.run(stop_and_close())
    if options.as_json:
        output.document({"run_id": run_id, "status": status})
    else:
        output.line(status if status == wanted else f"{status}; it will be {wanted} when what is under way has ended")
    return output.OK
