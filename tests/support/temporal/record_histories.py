"""Record what Temporal's history has of the matrix's workflows, with their journals, for the release that this is.

PYTHONPATH=tests python -m support.temporal.record_histories: writes tests/temporal/histories/VERSION/NAME.json.gz.
"""

import asyncio
import gzip
import re
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import orjson
from temporalio.client import WorkflowHistory

from agent_core.journal.memory import MemoryJournal
from agent_core.journal.record import Row
from agent_core.outputs import Json
from support.crash.matrix_workflows import CASES, Case
from support.temporal.worked import read_histories, worked
from support.temporal_server import temporal_server

FOLDER: Final = Path(__file__).parents[2] / "temporal" / "histories"
NAMES: Final = (
    *("agent", "batch_approval", "branch", "foreach agent", "nested agent", "node retry", "parallel", "plan", "write"),
)
"""Workflows that between them need all that a driver can be asked for."""
LONG: Final = 60
"""After how many events the server suggests a new history."""


async def record(name: str, case: Case, address: str) -> Json:
    """One run: its id, its histories, and the rows of its journal."""
    queue = name.replace(" ", "-")
    with tempfile.TemporaryDirectory() as folder:
        async with worked(queue, case, Path(folder) / "home", address) as home:
            await home.drive()
            rows = [row for strand in home.engine.store.journal.load(home.run).values() for row in strand]
            histories = await read_histories(address, queue, home.run)
    return {
        "run": home.run,
        "histories": [history.to_json_dict() for history in histories],
        "rows": [[row.path, row.n, row.hash.hex(), row.data.decode()] for row in rows],
    }


def file_name(name: str) -> str:
    return f"{name.replace(' ', '-')}.json.gz"


def read_recorded(file: Path) -> tuple[MemoryJournal, list[WorkflowHistory]]:
    """The journal of a recorded run, and its histories."""
    told = orjson.loads(gzip.decompress(file.read_bytes()))
    journal = MemoryJournal()
    rows = [Row(path, n, bytes.fromhex(hash_), data.encode()) for path, n, hash_, data in told["rows"]]
    journal.append(told["run"], rows)
    return journal, [WorkflowHistory.from_json(told["run"], each) for each in told["histories"]]


def main(cases: Mapping[str, Case]) -> None:
    folder = FOLDER / version("agent-core")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as log,
        temporal_server(Path(log) / "log", historyCount_suggestContinueAsNew=LONG) as address,
    ):
        for name, case in cases.items():
            told = orjson.dumps(asyncio.run(record(name, case, address)))
            nobodys = re.sub(rb"\d+@[\w.]+", b"worker", told)  # without the name of this machine
            (folder / file_name(name)).write_bytes(gzip.compress(nobodys, mtime=0))


if __name__ == "__main__":
    main({name: CASES[name] for name in NAMES})
