"""Driver identities: the process that a driver's name tells of, and whether it has ended for certain."""

import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

from utools.lazy_pattern import lazy_compile

_PROC: Final = Path("/proc")
_NAME: Final = lazy_compile(r".*:(\d+):(\d+):(\d+):([0-9a-f-]{36}):[0-9a-f]+", re.ASCII | re.DOTALL)
HIDDEN: Final = "hidden"
"""The start of a process that lives, and is not shown to this user."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process id means one process: a PID namespace of a machine, between two of its boots.

    Containers of one machine share the boot, and may share the host's name; each has its own namespace.
    """

    namespace: str
    boot: str


@dataclass(frozen=True, slots=True)
class Process:
    """A process; its start, in clock ticks since the boot, tells it from a later one with the same id."""

    pid: int
    start: str
    place: Place


def new_driver(proc: Path = _PROC) -> str:
    """Return a name for one driver in this process: host:pid:start:namespace:boot:token.

    Where `proc` does not tell the process: host:pid:token, as older releases named all drivers.
    """
    pid, place = os.getpid(), read_place(proc)
    start = None if place is None else read_start(pid, proc)
    known = "" if place is None or start in (None, HIDDEN) else f"{start}:{place.namespace}:{place.boot}:"
    return f"{socket.gethostname()}:{pid}:{known}{token_hex(4)}"


def read_process(driver: str) -> Process | None:
    """Return the process that a driver's name tells of; None for a name that tells less."""
    if (match := _NAME.fullmatch(driver)) is None:
        return None
    pid, start, namespace, boot = match.groups()
    return Process(int(pid), start, Place(namespace, boot))


def has_ended(process: Process | None, here: Place | None, start_now: Callable[[int], str | None]) -> bool:
    """Return whether a process has ended for certain, as seen from `here`: False in doubt.

    `start_now` gives the start of the process that has an id now; None where no process has it.
    """
    return process is not None and process.place == here and start_now(process.pid) not in (process.start, HIDDEN)


def pattern_of(place: Place | None) -> str:
    """Return the LIKE pattern of the names that tell of processes there; it matches nothing without a place."""
    return "" if place is None else f"%:{place.namespace}:{place.boot}:%"


# ── this machine ─────────────────────────────────────────────────────────────────────────────────


def read_place(proc: Path = _PROC) -> Place | None:
    """Return where this process is; None where `proc` is missing, or shows the processes of another namespace."""
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text("ascii").strip()
        namespace, own = os.readlink(proc / "self/ns/pid"), os.readlink(proc / "self")
    except (OSError, ValueError):
        return None
    return Place(namespace.removeprefix("pid:[").removesuffix("]"), boot) if own == str(os.getpid()) else None


def read_start(pid: int, proc: Path = _PROC) -> str | None:
    """Return when the process with this id started; None where no process has it, HIDDEN where it is not shown."""
    try:
        return (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return HIDDEN if _exists(pid) else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
