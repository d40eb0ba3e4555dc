"""A hot standby of a real PostgreSQL, which can be made the server that takes writes."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.postgres_server import (
    CONNECTIONS,
    Postgres,
    free_port,
    is_ready,
    postgres_programs,
    starter,
    unprivileged,
    until,
)

REPLICATES = {"wal_level": "replica", "max_wal_senders": 5}
"""What a server has to be made with that has a replica."""
OPEN = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n"


@contextmanager
def replica_of(server: Postgres) -> Iterator[Postgres]:
    """A server beside another one that follows it, and takes no writes; gone at the end."""
    (server.data / "pg_hba.conf").write_text(OPEN)
    server.process.send_signal(signal.SIGHUP)
    data, port = server.data.with_name("replica"), free_port()
    copy: list[Any] = [_program(server, "pg_basebackup"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
    until(lambda: _done([*copy, "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync"], data), "it is copied")
    options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", **REPLICATES}
    options |= {"max_connections": CONNECTIONS, "superuser_reserved_connections": 0}
    settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    command: list[str | Path] = [_program(server, "postgres"), "-F", "-D", data, *settings]

    replica = Postgres(starter(command, data.with_name("replica.log")), port, data)
    try:
        until(lambda: is_ready(replica), "the replica is ready")
        yield replica
    finally:
        replica.stop()


def promote(server: Postgres, replica: Postgres) -> None:
    """End a server once its replica has all that it wrote, and let the replica take writes."""
    server.process.send_signal(signal.SIGINT)
    server.process.wait()
    until(
        lambda: _done([_program(server, "pg_ctl"), "promote", "-w", "-D", replica.data], replica.data), "it is promoted"
    )


def _done(command: list[Any], data: Path) -> bool:
    return subprocess.run(command, capture_output=True, cwd=data.parent, **unprivileged()).returncode == 0


def _program(server: Postgres, name: str) -> Path:
    own = sorted((server.data.parent / "package").glob("*/bin"))
    return (own[0] if own else postgres_programs()) / name
