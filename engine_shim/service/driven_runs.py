"""DrivenRuns: the runs that a server drives in the background, from where nothing refuses one any more to its end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Final

from agent_core.errors import Abandoned
from agent_core.statuses import ENDED
from engine_shim.errors import EngineAway, EngineError
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine
from engine_shim.runs.steering import RECOVERY
from engine_shim.service.backoff import Backoff
from engine_shim.service.feeds import Feeds
from engine_shim.service.shares import Share
from utools.words.text import error_words

MAX_RESULTS: Final = 256
"""How many results of runs that have ended are kept in memory."""
Drive = Callable[[Callable[[], None]], Coroutine[Any, Any, RunResult]]
"""Drives a run, and calls what it is given once nothing refuses that."""
log = logging.getLogger("engine_shim")


class ServerEnds(EngineError):
    """This process is about to end, and begins nothing more."""

    def __init__(self) -> None:
        super().__init__("this server is about to end; try again in a moment")


class DrivenRuns:
    """The runs that this process drives, and what came of those that it has driven.

    `taken_over` are those that another process took over from it; `backoff` has those that could not be driven on.
    """

    def __init__(self, engine: Engine, feeds: Feeds, share: Share, tenant: str | None) -> None:
        self.taken_over: set[str] = set()
        self.backoff = Backoff()
        self._engine, self._feeds, self._share, self._tenant = engine, feeds, share, tenant
        self._open: dict[str, asyncio.Task[RunResult]] = {}
        self._beginning: set[asyncio.Task[RunResult]] = set()
        self._new: set[str] = set()
        self._results: dict[str, RunResult] = {}
        self.open()
        engine._keep_results(self._keep)

    def __contains__(self, run: object) -> bool:
        """Return whether this process drives a run, or will when its turn comes."""
        return run in self._open

    def has_begun(self, run: str) -> bool:
        """Return whether a run that is driven began here."""
        return run in self._new

    def result(self, run: str) -> RunResult | None:
        """Return the result of a run that has ended here lately."""
        return self._results.get(run)

    @property
    def is_closing(self) -> bool:
        return self._is_closing.is_set()

    async def wait(self, run: str, seconds: float) -> bool:
        """Wait until a run has ended or waits, the time is over, or this process ends; False if not driven here."""
        task = self._open.get(run)
        if task is None:
            return False
        closing = asyncio.create_task(self._is_closing.wait())
        try:
            await asyncio.wait([task, closing], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        return True

    async def launch(self, run: str, drive: Drive, is_followed: bool, by: str, *, is_new: bool = False) -> None:
        """Drive in the background. Raises what is refused, and continues when its caller goes away. `is_new` says that
        the run begins."""
        if self._is_closing.is_set():
            raise ServerEnds
        token = None if by == RECOVERY else by
        self._share.check(self._tenant, token)
        if is_followed:
            self._feeds.expect(run)
        self._share.add(self._tenant, token)
        loop = asyncio.get_running_loop()
        taken = loop.create_future()
        driving = drive(lambda: self._note_taken(run, task, taken, is_new=is_new))
        # a factory of the program's may begin it before it has a name
        task = asyncio.Task(driving, loop=loop, name=run)
        self._beginning.add(task)
        task.add_done_callback(lambda _: self._share.add(self._tenant, token, -1))
        task.add_done_callback(lambda done: self._note_begun(done, taken))
        await taken

    def _note_taken(
        self, run: str, task: "asyncio.Task[RunResult]", taken: "asyncio.Future[None]", *, is_new: bool
    ) -> None:
        """Keep a run that nothing refuses, and let its caller continue."""
        if is_new:
            self._new.add(run)
        self._beginning.discard(task)  # it counts once
        self._open[run] = task
        task.add_done_callback(lambda done: self._close(run, done))
        if self._is_closing.is_set():
            self._engine.release()
        if not taken.done():
            taken.set_result(None)

    def _note_begun(self, done: "asyncio.Task[RunResult]", taken: "asyncio.Future[None]") -> None:
        """Tell the caller what came of a run that was not taken; a caller who went away hears nothing."""
        self._beginning.discard(done)
        error = None if done.cancelled() else done.exception()  # of each, so that none counts as never retrieved
        if taken.done():
            return
        if done.cancelled():
            taken.cancel()
        elif error is not None:
            taken.set_exception(error)
        else:
            self._keep(done.result())
            taken.set_result(None)

    def _close(self, run: str, done: "asyncio.Task[RunResult]") -> None:
        if self._open.get(run) is done:
            del self._open[run]
            self._new.discard(run)
        error = None if done.cancelled() else done.exception()
        if not done.cancelled() and error is None:
            self._keep(done.result())
            self.backoff.forget(run)
        elif isinstance(error, Abandoned):
            self.taken_over.add(run)
        elif error is not None:
            self._note_failure(run, error)

    def _note_failure(self, run: str, error: BaseException) -> None:
        self.backoff.note_failure(run)
        if isinstance(error, EngineAway):
            log.warning("run %s waits: %s", run, error)
        else:
            log.error("run %s cannot continue: %s", run, error_words(error), exc_info=error)

    def _keep(self, result: RunResult) -> None:
        """Keep the result of a run that has ended, which nothing changes any more: as a rule somebody asks for it."""
        if result.status in ENDED:
            self._results[result.run_id] = result
            if len(self._results) > MAX_RESULTS:
                del self._results[next(iter(self._results))]

    def open(self) -> None:
        """Take runs, also after a `close`, and in another event loop."""
        self._is_closing = asyncio.Event()

    def let_go(self) -> None:
        """Take no more runs, let those go who follow or wait for one, and begin nothing more in what is driven."""
        self._is_closing.set()
        self._feeds.close()
        self._engine.release()

    async def close(self, grace: float) -> None:
        """End what is driven, so that another process can go on with it: what is under way has the grace to answer."""
        self.let_go()
        until = monotonic() + grace
        if self._beginning:
            await asyncio.wait(self._beginning, timeout=grace)
        late = set(self._open.values())
        if late:
            _, late = await asyncio.wait(late, timeout=until - monotonic())
        if late:
            log.warning("%d runs are left in the middle of a call; the next start resumes them", len(late))
            self._engine._abandon()
            for task in late:
                task.cancel()
            await asyncio.wait(late)
