"""A worker of the crash matrix's workflows: ADDRESS FOLDER SECONDS SKEW [from-tape]. It works until killed.

Each workflow has a queue and a directory of its name; the runs are in the store that FOLDER/store names, or in a file
of the directory. Each act takes up to SECONDS; the clock of this process is SKEW seconds off. With `from-tape` it finds
every act by its run's tape, as a process does that has not walked the run itself.
"""

import asyncio
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent_core.run import clock

ADDRESS, FOLDER, SECONDS, SKEW, *FROM_TAPE = sys.argv[1:]


def skewed_now() -> str:
    """The time, as a machine has it whose clock is off."""
    at = datetime.now(UTC) + timedelta(seconds=float(SKEW))
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


clock.now = skewed_now  # before anything imports it by name

from engine_shim.host.config import TemporalConfig  # noqa: E402
from engine_shim.runs.temporal.references import AT_HAND  # noqa: E402
from engine_shim.runs.temporal.worker import work  # noqa: E402
from support.temporal.homes import note_skew, open_homes  # noqa: E402


async def pause() -> None:
    await asyncio.sleep(random.random() * float(SECONDS))


async def main() -> None:
    note_skew(Path(FOLDER), float(SKEW))
    engines = {home.queue: home.engine for home in open_homes(Path(FOLDER), pause).values()}
    await work(engines, TemporalConfig(address=ADDRESS), asyncio.Event())


if FROM_TAPE:
    AT_HAND.has = lambda *_: False  # type: ignore[method-assign]
asyncio.run(main())
