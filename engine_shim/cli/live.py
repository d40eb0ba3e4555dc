"""Driving a run from the command line: the live view, Ctrl-C, and the result at the end."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from agent_core.run.events import Event
from engine_shim.cli import output
from engine_shim.cli.output import Options
from engine_shim.cli.view import View
from engine_shim.definition.load import Workflow
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine

Work = Callable[[Callable[[Event], None]], Coroutine[Any, Any, RunResult]]


def drive(engine: Engine, workflow: Workflow, work: Work, *, on_interrupt: Callable[[], None]) -> RunResult:
    """The result of `work`, which is told where events go. Ctrl-C ends the process and leaves the run to be resumed."""

    async def to_its_end() -> RunResult:
        try:
            return await work(view.tell)
        finally:
            await engine.close()

    with View(workflow) as view, _interruptible(view, on_interrupt):
        return asyncio.run(to_its_end())


def report(result: RunResult, workflow: Workflow, options: Options) -> int:
    """Tell the result; returns the exit code."""
    if options.as_json:
        output.document(result.as_json())
    else:
        output.summary(result, workflow, options)
    return output.exit_code(result)


def interrupted(run_id: str, options: Options) -> Callable[[], None]:
    """What is said when a person interrupts this run."""
    told = f"interrupted; to go on: {options.command('resume', run_id)}"
    where = run_id if options.as_json else ""
    return lambda: output.error(told, kind="interrupted", where=where, as_json=options.as_json)


@contextmanager
def _interruptible(view: View, on_interrupt: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C end the process at once: the journal is the same as if it had died, so the run can be resumed.

    To cancel the loop instead would end the run for good.
    """

    def leave(*_: object) -> None:
        view.close()
        on_interrupt()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(output.INTERRUPTED)

    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
