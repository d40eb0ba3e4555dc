"""A client of a Temporal server, and what it leaves behind."""

import subprocess
import sys
from typing import Any, cast

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from engine_shim.runs.temporal.connect import ServerWatch

pytestmark = pytest.mark.exhaustive
LEAVE = """
import asyncio
import socket

from engine_shim.host.config import TemporalConfig
from engine_shim.runs.temporal.connect import connect


async def main():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = TemporalConfig(address=f"127.0.0.1:{silent.getsockname()[1]}")
        asking = [asyncio.create_task(connect(config, None)) for _ in range(8)]
        await asyncio.sleep(0.05)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


asyncio.run(main())
"""
PROGRAMS = 8
SECONDS = 120


def test_program_ends_though_it_leaves_in_the_middle_of_a_call() -> None:
    """One in two did not, before the runtime was kept from being freed."""
    programs = [subprocess.Popen([sys.executable, "-c", LEAVE], stderr=subprocess.PIPE) for _ in range(PROGRAMS)]
    try:
        for program in programs:
            program.communicate(timeout=SECONDS)
        assert [program.returncode for program in programs] == [0] * PROGRAMS
    finally:
        for program in programs:
            program.kill()
            program.communicate()


ANSWER_LATE = """
import asyncio
import atexit
import os
import sys
import threading
import time

from engine_shim.cli.main import main
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.temporal.connect import connect

answering = threading.Event()
is_taken_down, tell = os.pipe()


class SlowLoop(asyncio.SelectorEventLoop):
    def call_soon_threadsafe(self, *_, **__):
        answering.set()
        os.read(is_taken_down, 1)


class Rest:
    def __del__(self, tell=tell, write=os.write, sleep=time.sleep):
        write(tell, b".")
        sleep(2)


loop = SlowLoop()
asking = loop.create_task(connect(TemporalConfig(address="127.0.0.1:1"), None))
while not answering.is_set():
    loop.run_until_complete(asyncio.sleep(0.01))
atexit.register(print, "left in order")
sys.rest = Rest()
sys.argv = ["agent-core", "--version"]
main()
"""


def test_command_ends_though_temporal_answers_while_it_does() -> None:
    """A thread of Temporal is in the middle of its answer when the interpreter would be taken down: it died by that."""
    ran = subprocess.run([sys.executable, "-c", ANSWER_LATE], capture_output=True, text=True, timeout=SECONDS)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == "left in order"


class OddServer:
    """A client of a server of which it cannot be known, the first time, whether it is there."""

    def __init__(self) -> None:
        self.service_client = self
        self.asked = 0

    async def check_health(self, **_: Any) -> bool:
        self.asked += 1
        if self.asked == 1:
            raise RuntimeError("odd")
        return True


async def test_watch_outlives_an_error_that_nobody_foresaw(caplog: pytest.LogCaptureFixture) -> None:
    client = OddServer()
    await ServerWatch("there").wait_until_back(cast(Any, client))
    assert client.asked == 2
    assert "RuntimeError('odd')" in caplog.text
