"""The command `agent-core` on an odd machine: python -m support.soak.odd_process ODD WORD…

ODD is a JSON object. `host` is the name that the machine gives itself; `place` where its processes are: "own", another
place of that name ("other") or "unknown". Its clock is `skew` seconds off. Each part of the background work raises a
RuntimeError, about every `errors_s` seconds, but those in `without`; the file `errors` beside the configuration has a
line for each.
"""

import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from importlib import import_module
from typing import Any
from uuid import uuid4

PARTS = {
    "lease keeper": "engine_shim.runs.lease_keeper:LeaseKeeper.renew",
    "recovery": "engine_shim.service.run_service:RunService.recover",
    "triggers": "engine_shim.service.triggers:Triggers.start_due",
    "timers": "engine_shim.service.timers:Timers.resume_due",
    "deliveries": "engine_shim.service.event_sender:EventSender.send_due",
    "clock watch": "engine_shim.store.clock_watch:ClockWatch.look",
    "token watch": "engine_shim.service.service:Service._find_over",
    "feed": "engine_shim.store.run_store_postgres:PostgresRunStore.list_news",
}
WORKED = {
    "store watch": "engine_shim.store.run_store_postgres:PostgresRunStore.poll_status",
    "heart": "engine_shim.runs.temporal.heart:Pulse.is_overdue",
    "server watch": "engine_shim.runs.temporal.connect:ServerWatch._is_there",
}
"""What there is as well where workers drive the runs."""
THREADS = {"lease keeper": "leases"}
"""Of a part whose function others call as well: the thread that is the part."""
CLOCKS = ("agent_core.run.clock", "agent_core.run.run_id", "engine_shim.store.run_store", "utools.builtin.wait")
TOKENS = "engine_shim.service.tokens"


def set_clock(skew: float) -> None:
    """Set the clock of this process, before anything has it under its own name."""
    read, of_time = time.time, datetime.now

    class OffClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return of_time(tz) + timedelta(seconds=skew)

    time.time = lambda: read() + skew
    for name in (*CLOCKS, TOKENS):
        vars(import_module(name))["datetime"] = OffClock


def set_place(host: str, place: str) -> None:
    """Give this machine a name, and say where its processes are, before anything has that under its own name."""
    from engine_shim.store import driver_identity

    socket.gethostname = lambda: host
    if place != "own":
        found = None if place == "unknown" else driver_identity.Place("4026531836", str(uuid4()))
        driver_identity.read_place = lambda *_: found


def raise_at_times(part: str, where: str, errors_s: float) -> None:
    """Let a function raise an error that nobody foresees, every so often."""
    module, _, path = where.partition(":")
    owner, name = path.split(".")
    of = getattr(import_module(module), owner)
    setattr(of, name, stumbling(getattr(of, name), part, errors_s))


def stumbling(function: Callable[..., Any], part: str, errors_s: float) -> Callable[..., Any]:
    due = time.monotonic() + random.expovariate(1 / errors_s)

    @wraps(function)
    def stumble(*args: Any, **keys: Any) -> Any:
        nonlocal due
        thread = threading.current_thread().name
        if time.monotonic() > due and thread == THREADS.get(part, thread):
            due = time.monotonic() + random.expovariate(1 / errors_s)
            note(part)
            raise RuntimeError(f"the {part} is odd")
        return function(*args, **keys)

    return stumble


def note(part: str) -> None:
    book = os.open("errors", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(book, f"{part}\n".encode())
    os.close(book)


if __name__ == "__main__":
    odd = json.loads(sys.argv[1])
    set_place(odd["host"], odd["place"])
    if odd["skew"]:
        set_clock(odd["skew"])
    if odd["errors_s"]:
        for part, where in {**PARTS, **(WORKED if odd["worked"] else {})}.items():
            if part not in odd["without"]:
                raise_at_times(part, where, odd["errors_s"])

    from engine_shim.cli.main import main

    main(sys.argv[2:])
