"""A long run that other processes pause or cancel at chance moments; prints one JSON line for each round.

python -m support.crash.steered paused SEED [ROUNDS]: paused and gone on with by a second process, and then by a third
python -m support.crash.steered cancelled SEED [ROUNDS]: cancelled by a second process
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from agent_core.errors import DecisionError
from agent_core.outputs import Json
from engine_shim import Engine
from engine_shim.errors import RunBusy
from support.crash.matrix import Undisturbed, home_of
from support.crash.matrix_attempt import RUN, Attempts, child, ended, read, write
from support.crash.matrix_judge import apart, differences, happened_again, too_often
from support.crash.matrix_workflows import LONG
from support.crash.matrix_world import Ledger
from support.crash.rivals import until

ROUNDS = 5
CUT_OFF = ([], ["cancelled"], ["run_finished"], ["cancelled", "run_finished"])
"""The kinds of records that a cancelled strand may have where an undisturbed one has others."""
ACT_S = (0.01, 0.03)
"""Between how many seconds an act takes."""
Steps = Callable[[Engine, Path], Awaitable[Json]]


class Steered:
    """The rounds of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.attempt = Attempts(LONG)
        self.usual = Undisturbed(self.attempt).report()

    def processes(self, home: Path, *works: Steps) -> list[Json]:
        """What processes come to that do these at the same time, in one store."""

        act_s = self.chance.uniform(*ACT_S)

        async def pause() -> None:
            await asyncio.sleep(act_s)

        async def told(steps: Steps) -> Json:
            engine = self.attempt.engine(home, pause=pause)
            try:
                return await steps(engine, home)
            except (DecisionError, RunBusy) as error:
                return {"refused": f"{type(error).__name__}: {error}"}
            finally:
                await engine.close()

        def process(number: int, steps: Steps) -> None:
            write(home / f"{number}.told", asyncio.run(told(steps)))

        pids = [child(partial(process, number, steps)) for number, steps in enumerate(works)]
        codes = [ended(pid) for pid in pids]
        return [{"exit": code, **(read(home / f"{n}.told") if code == 0 else {})} for n, code in enumerate(codes)]

    async def drive(self, engine: Engine, home: Path) -> Json:
        return {"status": (await engine.run(self.attempt.workflow(home), run_id=RUN)).status}

    def moment(self, most: int) -> Callable[[Path], Awaitable[None]]:
        """A chance moment: when so many acts are noted, and a little later."""
        acts, later = self.chance.randrange(1, most), self.chance.uniform(0, 0.2)

        async def wait(home: Path) -> None:
            await until(lambda: len(Ledger(home / "ledger").lines()) >= acts)
            await asyncio.sleep(later)

        return wait

    def end(self, home: Path) -> Json:
        """Go on with the run, if it can, and report."""
        assert ended(child(partial(self.attempt, home, "last"))) == 0
        return read(home / "last.after")

    # ── rounds ────────────────────────────────────────────────────────────────────────────────────

    def paused(self) -> Json:
        def paused_at(wait: Callable[[Path], Awaitable[None]]) -> Steps:
            async def steps(engine: Engine, home: Path) -> Json:
                await wait(home)
                status = await engine.pause(RUN)
                return {"paused": status, "status": (await engine.resume(RUN)).status}

            return steps

        with home_of(LONG) as home:
            came = self.processes(home, self.drive, paused_at(self.moment(20)), paused_at(self.moment(35)))
            told, lines = self.end(home), Ledger(home / "ledger").lines()
            again = [f"{name} was done again" for name in too_often(lines, 1)]
            return {"came": came, "wrong": [*differences(told, self.usual, LONG), *again]}

    def cancelled(self) -> Json:
        wait = self.moment(30)

        async def cancel(engine: Engine, home: Path) -> Json:
            await wait(home)
            status = await engine.cancel(RUN)
            return {"status": status, "noted": len(Ledger(home / "ledger").lines())}

        with home_of(LONG) as home:
            came = self.processes(home, self.drive, cancel)
            told, lines = self.end(home), Ledger(home / "ledger").lines()
            wrong = [] if came[1].get("noted", len(lines)) == len(lines) else ["something acted after the cancellation"]
            return {"came": came, "wrong": [*wrong, *happened_again(lines), *self._illegal(told)]}

    def _illegal(self, told: Json) -> Sequence[str]:
        """What is wrong with a cancelled run's report: up to where it was cut off, it is the undisturbed one."""
        if told["result"]["status"] == "completed":
            return differences(told, self.usual, LONG)
        whole = told["verified"] and told["replayed"] and told["driver"] is None
        wrong = [] if whole else ["not verified, not replayed or still claimed"]
        if (told["status"], told["result"]["status"]) != ("cancelled", "cancelled"):
            wrong.append(f"{told['status']} in the store, {told['result']['status']} as a result")
        for path, records in told["strands"].items():
            usual = self.usual["strands"].get(path, [])
            kinds = [record["kind"] for record in records[_alike(records, usual) :]]
            if kinds not in CUT_OFF:
                wrong.append(apart({path: records}, {path: usual}))
        return wrong


def _alike(records: Sequence[Json], usual: Sequence[Json]) -> int:
    """How many records two strands begin with alike."""
    pairs = enumerate(zip(records, usual, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(records), len(usual)))


if __name__ == "__main__":
    steered = Steered(int(sys.argv[2]))
    for _ in range(int(sys.argv[3]) if sys.argv[3:] else ROUNDS):
        print(json.dumps({"paused": steered.paused, "cancelled": steered.cancelled}[sys.argv[1]]()))
