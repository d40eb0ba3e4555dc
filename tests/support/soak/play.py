"""One soak: python -m support.soak.play process|temporal SECONDS [SEED [FOLDER]].

To find which disturbance a fault needs, the variable SOAK_WITHOUT leaves some out: the names of what disturbs, and of
the parts of the background work that raise errors, as the figures have them; `clocks` for clocks that are off.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.soak.disturb import Disturber
from support.soak.judge import UNDER_WAY, Judge, describe, read_statuses
from support.soak.work import ENDS, Clients
from support.soak.world import Engine, World, open_world

CLIENTS = 8
ERRORS_S = 20.0
"""How often each part of the background work raises an error, about."""
HEALS_WITHIN_S = 300.0
LOOKS_S = 0.2
"""How often a supervisor looks after the processes, also once nothing is disturbed any more."""
TELLS_WITHIN_S = 240.0
"""How long a webhook may have to wait for what a server had claimed that was killed."""


async def play(world: World, seconds: float, chance: random.Random) -> tuple[Clients, Disturber, list[str]]:
    """Let clients work while all is disturbed; then let them come to the end of what they have begun."""
    clients, disturber = Clients(world, random.Random(chance.random())), Disturber(world, chance)
    working = asyncio.create_task(clients.work(CLIENTS))
    disturbing = asyncio.create_task(disturber.disturb(seconds))
    supervising = asyncio.create_task(supervise(world))
    try:
        await asyncio.wait([working, disturbing], return_when=asyncio.FIRST_COMPLETED)
        await disturbing
        clients.is_over = True
        done, _ = await asyncio.wait([working], timeout=HEALS_WITHIN_S)
        open_ = [each for each in clients.tally.runs.values() if each.status not in ENDS]
        late = [] if done else [f"{describe(each)} has not ended within {HEALS_WITHIN_S:g} s" for each in open_]
        if done:
            await working
            late = await await_deliveries(world, clients)
            await await_others(world, clients)
        return clients, disturber, late
    finally:
        for task in (working, disturbing, supervising):
            task.cancel()
        await asyncio.gather(working, disturbing, supervising, return_exceptions=True)


async def supervise(world: World) -> None:
    """See which processes are ready, and start another for each that ends by itself, until this is cancelled."""
    while True:
        world.look_after()
        await asyncio.sleep(LOOKS_S)


async def await_deliveries(world: World, clients: Clients) -> list[str]:
    """Wait until the webhook was told of the end of each run; gives those of which it was not."""
    until = time.monotonic() + TELLS_WITHIN_S
    while untold := [run for run in clients.tally.runs.values() if not world.endpoints.told[run.run, run.status]]:
        if time.monotonic() > until:
            return [f"{describe(each)}: the webhook was not told" for each in untold]
        await asyncio.sleep(1)
    return []


async def await_others(world: World, clients: Clients) -> None:
    """Wait until the runs have ended of whose beginning a client was not told, such as by a server that was killed
    then."""
    until = time.monotonic() + HEALS_WITHIN_S
    while time.monotonic() < until:
        statuses = await asyncio.to_thread(read_statuses, world.store)
        if all(run in clients.tally.runs or status not in UNDER_WAY for run, (_, status) in statuses.items()):
            return
        await asyncio.sleep(1)


def soak(engine: Engine, seconds: float, seed: int, folder: Path) -> list[str]:
    """Play, judge, and print the figures; gives the faults."""
    chance, began = random.Random(seed), time.monotonic()
    print(f"soak: {engine}, seed {seed}, {seconds:g} s", flush=True)
    with open_world(folder, engine, random.Random(chance.random()), ERRORS_S) as world:
        clients, disturber, late = asyncio.run(play(world, seconds, chance))
        judge = Judge(world, clients.tally)
        faults = [*late, *judge.find_faults()]
        healed = time.monotonic() - began - seconds
        print(f"soak: {engine}, seed {seed}, {seconds:g} s and {healed:.0f} s more; disturbed {dict(disturber.done)};")
        print(f"    {judge.figures()}; {len(faults)} faults", flush=True)
        judge.keep(folder)
        for each in [*faults[:50], *(f"{n} × {text}" for text, n in clients.tally.refused.items())]:
            print(f"  - {each}", flush=True)
    return faults


def main(words: Sequence[str]) -> int:
    engine: Engine = "temporal" if words[0] == "temporal" else "process"
    seed = int(words[2]) if words[2:] else random.randrange(10**6)
    for name, value in {"OPENAI_API_KEY": "sk-none", "SOAK_SECRET": "a secret of the soak"}.items():
        os.environ.setdefault(name, value)
    folder = Path(words[3] if words[3:] else tempfile.mkdtemp(prefix="soak-"))
    print(f"soak: files in {folder}", flush=True)
    return bool(soak(engine, float(words[1]), seed, folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
