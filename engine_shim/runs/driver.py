"""Who drives a run: a driver's name, and whether that driver lives."""

import os
import socket
from secrets import token_hex

TTL = 15.0
"""Seconds that a claim holds without being renewed."""


def new_driver() -> str:
    """A name for one driver in this process: host:pid:token."""
    return f"{socket.gethostname()}:{os.getpid()}:{token_hex(4)}"


def lives(driver: str, until: float, now: float) -> bool:
    """Whether the driver of a claim that holds until then is alive, as far as can be seen; in wall-clock seconds.

    On this host a process that is gone is dead at once. An `until` beyond a whole TTL is from before the clock
    went back, and says nothing.
    """
    match driver.rsplit(":", 2):
        case [host, pid, _] if host == socket.gethostname() and pid.isdecimal() and not _exists(int(pid)):
            return False
    return now < until <= now + TTL


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
