"""A fleet of worker processes that can be killed, stopped and let go on, and a Temporal server that can be, too."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from support.programs import command, environment

TEMPORAL = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
PATIENCE_S = 60.0


class Server:
    """A Temporal server whose state is in a file, so that it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._port = folder, _find_free_port()
        self.address = f"127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        assert TEMPORAL is not None
        words = [TEMPORAL, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(self._port)]
        with (self._folder / "log").open("ab") as log:
            state = ["--db-filename", str(self._folder / "state.db")]
            self._process = subprocess.Popen([*words, *state], stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE_S
        while _is_closed(self._port):
            assert time.monotonic() < until, "the Temporal server does not start"
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Fleet:
    """Worker processes of the workflows in a folder."""

    def __init__(self, address: str, folder: Path, *, seconds: float = 0.0, from_tape: bool = False) -> None:
        self._words = [address, str(folder), str(seconds)]
        self._extra = ["from-tape"] if from_tape else []
        self._log = folder / "workers.log"
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, *, skew: float = 0.0) -> None:
        """One more worker, whose clock is some seconds off."""
        words = command("temporal.worker", *self._words, str(skew), *self._extra)
        with self._log.open("ab") as log:
            self.workers.append(subprocess.Popen(words, env=environment(), stdout=log, stderr=log))

    def kill(self, index: int) -> None:
        process = self.workers.pop(index)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, index: int) -> None:
        """Stop a worker in the middle of whatever it does."""
        self.workers[index].send_signal(signal.SIGSTOP)

    def go_on(self, index: int) -> None:
        self.workers[index].send_signal(signal.SIGCONT)

    def end(self) -> None:
        for index in reversed(range(len(self.workers))):
            self.kill(index)


def _is_closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
