"""One attempt at a run, in a process of its own: begun or gone on with, and a report of what is there then."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import orjson

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.decisions import Decision, Retry, Skip
from agent_core.journal.record import Tape
from agent_core.journal.signature import split_own_strands
from agent_core.outputs import Json
from engine_shim import Engine, RunNotFound, Workflow, load_workflow
from engine_shim.definition.model import ROOT
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.loops import LOOPS
from engine_shim.store.run_store import RunStore
from support.crash.matrix_compare import answered, folded
from support.crash.matrix_workflows import Case
from support.crash.matrix_world import KillableStore, Killer, Ledger, Model, Pause, World, build_registry, deed
from utools.schema.compiled import compile_schema

RUN = "run-1"


class Attempts:
    """What all attempts at the runs of a workflow share; it is made once, before processes are forked."""

    def __init__(self, case: Case) -> None:
        self.case, self._world = case, World()
        self._registry, self._model = build_registry(self._world), Model(case.scripts, self._world)
        for tool in self._registry.all():  # compiled once for all, as it takes most of a small run's time
            compile_schema(self._registry._schema(tool.code).schema)
        gc.freeze()  # else each child copies every page that its collector looks at

    def engine(
        self, home: Path, killer: Killer | None = None, *, skipped: Collection[str] = (), pause: Pause | None = None
    ) -> Engine:
        """An engine in this process, with its store in `home`."""
        self._world.enter(home, killer, skipped=skipped, pause=pause)
        store = KillableStore(home / "runs.db", self._world.killer, home / "run.jsonl" if self.case.jsonl else None)
        return self.engine_with(store)

    def engine_with(self, store: RunStore, *, temporal: TemporalConfig | None = None) -> Engine:
        return Engine(self._registry, store=store, model=self._model, temporal=temporal)

    def enter(self, home: Path, *, skipped: Collection[str] = (), pause: Pause | None = None) -> None:
        """From now on deeds of this process are noted in `home`."""
        self._world.enter(home, skipped=skipped, pause=pause)

    def workflow(self, home: Path) -> Workflow:
        return load_workflow(self.case.definition, base=home)

    def __call__(self, home: Path, stage: str, killer: Killer | None = None, skipped: Collection[str] = ()) -> None:
        """Begin the run, or go on with it, to its end, and leave a report of what is there before and after."""
        killer = killer or Killer()
        engine = self.engine(home, killer, skipped=skipped)
        write(home / f"{stage}.before", _before(engine, Ledger(home / "ledger")))
        result = asyncio.run(self._driven(engine, home))
        write(home / f"{stage}.after", {"result": result, "passed": killer.passed, **report(engine)})
        asyncio.run(engine.close())

    async def _driven(self, engine: Engine, home: Path) -> Json:
        try:
            result = await engine.resume(RUN)
        except RunNotFound:
            result = await engine.run(self.workflow(home), run_id=RUN)
        while result.status == "waiting":
            spoken = {(entry["strand"], entry["n"]): self.decision(entry, home) for entry in result.waiting}
            result = await engine.resume(RUN, decisions=spoken)
        return result.as_json()

    def decision(self, entry: Json, home: Path) -> Decision:
        """A person looks into the matter: what has happened is skipped, what has not is tried again."""
        if entry["reason"] != "in_doubt":
            return self.case.approval(entry["args"])
        deeds = [line.get("deed") for line in Ledger(home / "ledger").lines()]
        return Skip() if deed(entry["tool"], entry["args"]) in deeds else Retry()


def _before(engine: Engine, ledger: Ledger) -> Json:
    """What is known as an attempt begins; what a kill has left must be the legal beginning of a journal."""
    journal = engine.store.journal
    tape = journal.load(RUN)
    legal = True
    if ROOT in tape:
        legal = verify(journal, run_id=RUN).first_bad is None
        legal = legal and replay(journal, run_id=RUN, loops=LOOPS).divergence is None
    return {"legal": legal, "answered": sorted(answered(RUN, tape)), "noted": len(ledger.lines())}


def report(engine: Engine, run: str = RUN) -> Json:
    """What is held of a run that has ended, and whether it is in order."""
    journal, entry = engine.store.journal, engine.store.entry(run)
    tape = journal.load(run)
    return {
        "strands": folded(split_own_strands(tape)[0]),
        "in_doubt": any(row.record().get("reason") == "in_doubt" for rows in tape.values() for row in rows),
        "skipped": _skipped(tape),
        "verified": verify(journal, run_id=run).ok,
        "replayed": replay(journal, run_id=run, loops=LOOPS).identical,
        "status": entry and entry.status,
        "driver": engine.store.leases.holder(run),
    }


def _skipped(tape: Tape) -> list[str]:
    """The deeds that a person has skipped."""
    found = []
    for rows in tape.values():
        records = [row.record() for row in rows]
        asked = [records[n - 2] for n, record in enumerate(records) if record.get("decision") == "skip"]
        found += [deed(record["tool"], record["args"]) for record in asked]
    return sorted(found)


def write(path: Path, value: Json) -> None:
    path.write_bytes(orjson.dumps(value))


def read(path: Path) -> Json:
    value: Json = orjson.loads(path.read_bytes())
    return value


# ── processes ────────────────────────────────────────────────────────────────────────────────────


def child(work: Callable[[], None]) -> int:
    """The id of a new process that does `work`; it exits with 1 when that raises."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # the child has nobody else to tell
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def ended(pid: int) -> int:
    """The exit status of a process, minus its signal when it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
