"""What processes are asked to do about runs, and what may come of it."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from agent_core.errors import Abandoned, DecisionError
from agent_core.journal.record import Tape
from engine_shim import DefinitionError, RunNotFound, RunResult, Workflow
from engine_shim.errors import RunBusy
from engine_shim.store.run_store import RunStore
from support.state.checks import ENDED, check_result, status_of
from support.state.world import Host, World


@dataclass(eq=False)
class Job:
    """Something that was asked of an engine. `drives` when it goes on with the run, `before` the tape until then."""

    kind: str
    run: str
    host: Host
    task: Any
    before: Tape
    drives: bool = True
    about: dict[str, Any] = field(default_factory=dict)


class Office:
    """Asks processes for things, and looks at what comes of each. `loose` are the runs that a dead process left as they
    were, `let_go` those that a process gave up as another one had them, `started` those that there are, `results` how
    they ended."""

    def meet(self, store: RunStore, workflows: list[Workflow], places: int, *, is_remote: bool) -> None:
        self.store, self.workflows, self.places, self.is_remote = store, workflows, places, is_remote
        self.world = World(store)
        self.jobs: list[Job] = []
        self.seen: dict[str, Tape] = {}
        self.loose: set[str] = set()
        self.let_go: set[str] = set()
        self.results: dict[str, RunResult] = {}
        self.started: dict[str, Workflow] = {}

    def clock(self) -> float:
        return self.world.clock()

    # ── what is there ────────────────────────────────────────────────────────────────────────────

    @property
    def runs(self) -> list[str]:
        return list(self.started)

    def picked(self, run: int, host: int) -> tuple[str, Host]:
        """A run and a process, now that nothing goes on by itself."""
        self.settle()
        return self.runs[run % len(self.runs)], self.a_host(host)

    def a_host(self, pick: int) -> Host:
        return self.world.hosts[pick % len(self.world.hosts)]

    def tape(self, run: str) -> Tape:
        return self.store.journal.load(run)

    def new_host(self, *, notices: bool = True) -> None:
        self.world.hosts.append(Host(self.world, places=self.places, is_remote=self.is_remote, notices=notices))

    # ── asking engines ───────────────────────────────────────────────────────────────────────────

    def ask(self, kind: str, run: str, host: Host, work: Coroutine[Any, Any, Any], **about: Any) -> Job:

        async def noted() -> Any:
            result = await work
            about["driven"], about["after"] = self.store.leases.holder(run) is not None, self.tape(run)
            return result

        about["busy"] = self.world.busy(host, run)
        before, drives = self.tape(run), kind in ("run", "resume", "fork")
        task = host.ask(run, noted())
        job = Job(kind, run, host, task, before, drives, about)
        self.jobs.append(job)
        if drives:
            busy = task.done() and not task.cancelled() and isinstance(task.exception(), RunBusy)
            known = kind != "resume" or "flow" in job.before
            if about["busy"] is not None and known and not about.get("refused") and not host.line.dead:
                assert busy == about["busy"], f"{kind} {run}: busy should be {about['busy']}"
        self.settle()
        return job

    def settle(self) -> None:
        """Let everything go as far as it can, and look at what has come to its end."""
        self.world.settle()
        for host in [host for host in self.world.hosts if host.line.dead]:
            self.bury(host)
        for job in [job for job in self.jobs if job.task.done()]:
            self.jobs.remove(job)
            self.check(job)

    def bury(self, host: Host) -> None:
        """What a dead process was at is left as it stands."""
        self.loose |= host.line.driving
        for job in [job for job in self.jobs if job.host is host]:
            self.jobs.remove(job)
            self.loose.add(job.run)
        self.world.hosts.remove(host)
        host.end()
        if not self.world.hosts:
            self.new_host()

    def check(self, job: Job) -> None:
        """What came of a job is what may come of it."""
        run, alone = job.run, job.run not in self.world.mixed
        if job.drives and not self.world.driven(run):
            left = [act for act in self.world.acts if act.run == run and act.host is job.host]
            assert not left, f"{left} left behind"
        if job.task.cancelled():
            return
        error = job.task.exception()
        match error:
            case None:
                self.check_done(job, job.task.result(), alone=alone)
            case RunBusy():
                assert job.drives
                assert job.about["busy"] is not False
                self.unchanged(job)
            case RunNotFound():
                assert "flow" not in job.before
                self.unchanged(job)
            case Abandoned():
                assert job.drives
                assert (job.host, run) in self.world.overtaken, "given up, and nobody has taken it over"
                self.let_go.add(run)
            case DecisionError():
                assert job.about.get("wrong") or status_of(self.tape(run)), f"{job.kind}: {error}"
                self.unchanged(job)
            case DefinitionError():
                assert job.about.get("refused"), f"{job.kind}: {error}"
                self.unchanged(job)
            case _:
                raise error

    def unchanged(self, job: Job) -> None:
        if not self.world.driven(job.run):
            assert self.tape(job.run) == job.before, f"{job.kind} was refused, and yet wrote something"

    def check_done(self, job: Job, result: Any, *, alone: bool) -> None:
        if isinstance(result, RunResult):
            assert not job.about.get("wrong")
            check_result(result, job.about["after"], alone=alone)
            if result.status in ENDED:
                assert self.results.setdefault(job.run, result) == result
            if alone:
                self.loose.discard(job.run)
                self.let_go.discard(job.run)
        elif job.kind == "cancel" and alone:
            assert result in ENDED or job.about["driven"], f"cancelled, and it is {result}"
            if result in ENDED:
                self.loose.discard(job.run)
        elif job.kind == "pause" and alone:
            assert result in ("paused", *ENDED) or job.about["driven"], f"paused, and it is {result}"
