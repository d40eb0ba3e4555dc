"""How long a run stands still whose worker was killed: from the kill until another worker asks the question again.

    python tests/bench/recovery.py [--kills 5] [--fresh]

Two workers at a Temporal server of its own; whichever asks the model of a run is killed, and replaced. With `--fresh`
the model is an endpoint, and the other worker is an `agent-core worker` that has done nothing yet.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from recovery_fresh import recover

from support.crash.matrix_world import Ledger
from support.temporal.fleet import Fleet, Server
from support.temporal.homes import Home, open_homes

QUESTION = "flow/asks.1 0"


async def kill_and_wait(home: Home, fleet: Fleet, run: str) -> float:
    """Seconds from the kill of a run's worker until another one asks again."""
    ledger = Ledger(home.folder / "ledger")
    before = len(ledger.lines())
    running = asyncio.create_task(home.engine.run(home.attempts.workflow(home.folder), run_id=run))
    first = await find(ledger, before)
    index = [worker.pid for worker in fleet.workers].index(first["by"])
    killed = time.time()
    fleet.kill(index)
    fleet.start()
    again = await find(ledger, before + 1)
    await running
    return float(again["time"]) - killed


async def find(ledger: Ledger, skipped: int) -> dict[str, float]:
    """The next time the question is asked."""
    while True:
        asked = [line for line in ledger.lines()[skipped:] if line.get("question") == QUESTION]
        if asked:
            return asked[0]
        await asyncio.sleep(0.02)


async def measure(kills: int, folder: Path, server: Server) -> None:
    home = open_homes(folder, temporal=server.address)["agent"]
    fleet = Fleet(server.address, folder, seconds=2.0)
    try:
        for _ in range(2):
            fleet.start()
        await home.engine.run(home.attempts.workflow(home.folder), run_id="first")  # both have come up
        for kill in range(kills):
            print(f"{await kill_and_wait(home, fleet, f'run-{kill}'):.1f} s", flush=True)
    finally:
        fleet.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name) / "temporal")
        try:
            if options.fresh:
                seconds = asyncio.run(recover(Path(name), server.address, options.kills))
                print(" ".join(f"{each:.1f}" for each in seconds), "s")
            else:
                asyncio.run(measure(options.kills, Path(name), server))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
