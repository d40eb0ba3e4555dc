"""The workflows of the crash matrix as hosts on one Temporal: a directory, a queue and a run for each."""

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from agent_core.journal.record import Tape
from agent_core.outputs import Json
from engine_shim import Engine, RunResult
from engine_shim.host.config import TemporalConfig
from engine_shim.store.open import store_of
from engine_shim.store.run_store import RunStore
from support.crash.matrix_attempt import Attempts, report
from support.crash.matrix_judge import differences, happened_again, many_keys
from support.crash.matrix_workflows import CASES, Case
from support.crash.matrix_world import Ledger, Pause


@dataclass
class Home:
    """One workflow, its directory, and an engine on its store."""

    name: str
    folder: Path
    attempts: Attempts
    engine: Engine

    @property
    def run(self) -> str:
        """The id of its run."""
        return self.name.replace(" ", "-")

    @property
    def queue(self) -> str:
        """Its queue: each store has one of its own."""
        return queue_of(self.folder)

    async def drive(self) -> RunResult:
        """Run to the end, with a person who decides whatever waits."""
        result = await self.engine.run(self.attempts.workflow(self.folder), run_id=self.run)
        while result.status == "waiting":
            said = {(each["strand"], each["n"]): self.attempts.decision(each, self.folder) for each in result.waiting}
            result = await self.engine.resume(self.run, decisions=said)
        return result

    def worker_engine(self) -> Engine:
        """An engine on its store for a worker in this process."""
        return self.attempts.engine_with(self.engine.store)

    def problems(self, result: RunResult) -> list[str]:
        """What is otherwise than in an undisturbed run in one process."""
        told = {"result": result.as_json(), **report(self.engine, self.run)}
        usual = without_time_left(undisturbed(self, told["skipped"]))
        lines, tape = Ledger(self.folder / "ledger").lines(), self.engine.store.journal.load(self.run)
        return [
            *differences(without_time_left(told), usual, self.attempts.case),
            *(f"happened again: {each}" for each in happened_again(lines)),
            *(f"under many keys: {each}" for each in many_keys(lines)),
            *(f"done again after its answer: {each}" for each in done_after_answer(self, lines, tape)),
        ]


def open_homes(folder: Path, pause: Pause | None = None, temporal: str | None = None) -> dict[str, Home]:
    """The workflows in a folder; with the address of a Temporal server their workers drive the runs."""
    homes, named = {}, folder / "store"
    shared = store_of(named.read_text()) if named.exists() else None
    for name, case in CASES.items():
        home = folder / name
        config = None if temporal is None else TemporalConfig(address=temporal, queue=queue_of(home))
        homes[name] = open_home(name, case, home, shared, pause, (), config)
    return homes


def queue_of(home: Path) -> str:
    return f"{home.parent.name}.{home.name}".replace(" ", "-")


def open_home(
    name: str,
    case: Case,
    folder: Path,
    store: RunStore | None = None,
    pause: Pause | None = None,
    skipped: Sequence[str] = (),
    temporal: TemporalConfig | None = None,
) -> Home:
    """One workflow in a folder, its runs in a store or in a file there."""
    folder.mkdir(exist_ok=True)
    for file, definition in case.files.items():
        (folder / file).write_bytes(orjson.dumps(definition))
    attempts = Attempts(case)
    attempts.enter(folder, skipped=skipped, pause=pause)
    return Home(name, folder, attempts, attempts.engine_with(store_of(store or folder / "runs.db"), temporal=temporal))


def undisturbed(disturbed: Home, skipped: Sequence[str]) -> Json:
    """The report of the run in one process, which is driven for it."""
    folder = disturbed.folder.with_name(f"{disturbed.folder.name}.undisturbed")
    shutil.rmtree(folder, ignore_errors=True)
    home = open_home(disturbed.name, disturbed.attempts.case, folder, skipped=skipped)

    async def drive() -> RunResult:
        try:
            return await home.drive()
        finally:
            await home.engine.close()

    return {"result": asyncio.run(drive()).as_json(), **report(home.engine, home.run)}


def without_time_left(told: Json) -> Json:
    """A report without the seconds that an agent is told it has left, nor the digests of questions that tell them."""
    timeless = re.sub(rb"\b\d+ seconds", b"N seconds", orjson.dumps(told))
    without: Json = orjson.loads(re.sub(rb'"digest":"[0-9a-f]{64}"', b'"digest":""', timeless))
    return without


def done_after_answer(home: Home, lines: Sequence[Json], tape: Tape) -> list[str]:
    """The acts that began again at a later time than the journal has for their answer, by the clock of whoever gave
    that."""
    ends, skews, told = answer_times(home.run, tape), read_skews(home.folder.parent), dict[str, list[Json]]()
    for line in lines:
        told.setdefault(line.get("question") or line["key"], []).append(line)
    return [
        name
        for name, tries in told.items()
        if name in ends
        and tries[1:]
        and tries[-1]["time"] > max(ends[name] - skews.get(each["by"], 0.0) for each in tries) + 0.002
    ]


def note_skew(folder: Path, seconds: float) -> None:
    """Say how far the clock of this process is off."""
    with (folder / "skews").open("a") as file:
        file.write(f"{os.getpid()} {seconds}\n")


def read_skews(folder: Path) -> dict[int, float]:
    """How far off the clocks of processes are."""
    file = folder / "skews"
    told = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return {int(pid): float(seconds) for pid, seconds in told}


def answer_times(run: str, tape: Tape) -> dict[str, float]:
    """When each act was answered: `STRAND INDEX` of questions, idempotency keys of calls."""
    times: dict[str, float] = {}
    for path, rows in tape.items():
        questions, name = 0, ""
        for n, record in enumerate(row.record() for row in rows):
            if record["kind"] == "asked" and record["ask"] != "batch":
                name = f"{run}/{path}/{n}"
                if record["ask"] == "model":
                    name, questions = f"{path} {questions}", questions + 1
            elif record["kind"] == "answered" and name:
                times[name] = datetime.fromisoformat(record["at"]).timestamp()
    return times
