"""Runs whose driver was killed, and which another process cancels that is killed as well; prints a JSON line for each.

python -m support.crash.orphans WORKFLOW [STEP]
"""

import asyncio
import json
import signal
import sys
from functools import partial
from pathlib import Path

from agent_core.errors import DecisionError
from engine_shim import Engine
from support.crash.matrix import Undisturbed, home_of
from support.crash.matrix_attempt import RUN, Attempts, child, ended, read, report, write
from support.crash.matrix_workflows import CASES
from support.crash.matrix_world import Killer, Ledger


async def cancel(engine: Engine) -> str:
    """The run's status once it is cancelled, or what it has ended as."""
    try:
        return await engine.cancel(RUN)
    except DecisionError:
        return (await engine.resume(RUN)).status


def cancelled(attempt: Attempts, home: Path, killer: Killer) -> None:
    engine = attempt.engine(home, killer)
    status = asyncio.run(cancel(engine))
    whole = report(engine)
    told = {key: whole[key] for key in ("verified", "replayed", "driver", "in_doubt")}
    again = asyncio.run(engine.resume(RUN)).status
    write(home / "told", {"status": status, "again": again, **told})


def main(name: str, step: int = 3) -> None:
    attempt = Attempts(CASES[name])
    for at in range(5, Undisturbed(attempt).report()["passed"] + 1, step):
        with home_of(attempt.case) as home:
            assert ended(child(partial(attempt, home, "killed", Killer(at)))) == -signal.SIGKILL
            acts = len(Ledger(home / "ledger").lines())
            second = ended(child(partial(cancelled, attempt, home, Killer(1 + at % 8))))
            assert second == 0 or ended(child(partial(cancelled, attempt, home, Killer()))) == 0
            acted = len(Ledger(home / "ledger").lines()) - acts
            print(json.dumps({"at": at, "second": second, "acted": acted, **read(home / "told")}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
