"""Drivers that meet on one interrupted run, in processes of their own; prints one JSON line for each round.

python -m support.crash.rivals claimed WORKFLOW: two resume at once; who drives, writes when the other has ended
python -m support.crash.rivals unclaimed WORKFLOW: two drive at once, as nobody's claims are heard of elsewhere
python -m support.crash.rivals orphaned WORKFLOW: one resumes under a clock at which no claim ever runs out
"""

import asyncio
import json
import signal
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from agent_core.errors import JournalError
from agent_core.outputs import Json
from engine_shim import SqliteRunStore
from engine_shim.errors import RunBusy
from engine_shim.store.leases import TTL, MemoryLeases
from support.crash.matrix import Undisturbed, home_of
from support.crash.matrix_attempt import RUN, Attempts, child, ended, read, write
from support.crash.matrix_judge import differences, happened_again, many_keys
from support.crash.matrix_workflows import CASES
from support.crash.matrix_world import Killer, Ledger

PATIENCE_S, GLANCE_S = 60.0, 0.002


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(GLANCE_S)


class Rivals:
    """The rounds of one workflow."""

    def __init__(self, name: str) -> None:
        self.case = CASES[name]
        self.attempt = Attempts(self.case)
        self.undisturbed = Undisturbed(self.attempt)
        self.points: int = self.undisturbed.report()["passed"]

    def rounds(self, how: Callable[["Rivals", Path], Json]) -> None:
        """One round after another, each on a run that was killed at another point."""
        for at in range(5, self.points - 6, 1 if self.points < 30 else 3):
            with home_of(self.case) as home:
                pid = child(partial(self.attempt, home, "killed", Killer(at)))
                killed = ended(pid) == -signal.SIGKILL
                met = how(self, home)
                assert ended(child(partial(self.attempt, home, "last"))) == 0
                print(json.dumps({"at": at, "killed": killed and pid, **met, **self.judged(home, pid)}))

    def judged(self, home: Path, killed: int) -> Json:
        """What is wrong with the run in the end; how many drivers acted in it, the killed one among them."""
        told, lines = read(home / "last.after"), Ledger(home / "ledger").lines()
        usual = self.undisturbed.report(*told["skipped"])
        twice = [f"{write} happened twice" for write in happened_again(lines)]
        done = {line.get("deed") for line in lines if line["by"] != killed}
        lost = [f"{deed} has lost its answer" for deed in told["skipped"] if deed in done]
        wrong = [*differences(told, usual, self.case), *twice, *lost, *many_keys(lines)]
        return {"wrong": wrong, "in_doubt": told["in_doubt"], "drivers": len({line["by"] for line in lines})}

    def compete(self, home: Path, drive: Callable[[Path, str], Awaitable[str]]) -> list[str]:
        """What two processes come to that resume the run at once."""

        def rival(name: str, other: str) -> None:
            async def met() -> str:
                (home / f"{name}.here").touch()
                await until((home / f"{other}.here").exists)
                return await drive(home, name)

            write(home / f"{name}.came", {"to": asyncio.run(met())})

        first, second = child(lambda: rival("a", "b")), child(lambda: rival("b", "a"))
        codes = [ended(first), ended(second)]
        return [
            read(home / f"{name}.came")["to"] if code == 0 else f"exit {code}"
            for name, code in zip("ab", codes, strict=True)
        ]


class Gate(Killer):
    """Whoever passes a point waits there, in whatever thread, until one of these files is there."""

    def __init__(self, *files: Path, leaves: Path | None = None) -> None:
        super().__init__()
        self._files, self._leaves = files, leaves

    def __call__(self) -> None:
        if self._leaves is not None:
            self._leaves.touch()
        for _ in range(int(PATIENCE_S / GLANCE_S)):
            if any(file.exists() for file in self._files):
                return
            time.sleep(GLANCE_S)
        raise TimeoutError(self._files)


def claimed(rivals: Rivals, home: Path) -> Json:
    async def drive(home: Path, name: str) -> str:
        engine = rivals.attempt.engine(home, Gate(home / "refused"))
        try:
            return (await engine.resume(RUN)).status
        except RunBusy as busy:
            (home / "refused").touch()
            return f"busy: {busy}"
        finally:
            await engine.close()

    return {"came": rivals.compete(home, drive)}


def unclaimed(rivals: Rivals, home: Path) -> Json:
    """Neither writes or acts for the first time before the other is about to do so, or has ended."""

    async def drive(home: Path, name: str) -> str:
        other = {"a": "b", "b": "a"}[name]
        left = (home / f"{other}.acts", home / f"{other}.came")

        async def pause() -> None:
            (home / f"{name}.acts").touch()
            await until(lambda: any(file.exists() for file in left))
            await asyncio.sleep(0.003 if name == "a" else 0.002)

        gate = Gate(home / f"{other}.writes", home / f"{other}.came", leaves=home / f"{name}.writes")
        engine = rivals.attempt.engine(home, gate, pause=pause)
        engine.store.leases = MemoryLeases()
        engine = rivals.attempt.engine_with(engine.store)
        try:
            return (await engine.resume(RUN)).status
        except JournalError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await engine.close()

    return {"came": rivals.compete(home, drive)}


def orphaned(rivals: Rivals, home: Path) -> Json:
    """The claim of the process that was killed is there still, and holds for as long as its clock stands."""

    def resume() -> None:
        with closing(sqlite3.connect(home / "runs.db")) as db:
            ((driver, until),) = db.execute("SELECT driver, until FROM run_claims").fetchall()
        rivals.attempt.engine(home)
        store = SqliteRunStore(home / "runs.db", clock=lambda: until - TTL / 2)
        result = asyncio.run(rivals.attempt.engine_with(store).resume(RUN))
        write(home / "came", {"came": [result.status], "held_by": int(driver.split(":")[1])})

    assert ended(child(resume)) == 0
    return read(home / "came")


MEETINGS: dict[str, Any] = {"claimed": claimed, "unclaimed": unclaimed, "orphaned": orphaned}


if __name__ == "__main__":
    Rivals(sys.argv[2]).rounds(MEETINGS[sys.argv[1]])
