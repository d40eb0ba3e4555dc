"""Forking: begins runs from the past of another run."""

from collections.abc import Callable
from functools import partial

from agent_core.audit.repeats import Place
from agent_core.errors import DecisionError
from agent_core.journal.record import Tape
from agent_core.run.control import StopSignal
from agent_core.run.run_id import check_run_id, new_run_id
from engine_shim.errors import DefinitionError
from engine_shim.runs.drive import Job, OnEvent, RunResult
from engine_shim.runs.driving import OnTaken
from engine_shim.runs.failures import find_failures
from engine_shim.runs.fork import make_fork
from engine_shim.runs.steering import Steering

OnBegin = Callable[[str], None] | None


class Forking(Steering):
    """The runs of a store on one host, and new ones that begin with the past of these."""

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
        """Run a new run with the past of another one up to a record, and on from there.

        What was answered before is not asked again; the record, and whatever followed from it, is done anew. Approvals
        of what is done anew are asked again. The run itself does not change.

        Args:
            run_id: The run that has the past.
            at: (strand, n) of the record.
            new_id: The new run's id, by default one that is made.
            repeat_writes: Whether writes that were made after the record may be made again.
            submitter: Who submitted the new run: servers drive it on after a restart.
            deps: What the tools of the new run get as `context.deps`, as of `run`.
            on_begin: Called with the new id before anything is written.
            on_taken: Called once all is written, and the run is driven.
            on_event: Called with each event, in the event loop.

        Returns:
            The result of the new run.

        Raises:
            RunNotFound: The store holds no such run.
            Damaged: Its records are not whole.
            DefinitionError: No such record; a past that cannot be rewritten for another id; or a host that lacks what
                the run needs.
            WritesRepeated: The run made writes after the record, and `repeat_writes` is not set.
        """
        if not (isinstance(at[0], str) and type(at[1]) is int):
            raise DefinitionError("must be (strand, n)", where="at", value=at)
        self._check_caller(on_event, deps)
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
        """Fork a failed run at the questions and reads over which it failed, which are done anew.

        Args:
            run_id: The failed run, which does not change.
            new_id: The new run's id, by default `RUN-retry`, so that no run is tried again twice.
            submitter: Who submitted the new run: servers drive it on after a restart.
            deps: What the tools of the new run get as `context.deps`, as of `run`.
            on_begin: Called with the new id before anything is written.
            on_taken: Called once all is written, and the run is driven.
            on_event: Called with each event, in the event loop.

        Returns:
            The result of the new run.

        Raises:
            DecisionError: A run that has not failed, that failed by what would be the same again, or over a write.
            EngineError: What `fork` raises.
        """
        self._check_caller(on_event, deps)
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

        make = partial(make_fork, self._index, self._grants, run_id, find_places, new)
        fork = await self._runs.run_blocking(make, repeat_writes=repeat_writes, retry=retry)

        def write(stop: StopSignal) -> Job:
            if on_begin is not None:
                on_begin(new)
            self._starter.add_entry(new, fork.started, fork.base, fork.at, submitter)
            self.store.journal.append(new, fork.rows)
            return self._job_of(new, stop, on_event, deps)

        return await self._drive(new, write, on_taken)
