"""The processes of a soak: servers and workers to kill and to stop, on one PostgreSQL, perhaps with Temporal."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from support.bad_link import BadLink, bad_link
from support.postgres_server import Postgres, real_postgres
from support.programs import command, environment
from support.soak.depot import write_depot
from support.soak.model import Endpoints, serve_endpoints
from support.temporal.fleet import Server
from support.temporal_project import COMMAND

Engine = Literal["process", "temporal"]
COUNTS: dict[Engine, dict[str, int]] = {"process": {"serve": 3}, "temporal": {"serve": 2, "worker": 2}}
STARTS_WITHIN_S = 120.0
HOST = "same"
PLACES = ("other", "other", "unknown", "own")
SKEWS = (0.0, 0.0, 0.0, 240.0, -240.0, 5 * 3600.0, -5 * 3600.0)
READY = {"serve": r"at (http://\S+)", "worker": r"(worker on)"}


@dataclass(eq=False)
class Process:
    """A server or worker, its log, and where it serves, once it does."""

    kind: str
    process: "subprocess.Popen[bytes]"
    log: Path
    url: str = ""
    is_ready: bool = False
    is_stopped: bool = False

    def look(self) -> None:
        """Look whether it is ready by now."""
        if not self.is_ready and (found := re.search(READY[self.kind], self.log.read_text())):
            self.is_ready, self.url = True, found[1]

    def send(self, number: signal.Signals) -> None:
        self.is_stopped = number == signal.SIGSTOP
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it, also while it stands still."""
        self.process.kill()
        self.process.wait()


@dataclass
class World:
    """A host's files, its servers and workers, and what they depend on."""

    folder: Path
    engine: Engine
    chance: random.Random
    postgres: Postgres
    link: BadLink
    store: str
    """The URL of the database, past the link."""
    endpoints: Endpoints
    temporal: Server | None
    errors_s: float
    without: frozenset[str] = frozenset()
    """The disturbances that are left out."""
    processes: list[Process] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """The processes that have ended by themselves once they were ready, each with the end of its log."""
    unstarted: int = 0
    """How many ended before that, as those do that find no database, or no Temporal."""
    _count: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self, kind: str) -> Process:
        """Start one more process, on a machine of the same name as all others."""
        self._count += 1
        log = self.folder / f"{kind}-{self._count}.log"
        words = {"serve": ["serve", "--port", "0", "--verbose"], "worker": ["worker", "--verbose"]}[kind]
        odd = {
            "host": HOST,
            "place": self.chance.choice(PLACES),
            "skew": 0.0 if "clocks" in self.without else self.chance.choice(SKEWS),
            "errors_s": self.errors_s,
            "without": list(self.without),
            "worked": self.engine == "temporal",
        }
        with log.open("wb") as file:
            file.write(f"{json.dumps(odd)}\n".encode())
            file.flush()
            started = [*command("soak.odd_process", json.dumps(odd)), *words]
            process = subprocess.Popen(started, cwd=self.folder, env=environment(), stdout=file, stderr=file)
        made = Process(kind, process, log)
        self.processes.append(made)
        return made

    def start_all(self) -> None:
        for kind, count in COUNTS[self.engine].items():
            for _ in range(count):
                self.start(kind)
        until = time.monotonic() + STARTS_WITHIN_S
        while not all(each.is_ready for each in self.processes):
            assert time.monotonic() < until, [each.log.read_text() for each in self.processes if not each.is_ready]
            self.look_after()
            time.sleep(0.1)

    def look_after(self) -> None:
        """Start another process for each that has ended by itself, as a supervisor does."""
        for each in list(self.processes):
            each.look()
            if each.process.poll() is not None:
                if each.is_ready:
                    self.ended.append(f"{each.log.name}, {each.process.returncode}: {each.log.read_text()[-1500:]}")
                self.unstarted += not each.is_ready
                self.processes.remove(each)
                self.start(each.kind)

    def urls(self) -> list[str]:
        """Where servers serve, whether or not they stand still."""
        return [each.url for each in self.processes if each.kind == "serve" and each.is_ready]

    def run_command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """What `agent-core WORD…` prints, on the database past the link."""
        return subprocess.run(
            [COMMAND, *words, "--store", self.store], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def read_errors(self) -> list[str]:
        """The parts of the background work that have raised an error, each as often as it did."""
        book = self.folder / "errors"
        return book.read_text().splitlines() if book.exists() else []

    def close(self) -> None:
        for each in self.processes:
            each.kill()


@contextmanager
def open_world(folder: Path, engine: Engine, chance: random.Random, errors_s: float) -> Iterator[World]:
    """A world of which nothing is left at the end of the block but its folder."""
    with ExitStack() as stack:
        postgres = stack.enter_context(real_postgres(max_connections=200, track_commit_timestamp="on"))
        link, endpoints = stack.enter_context(bad_link(postgres.port)), stack.enter_context(serve_endpoints())
        store = postgres.make_database()
        keys: dict[str, Any] = {"store": store.replace(f":{postgres.port}/", f":{link.port}/")}
        temporal = None
        if engine == "temporal":
            temporal = Server(folder / "temporal")
            stack.callback(temporal.kill)
            keys |= {"engine": "temporal", "temporal": {"address": temporal.address, "queue": "soak"}}
        write_depot(folder / "host", model=endpoints.model, hook=endpoints.hook, **keys)
        world = World(folder / "host", engine, chance, postgres, link, store, endpoints, temporal, errors_s)
        world.without = frozenset(filter(None, os.environ.get("SOAK_WITHOUT", "").split(",")))
        stack.callback(world.close)
        world.start_all()
        yield world
