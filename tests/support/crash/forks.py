"""A run that is forked by a process which is killed at one point after another; prints a JSON line for each.

The first line is of an undisturbed fork. Of one that passes 30 points or more every third is tried.

python -m support.crash.forks WORKFLOW STRAND N
"""

import asyncio
import json
import signal
import sys
from functools import partial
from pathlib import Path

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from engine_shim import Engine, RunNotFound, RunResult
from engine_shim.runs.loops import LOOPS
from support.crash.matrix import home_of
from support.crash.matrix_attempt import RUN, Attempts, child, ended, read, write
from support.crash.matrix_compare import timeless
from support.crash.matrix_judge import happened_again
from support.crash.matrix_workflows import CASES
from support.crash.matrix_world import Killer, Ledger

FORK = "run-2"
At = tuple[str, int]


async def driven(attempt: Attempts, engine: Engine, home: Path, at: At) -> RunResult:
    """The fork's result: begun, or gone on with where another process has begun it."""
    try:
        result = await engine.resume(FORK)
    except RunNotFound:
        result = await engine.fork(RUN, at, new_id=FORK, repeat_writes=True)
    while result.status == "waiting":
        spoken = {(entry["strand"], entry["n"]): attempt.decision(entry, home) for entry in result.waiting}
        result = await engine.resume(FORK, decisions=spoken)
    return result


def forked(attempt: Attempts, at: At, home: Path, killer: Killer) -> None:
    engine = attempt.engine(home, killer)
    result = asyncio.run(driven(attempt, engine, home, at))
    journal, entry = engine.store.journal, engine.store.entry(FORK)
    records = [row.record() for rows in journal.load(FORK).values() for row in rows]
    told = {
        "passed": killer.passed,
        "outputs": timeless(result.outputs),
        "statuses": [result.status, entry and entry.status],
        "skipped": any(record.get("decision") == "skip" for record in records),
        "verified": verify(journal, run_id=FORK).ok,
        "replayed": replay(journal, run_id=FORK, loops=LOOPS).identical,
        "driver": engine.store.leases.holder(FORK),
    }
    write(home / "told", told)


def main(name: str, at: At) -> None:
    attempt = Attempts(CASES[name])
    usual, point = {"passed": 1}, 0
    while point <= usual["passed"]:
        with home_of(attempt.case) as home:
            assert ended(child(partial(attempt, home, "first"))) == 0
            (home / "ledger").unlink()  # the fork does things of its own
            killed = point > 0 and ended(child(partial(forked, attempt, at, home, Killer(point)))) == -signal.SIGKILL
            assert ended(child(partial(forked, attempt, at, home, Killer()))) == 0
            told = read(home / "told")
            usual = told if point == 0 else usual
            same = told["outputs"] == usual["outputs"]
            twice = happened_again(Ledger(home / "ledger").lines())
            print(json.dumps({"point": point, "killed": killed, **told, "same": same, "twice": twice}))
        point += 1 if point == 0 or usual["passed"] < 30 else 3


if __name__ == "__main__":
    main(sys.argv[1], (sys.argv[2], int(sys.argv[3])))
