"""RunService: the runs of one store, as a server has them: handed in, driven in the background, decided, looked at."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypedDict, TypeVar

from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions
from agent_core.run.run_id import new_run_id
from agent_core.statuses import OPEN, STOPPED
from engine_shim.definition.errors import refuse
from engine_shim.definition.inputs import unlisted_inputs
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError, EngineError, RunBusy
from engine_shim.intervals import BEGIN_INTERVAL_S, RUN_INTERVAL_S
from engine_shim.runs.controls import record_decisions
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine
from engine_shim.runs.steering import RECOVERY
from engine_shim.service.callbacks import Callback
from engine_shim.service.driven_runs import Drive, DrivenRuns, ServerEnds
from engine_shim.service.feeds import Feeds
from engine_shim.service.orphans import Orphans
from engine_shim.service.recovery import Recovery
from engine_shim.service.run_view import RunView, check_exists, view_run
from engine_shim.service.shares import MOST_RUNS, OverShare, Share, TooManyRuns
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.passing_events import passing_events_of
from utools.words.text import error_words

AWAIT_S: Final = 15.0
"""How long a run is awaited before its status is read again."""
MAX_POLLS: Final = 50
"""How often a settled run is tried that its driver has not released."""
T = TypeVar("T")
log = logging.getLogger("engine_shim")


class Submitted(TypedDict):
    """What the engine is told of a run that somebody has handed in."""

    submitter: str
    on_begin: Callable[[str], None]


class KeyReused(EngineError):
    """An idempotency key came again with other inputs."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the idempotency key {key!r} came before with other inputs")


class RunService:
    """The runs of an engine's store. Share it among the tasks of one event loop.

    Whatever begins or continues here is driven in the background, also when its caller goes away. A caller waits until
    the engine has checked and written, and so hears of what is refused.
    """

    def __init__(self, engine: Engine, *, share: Share | None = None, tenant: str | None = None) -> None:
        passing = passing_events_of(engine.store) if engine._has_workers else None
        self.engine, self.feeds = engine, Feeds(engine.store, passing)
        self.store = AsyncRunStore(engine.store)
        self.driven = DrivenRuns(engine, self.feeds, share or Share("runs", MOST_RUNS, error=TooManyRuns), tenant)
        self.recovery, self.orphans = Recovery(engine, self.store, self.drives), Orphans()
        engine._watch(self.feeds.watch)

    # ── beginning and going on ────────────────────────────────────────────────────────────────────

    async def submit(
        self,
        workflow: CheckedWorkflow,
        external: Mapping[str, Any],
        *,
        by: str,
        key: str | None = None,
        run_id: str | None = None,
        trace: str | None = None,
        is_followed: bool = False,
        takes_unlisted: bool = False,
        callback: Callback | None = None,
    ) -> tuple[str, bool]:
        """Begin a run, called `run_id` if that is given; gives its id, and whether it is new. Unless there is a `key`,
        `run_id` is new. `trace` is the caller's `traceparent`. The events of one that `is_followed` are kept for its
        caller, who is about to follow it; a `callback` is told when it waits and ends.

        With a `key` that came before, it is the run of that time, in whichever version it began, driven on if nobody
        drives it. DefinitionError for inputs that do not fit, KeyReused for a key of other inputs, OverShare under
        load; with nothing written. Inputs that the workflow does not list do not fit, unless it `takes_unlisted` ones.
        """
        run = run_id or (new_run_id() if key is None else key_to_id(workflow.definition.id, key))
        submitted = self._submitted(by, trace, callback)
        begin = partial(self.engine.run, workflow, external=external, run_id=run, is_new=key is None, **submitted)
        while key is None or not await self.store.has_started(run):
            try:
                if not takes_unlisted:
                    refuse(unlisted_inputs(workflow.definition, external))
                await self.driven.launch(run, lambda on_taken: begin(on_taken=on_taken), is_followed, by, is_new=True)
            except (RunBusy, DefinitionError) as error:
                if key is None or (isinstance(error, DefinitionError) and not await self.store.has_started(run)):
                    raise
                await asyncio.sleep(BEGIN_INTERVAL_S)  # somebody begins it at this moment
            else:
                return run, True
        if not await self.store.run_blocking(self.engine._has_begun_with, run, workflow, external=external):
            raise KeyReused(key)
        if callback is not None:
            await self.store.run_blocking(callback.replace, run, by)
        if run not in self.driven and (await self.view(run)).status in OPEN:
            await self._resume_unless_busy(run, by)
        return run, False

    async def decide(self, run: str, decisions: Decisions, *, by: str, is_followed: bool = False) -> None:
        """Decide what waits in a run, which continues: an agent's own run in the program that began it. DecisionError
        for what fits nothing that waits."""
        if await self.store.run_blocking(self.engine.store.entry, run) is None:
            await self.check_exists(run)
            store, secrets = self.engine.store, self.engine._grants.own.secrets
            await self.store.run_blocking(record_decisions, store, secrets, run, decisions, by=by)
            return
        await self._go_on(run, partial(self._resume, run, by, decisions), is_followed, by)

    async def resume(self, run: str, *, by: str, is_followed: bool = False) -> None:
        """Resume a paused run, or one without a driver. RunBusy while it is driven."""
        await self._go_on(run, partial(self._resume, run, by, None), is_followed, by)

    async def signal(self, run: str, name: str, data: Any, *, by: str) -> None:
        """Send a signal to a run, which continues if it waits for that. Raises what `Engine.send_signal` does."""
        waits = await self.store.run_blocking(self.engine.send_signal, run, name, data, by=by)
        for _ in range(MAX_POLLS if waits else 0):
            try:
                await self.driven.launch(run, partial(self._resume, run, by, None), False, by)
                return
            except RunBusy:  # its driver has just let it go, or takes the signal itself
                if not await self.store.run_blocking(self.engine.has_event, run):
                    return
            await asyncio.sleep(BEGIN_INTERVAL_S)

    async def fork(
        self,
        run: str,
        at: tuple[str, int],
        *,
        by: str,
        repeat_writes: bool = False,
        trace: str | None = None,
        is_followed: bool = False,
    ) -> str:
        """Begin a run with the past of another one; gives its id. Raises what `Engine.fork` does."""
        new, handed_in = new_run_id(), self._submitted(by, trace)
        fork = partial(self.engine.fork, run, at, new_id=new, repeat_writes=repeat_writes, **handed_in)
        await self.driven.launch(new, lambda on_taken: fork(on_taken=on_taken), is_followed, by)
        return new

    async def retry_failed(self, run: str, *, by: str, trace: str | None = None, is_followed: bool = False) -> str:
        """Begin a run where a failed one failed; gives its id. Raises what `Engine.retry_failed` does."""
        new = f"{run}-retry"
        retry = partial(self.engine.retry_failed, run, **self._submitted(by, trace))
        await self.driven.launch(new, lambda on_taken: retry(on_taken=on_taken), is_followed, by)
        return new

    def _submitted(self, by: str, trace: str | None, callback: Callback | None = None) -> Submitted:
        """Return who handed in a run that begins, the caller's span that its own lie under, and whom it notifies."""

        def note(run: str) -> None:
            self.engine._telemetry.keep_parent(run, trace)
            if callback is not None:
                callback.note(run)

        return {"submitter": by, "on_begin": note}

    async def _resume_unless_busy(self, run: str, by: str) -> None:
        try:
            await self.resume(run, by=by)
        except RunBusy:
            log.debug("run %s is driven by another process", run)

    def _resume(
        self, run: str, by: str, decisions: Decisions | None, on_taken: Callable[[], None]
    ) -> Coroutine[Any, Any, RunResult]:
        return self.engine.resume(run, decisions=decisions, by=by, on_taken=on_taken)

    async def _go_on(self, run: str, drive: Drive, is_followed: bool, by: str) -> None:
        """Launch an existing run. A settled one may still have its driver for a moment, which is waited for."""
        for left in reversed(range(MAX_POLLS)):
            try:
                await self.driven.launch(run, drive, is_followed, by)
                break
            except RunBusy:
                if not left or not await self.store.run_blocking(self._is_settled, run):
                    raise
            await asyncio.sleep(BEGIN_INTERVAL_S)

    def _is_settled(self, run: str) -> bool:
        """Return whether a run waits, by its journal, which knows it first, or is paused."""
        return self.engine.result(run) is not None or self.engine.status(run) in STOPPED

    # ── looking ───────────────────────────────────────────────────────────────────────────────────

    async def wait(self, run: str, seconds: float) -> None:
        """Wait until a run that somebody drives has ended or waits, or the time is over."""
        until = asyncio.get_running_loop().time() + seconds
        if await self.driven.wait(run, seconds):
            return
        while await self.store.holder(run) and not self.is_closing:
            if (left := until - asyncio.get_running_loop().time()) <= 0:
                return
            await asyncio.sleep(min(RUN_INTERVAL_S, left))

    async def wait_settled(self, run: str) -> RunView:
        """Return a run once it has ended, waits or is paused, whichever process drives it.

        RunNotFound; ServerEnds where this process ends before that.
        """
        while True:
            await self.wait(run, AWAIT_S)
            view = await self.view(run)
            if view.status not in OPEN:
                return view
            if self.is_closing:
                raise ServerEnds
            if not self.drives(run):
                await asyncio.sleep(RUN_INTERVAL_S)  # another process is about to drive it

    def drives(self, run: str) -> bool:
        """Return whether this process drives the run, or will when its turn comes."""
        return run in self.driven

    @property
    def is_closing(self) -> bool:
        return self.driven.is_closing

    async def view(self, run: str) -> RunView:
        """Return a run. RunNotFound when the store has no such run."""
        return await self.store.run_blocking(self.read, run)

    def read(self, run: str) -> RunView:
        """Return what `view` gives; it may block on the store."""
        return view_run(self.engine.store, run, self.engine.host, self.driven.result(run))

    async def check_exists(self, run: str) -> None:
        """RunNotFound when the store has no such run, nor a turn of a conversation."""
        if self.driven.has_begun(run):
            return
        await self.store.run_blocking(check_exists, self.engine.store, run, self.engine.host)

    async def check_goes_on(self, run: str) -> None:
        """RunNotFound when the store has no such run; DecisionError for one that was recorded without an engine."""
        if await self.store.run_blocking(self.engine.store.entry, run) is None:
            await self.check_exists(run)
            raise DecisionError(f"run {run!r} was recorded without an engine; continue it in the program that began it")

    # ── the life of a server ──────────────────────────────────────────────────────────────────────

    async def recover(self) -> int:
        """Take up the runs that servers have left in the midst; gives how many."""
        taken = 0
        for run in await self._find_left():
            try:
                if not await self.store.has_started(run):
                    await self.store.run_blocking(self._forget, run)
                    continue
                taken += await self.recovery.take_up(run, partial(self.resume, run, by=RECOVERY))
            except (OverShare, ServerEnds):
                break
            except RunBusy:
                continue
            except Exception as error:  # one run that cannot go on must not keep the others from it
                self.driven.backoff.note_failure(run)
                log.error("run %s cannot be resumed: %s", run, error_words(error))
        return taken

    async def _find_left(self) -> list[str]:
        """Return the runs without a driver, the oldest first: those of servers that ended, and those that another
        server has taken over from this one, which it may have left before an answer came to this one."""
        store, taken_over = self.engine.store, set(self.driven.taken_over)

        def read() -> tuple[list[str], set[str]]:
            held = store.leases.held(taken_over)
            again = [run for run in taken_over if run not in held and store.submitter(run) is not None]
            return list(dict.fromkeys([*store.list_orphaned(self.engine.host), *again])), held

        left, held = await self.store.run_blocking(read)
        self.driven.taken_over -= taken_over - held
        left = [run for run in left if run not in self.driven]
        self.orphans.note(left)
        return [run for run in left if self.driven.backoff.is_due(run)]

    def _forget(self, run: str) -> None:
        """Forget a run whose beginning could not be written: no caller was told of it."""
        if self.engine._forget_unbegun(run):
            log.warning("run %s was submitted, and could not begin; it is forgotten", run)

    def let_go(self) -> None:
        """Take no more runs, let those go who follow or wait for one, and begin nothing more in what is driven."""
        self.driven.let_go()

    async def close(self, grace: float) -> None:
        """End what is driven, so that another process can go on with it: what is under way has the grace to answer."""
        await self.driven.close(grace)


def key_to_id(workflow: str, key: str) -> str:
    """Return the id of the run that a caller's key names."""
    return f"key-{sha256(workflow.encode() + bytes(1) + key.encode()).hexdigest()[:32]}"
