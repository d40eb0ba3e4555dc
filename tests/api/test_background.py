"""The background work of a server: each part of it begins again after an error that nobody foresaw."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from engine_shim.host.config import read_host_config
from engine_shim.service.service import Service
from support.served_host import write_host

Work = Callable[[], Awaitable[None]]


async def test_each_part_begins_again_after_an_unexpected_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("engine_shim.service.service.RECOVERY_INTERVAL_S", 0.01)
    write_host(tmp_path)
    list_background, begun = Service._background, Counter[int]()

    async def fail_once(number: int, work: Work) -> None:
        begun[number] += 1
        if begun[number] == 1:
            raise RuntimeError(f"part {number} is odd")
        await work()

    def list_failing(service: Service) -> Iterator[Work]:
        return (partial(fail_once, *each) for each in enumerate(list_background(service)))

    monkeypatch.setattr(Service, "_background", list_failing)
    service = Service.of_host(read_host_config(tmp_path / "agent-core.yaml"), tmp_path / "runs.db", is_open=True)
    async with service.running():
        parts = len(list(list_background(service)))
        async with asyncio.timeout(10):
            while len(begun) < parts or min(begun.values()) < 2:
                await asyncio.sleep(0.01)
    told = [str(each.exc_info[1]) for each in caplog.records if each.exc_info]
    assert sorted(told) == [f"part {number} is odd" for number in range(parts)]
    assert parts >= 4
