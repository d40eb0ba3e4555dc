"""drive_run(): drives a run with the live view and Ctrl-C, and asks the person at the terminal."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from agent_core.decisions import Decision
from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions, calls_for_person, due_of
from agent_core.run.events import Event
from agent_core.run.listening import seconds_between
from engine_shim.cli import output, terminal
from engine_shim.cli.log import logs_json
from engine_shim.cli.output import Options
from engine_shim.cli.runs.ask import ask_decision, is_attended
from engine_shim.cli.runs.view import View
from engine_shim.definition.load import Workflow
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine
from engine_shim.telemetry.export import exporting

Work = Callable[[Callable[[Event], None]], Coroutine[Any, Any, RunResult]]
LONGEST_SLEEP_S: Final = 60.0
"""How long a command sleeps at once: the clock may be set meanwhile."""

Decided = tuple[Mapping[str, Any], Decision]
"""A call that waited, and what a person decided about it."""


def drive(
    engine: Engine, workflow: Workflow, work: Work, on_interrupt: Callable[[], None], decided: Sequence[Decided] = ()
) -> RunResult:
    """Return the result of `work`, which gets a listener for events. Ctrl-C ends the process; the run can be resumed.

    `decided` are the calls that waited, and continue now.
    """

    pending = list(decided)

    def show_decisions() -> None:
        while pending:
            view.show_decision(*pending.pop(0))

    def show(event: Event) -> None:
        show_decisions()  # not before: a decision that is refused is none
        view.show(event)

    async def work_and_close() -> RunResult:
        try:
            result = await work(show)
            show_decisions()
            return result
        finally:
            await engine.close()

    with exporting(), View(workflow, quiet=logs_json()) as view, _interruptible(view, on_interrupt):
        return asyncio.run(work_and_close())


def drive_run(
    engine: Engine, workflow: Workflow, run_id: str, work: Work, options: Options, decided: Sequence[Decided] = ()
) -> RunResult:
    """Return the result of `work` on this run; at a terminal, after the person has decided on the calls that wait.

    A node that waits for a time is waited for.
    """
    result = drive(engine, workflow, work, on_interrupt(engine, run_id, options), decided)
    while result.status == "waiting":
        calls, due = calls_for_person(result.waiting), due_of(result.waiting)
        if calls and is_attended(options):
            call = calls[0]
        elif due is not None:
            work = _resuming(engine, run_id, {}, due)
            result = drive(engine, workflow, work, on_interrupt(engine, run_id, options))
            continue
        else:
            break
        if (decision := ask_decision(call, engine.store.journal.load(run_id))) is None:
            break
        decisions = {(call["strand"], call["n"]): decision}
        try:
            work, decided = _resuming(engine, run_id, decisions), [(call, decision)]
            result = drive(engine, workflow, work, on_interrupt(engine, run_id, options), decided)
        except DecisionError as error:  # such as edited arguments that the tool does not take: asked again
            sys.stderr.write(f"{error}\n")
    return result


def _resuming(engine: Engine, run_id: str, decisions: Decisions, due: str | None = None) -> Work:
    """Return what resumes a run, once its time has come."""

    clock = engine.store.clock

    async def resume(tell: Callable[[Event], None]) -> RunResult:
        while due is not None and (left := seconds_between(clock.write_now(), due)) > 0:  # noqa: ASYNC110 - a time is no event
            await asyncio.sleep(min(left, LONGEST_SLEEP_S))
        return await engine.resume(run_id, decisions=decisions or None, by=output.user(), on_event=tell)

    return resume


def on_interrupt(engine: Engine, run_id: str, options: Options) -> Callable[[], None]:
    """Return what writes, when a person interrupts this run, how to resume it, or to follow workers that go on with
    it."""
    how = "its workers continue the run; to follow it" if engine._has_workers else "to continue"
    message = f"interrupted; {how}: {options.command('resume', run_id)}"
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
