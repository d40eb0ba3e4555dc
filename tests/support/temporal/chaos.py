"""Rounds of all workflows on Temporal while workers, the server and connections are disturbed; one JSON line a round.

python -m support.temporal.chaos SEED [ROUNDS [postgres]]: on one PostgreSQL, else each run has a file. In each round
two or three workers, one of whose clocks may be off, drive every workflow of the crash matrix. Meanwhile workers are
killed, and stopped for longer than anybody waits for them, and so are the Temporal server and the connections to the
database.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from engine_shim import RunResult
from support.crash.matrix_world import Ledger
from support.postgres_server import real_postgres
from support.temporal.fleet import Fleet, Server
from support.temporal.homes import Home, open_homes

ACT_S = 0.4
PATIENCE_S = 150.0
DISTURBED = 8
DISTURBANCES = ("kill", "kill", "kill", "stop", "server", "connections")


class Round:
    """One round of a seed."""

    def __init__(self, chance: random.Random, folder: Path, store: str | None) -> None:
        self._chance, self._folder, self._store = chance, folder, store
        if store:
            (folder / "store").write_text(store)
        self.server = Server(folder / "temporal")
        self.fleet = Fleet(self.server.address, folder, seconds=ACT_S)
        self.homes = open_homes(folder, temporal=self.server.address)
        self.killed: list[tuple[int, float]] = []
        self.done: list[str] = []

    async def play(self) -> dict[str, Any]:
        """What came of it."""
        for skew in self._chance.choice([(0.0, 0.0), (0.0, 90.0), (0.0, -3600.0, 0.0)]):
            self.fleet.start(skew=skew)
        try:
            driving = [asyncio.create_task(asyncio.wait_for(home.drive(), PATIENCE_S)) for home in self.homes.values()]
            disturbing = asyncio.create_task(self._disturb())
            await asyncio.wait(driving)
            disturbing.cancel()
            *results, _ = await asyncio.gather(*driving, disturbing, return_exceptions=True)
            return await asyncio.to_thread(self._told, results)
        finally:
            self.fleet.end()
            self.server.kill()

    async def _disturb(self) -> None:
        how: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "server": self._restart_server,
            "connections": self._cut_connections,
        }
        await asyncio.sleep(4)  # the workers have come up
        for _ in range(DISTURBED):
            name = self._chance.choice(DISTURBANCES)
            await how[name]()
            self.done.append(name)
            await asyncio.sleep(self._chance.uniform(1, 3))

    async def _kill(self) -> None:
        index = self._chance.randrange(len(self.fleet.workers))
        self.killed.append((self.fleet.workers[index].pid, time.time()))
        self.fleet.kill(index)
        self.fleet.start()

    async def _stop(self) -> None:
        index = self._chance.randrange(len(self.fleet.workers))
        self.fleet.stop(index)
        await asyncio.sleep(self._chance.uniform(3, 5))
        self.fleet.go_on(index)

    async def _restart_server(self) -> None:
        self.server.kill()
        await asyncio.sleep(self._chance.uniform(0, 1))
        await asyncio.to_thread(self.server.start)

    async def _cut_connections(self) -> None:
        if self._store:
            import psycopg

            query = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = %s"
            )
            with psycopg.connect(self._store, autocommit=True) as db:
                db.execute(query, (db.info.dbname,))

    def _told(self, results: list[Any]) -> dict[str, Any]:
        problems = {}
        for home, result in zip(self.homes.values(), results, strict=True):
            found = home.problems(result) if isinstance(result, RunResult) else [repr(result)]
            if found:
                problems[home.name] = found
        return {"problems": problems, "disturbances": self.done, "recoveries": self._recoveries()}

    def _recoveries(self) -> list[float]:
        """Seconds from a kill until another worker did again what the killed one had not answered."""
        return sorted(round(each, 2) for home in self.homes.values() for each in recoveries(home, self.killed))


def recoveries(home: Home, killed: list[tuple[int, float]]) -> list[float]:
    lines, found = Ledger(home.folder / "ledger").lines(), []
    for pid, at in killed:
        own = [line for line in lines if line["by"] == pid]
        if not own:
            continue
        name = own[-1].get("question") or own[-1]["key"]
        again = [
            line["time"] - at for line in lines if line["time"] > at and name in (line.get("question"), line.get("key"))
        ]
        found += again[:1]
    return found


def main(seed: int, rounds: int, on_postgres: bool) -> None:
    chance = random.Random(seed)
    with ExitStack() as stack:
        database = stack.enter_context(real_postgres(max_connections=100)) if on_postgres else None
        for number in range(rounds):
            folder, began = stack.enter_context(tempfile.TemporaryDirectory()), time.monotonic()
            store = database.new_database(f"round_{number}") if database else None
            told = asyncio.run(Round(chance, Path(folder), store).play())
            about = {"seed": seed, "round": number, "seconds": round(time.monotonic() - began)}
            print(json.dumps({**about, **told}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 1, "postgres" in sys.argv[3:])
