"""Forking: begins runs from the past of other runs."""

from collections.abc import Callable
from functools import partial

from agent_core.audit.repeats import Place
from agent_core.errors import DecisionError
from agent_core.journal.record import Tape
from agent_core.run.cancellation import require_asyncio
from agent_core.run.control import StopSignal
from agent_core.run.run_id import check_run_id, new_run_id
from engine_shim.errors import DefinitionError
from engine_shim.runs.drive import Job, OnEvent, RunResult
from engine_shim.runs.failures import find_failures
from engine_shim.runs.fork import make_fork
from engine_shim.runs.steering import OnTaken, Steering, check_reachable

OnBegin = Callable[[str], None] | None


class Forking(Steering):
    """What `Engine` begins with the past of a run that is there."""

    async def fork(
        self,
        run_id: str,
        at: tuple[str, int],
        *,
        new_id: str | None = None,
        repeat_writes: bool = False,
        submitter: str | None = None,
        deps: object = None,
        on_begin: OnBegin = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Return a new run with the past of this one up to record n of a strand, `at` (strand, n), and on from there.

        What was answered before is not asked again; the record, and whatever followed from it, is done anew. Approvals
        of what is done anew are asked again. The run itself does not change. RunNotFound when the store holds no such
        run, Damaged when its records are not whole, DefinitionError when there is no such record, when the past cannot
        be rewritten for another run id, or when this host lacks what the run needs. WritesRepeated when the run made
        writes after the record, unless `repeat_writes` says that they may be made again. `deps` are as of `run`.
        """
        if not (isinstance(at[0], str) and type(at[1]) is int):
            raise DefinitionError("must be (strand, n)", where="at", value=at)
        require_asyncio()
        if deps is not None:
            check_reachable(has_workers=self.has_workers)
        hooks = (on_begin, on_taken, on_event)
        return await self._fork(run_id, lambda tape: [at], new_id, submitter, deps, hooks, repeat_writes=repeat_writes)

    async def retry_failed(
        self,
        run_id: str,
        *,
        new_id: str | None = None,
        submitter: str | None = None,
        deps: object = None,
        on_begin: OnBegin = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Return a fork of a failed run at the questions and reads over which it failed, which are done anew.

        The failed run does not change. The new one is called `RUN-retry`, so that no run is tried again twice. Raises
        what `fork` does, and DecisionError for a run that has not failed, or that failed by what would be the same
        again, or over a write.
        """
        require_asyncio()
        if deps is not None:
            check_reachable(has_workers=self.has_workers)
        new = new_id or f"{run_id}-retry"
        if new_id is None and await self._runs.load(new):
            raise DecisionError(f"run {run_id!r} was tried again already, as run {new!r}; go on with that one")
        hooks = (on_begin, on_taken, on_event)
        return await self._fork(
            run_id, lambda tape: find_failures(run_id, tape), new, submitter, deps, hooks, retry=True
        )

    async def _fork(
        self,
        run_id: str,
        find_places: Callable[[Tape], list[Place]],
        new_id: str | None,
        submitter: str | None,
        deps: object,
        hooks: tuple[OnBegin, OnTaken, OnEvent],
        *,
        repeat_writes: bool = False,
        retry: bool = False,
    ) -> RunResult:
        new = new_run_id() if new_id is None else check_run_id(new_id)
        on_begin, on_taken, on_event = hooks

        make = partial(make_fork, self._index, self.grants, run_id, find_places, new)
        fork = await self._runs.run_blocking(make, repeat_writes=repeat_writes, retry=retry)

        def write(stop: StopSignal) -> Job:
            if on_begin is not None:
                on_begin(new)
            self._starter.add_entry(new, fork.started, fork.base, fork.at, submitter)
            self.store.journal.append(new, fork.rows)
            return self._job_of(new, stop, on_event, deps)

        return await self._drive(new, write, on_taken)
