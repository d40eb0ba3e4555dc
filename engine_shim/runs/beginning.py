"""Beginning: begins runs from a definition."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from agent_core.journal.reader import read_run
from agent_core.run.control import StopSignal
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.sync import run_sync
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import ROOT
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.runs.drive import Job, OnEvent, RunResult
from engine_shim.runs.driving import OnTaken
from engine_shim.runs.forking import Forking, OnBegin
from engine_shim.runs.host_check import HostCheck
from engine_shim.store.run_store import StrPath


class Beginning(Forking):
    """The runs of a store on one host, and new ones of workflows."""

    async def run(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        is_new: bool = False,
        submitter: str | None = None,
        deps: object = None,
        on_begin: OnBegin = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Run a workflow from its inputs to its end, or until it waits.

        Args:
            workflow: A workflow, a definition, or the path of its file.
            external: The inputs; the `default`s that the definition declares replace what it lacks.
            run_id: The run's id, by default a new one. A run that the store holds is resumed, or, when it is finished,
                gives its result again.
            is_new: Whether the id was made just now, so that the store is not searched for it.
            submitter: Who submitted the run: servers drive it on after a restart.
            deps: An object that the tools of the run, and of all nested in it, get as `context.deps`. It is neither
                recorded nor shown to a model, and each `resume` of the run gives its own.
            on_begin: Called with the run's id, once its inputs are checked, before anything is written, and perhaps in
                a thread.
            on_taken: Called once all is written, and the run is driven.
            on_event: Called with each event, in the event loop.

        Returns:
            The result: what came of it, or what it waits for.

        Raises:
            DefinitionError: A workflow or inputs that cannot be run, or `deps` that reach no worker; nothing was
                written.
            RunBusy: Somebody drives the run at this moment.
            JournalError: The store cannot be read or written.
        """
        self._check_caller(on_event, deps)
        start = await self._runs.run_blocking(self._starter.prepare, workflow, external, run_id, is_new=is_new)

        def write(stop: StopSignal) -> Job:
            if on_begin is not None:
                on_begin(start.run)
            begun = self._starter.write(start, submitter)
            if begun is None:
                check = HostCheck(start.preparer.grant)
                refuse(check.recorded_problems(self._index.load_to_go_on(start.run), start.checked.base))
                self._controls.apply_last(start.run, stop, "caller")
            return Job(start.run, start.spec, start.preparer, stop, on_event, start.conversation, deps, begun)

        return await self._drive(start.run, write, on_taken)

    def begin(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
    ) -> str:
        """Write how a run begins, for `resume` to drive. Raises what `run` does.

        Args:
            workflow: A workflow, a definition, or the path of its file.
            external: The inputs.
            run_id: The run's id, by default a new one.

        Returns:
            The run's id.
        """
        start = self._starter.prepare(workflow, external, run_id)
        with self._lease_keeper.holding(start.run):
            self._starter.write(start)
        return start.run

    def _has_begun(self, run_id: str) -> bool:
        """Return whether the store holds the beginning of this run."""
        return self._index.has_started(run_id)

    def _forget_unbegun(self, run_id: str) -> bool:
        """Delete what a store holds of a run whose beginning could not be written. False for one that has begun.

        RunBusy while somebody begins it.
        """
        with self._lease_keeper.holding(run_id):
            return not self._has_begun(run_id) and self.store.forget(run_id)

    def _has_begun_with(
        self,
        run_id: str,
        workflow: Workflow | CheckedWorkflow,
        *,
        external: Mapping[str, Any],
        as_it_is: bool = False,
    ) -> bool:
        """Return whether a run of the store began with these inputs, as the records have them, in whichever version, or
        with the workflow `as_it_is`."""
        tape = self.store.journal.load(run_id)
        if ROOT not in tape:
            return True  # its next driver writes how it begins
        given, recorded = self._starter.prepare(workflow, external, None).body, read_run(tape, ROOT)
        if as_it_is and recorded.definition != given["definition"]:
            return False
        inputs = recorded.external
        return all(name in inputs and inputs[name] == given["external"][name] for name in external)

    def run_sync(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        is_new: bool = False,
        submitter: str | None = None,
        deps: object = None,
        on_begin: OnBegin = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Do what `run` does, for a caller without an event loop; inside one, in a thread of its own.

        Args:
            workflow: A workflow, a definition, or the path of its file.
            external: The inputs.
            run_id: The run's id, by default a new one.
            is_new: Whether the id was made just now.
            submitter: Who submitted the run.
            deps: What the tools of the run get as `context.deps`.
            on_begin: Called with the run's id before anything is written.
            on_taken: Called once all is written, and the run is driven.
            on_event: Called with each event.
        """
        return run_sync(
            lambda: self.run(
                workflow,
                external=external,
                run_id=run_id,
                is_new=is_new,
                submitter=submitter,
                deps=deps,
                on_begin=on_begin,
                on_taken=on_taken,
                on_event=on_event,
            )
        )

    def stream(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[RunResult], None]:
        """Yield the events of `run` as they happen, and last `{"event": "result", "result": …}` with its result.

        The run begins with the iteration and never waits for it. To stop iterating cancels the run;
        `contextlib.aclosing` around the iterator waits for its end there. What `run` raises, the iteration raises.

        Args:
            workflow: A workflow, a definition, or the path of its file.
            external: The inputs.
            run_id: The run's id, by default a new one.
            deps: What the tools of the run get as `context.deps`.
        """
        return stream_events(
            lambda hear: self.run(workflow, external=external, run_id=run_id, deps=deps, on_event=hear)
        )
