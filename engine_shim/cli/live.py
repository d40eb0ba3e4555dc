"""drive(): drives a run from the command line, with the live view and Ctrl-C."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from agent_core.run.events import Event
from engine_shim.cli import output, terminal
from engine_shim.cli.output import Options
from engine_shim.cli.view import View
from engine_shim.definition.load import Workflow
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine

Work = Callable[[Callable[[Event], None]], Coroutine[Any, Any, RunResult]]


def drive(engine: Engine, workflow: Workflow, work: Work, *, on_interrupt: Callable[[], None]) -> RunResult:
    """The result of `work`, which gets a listener for events. Ctrl-C ends the process; the run can be resumed."""

    async def work_and_close() -> RunResult:
        try:
            return await work(view.show)
        finally:
            await engine.close()

    with View(workflow) as view, _interruptible(view, on_interrupt):
        return asyncio.run(work_and_close())


def on_interrupt(run_id: str, options: Options) -> Callable[[], None]:
    """What writes, when a person interrupts this run, how to resume it."""
    message = f"interrupted; to go on: {options.command('resume', run_id)}"
    where = run_id if options.as_json else ""
    return lambda: output.error(message, kind="interrupted", where=where, as_json=options.as_json)


@contextmanager
def _interruptible(view: View, on_interrupt: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C end the process at once: the journal is as if it had died, so the run can be resumed.

    To cancel the event loop instead would end the run for good.
    """

    def leave(*_: object) -> None:
        view.close()
        on_interrupt()
        terminal.flush()
        os._exit(output.INTERRUPTED)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
