"""Replay touches nothing but the file that it reads: no socket, no process, no thread, no clock, no vendor's client.

It runs in a process of its own, since an audit hook cannot be taken away again. What needs a clock to be set up is
imported first; then the clock breaks, and whatever looks at it breaks as well.
"""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from support.record_transcripts import TRANSCRIPTS

SEALED = r"""
import io, json, os, sys, threading

FORBIDDEN = (
    "socket.", "subprocess.", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "ctypes.", "urllib.",
)
VENDORS = ("openai", "httpx", "httpx2", "requests", "aiohttp", "anthropic")
CLOCKS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "localtime", "gmtime", "sleep",
)
OURS = ("utools", "agent_core", "engine_shim", "time", "random")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Touched(BaseException):
    pass


def watch(event, args):
    if event.startswith(FORBIDDEN):
        raise Touched(event)
    if event == "open" and args[2] & WRITING and not isinstance(args[0], int):  # a descriptor is open already
        raise Touched(f"open {args[0]} for writing")
    if event == "import" and args[0].partition(".")[0] in VENDORS:
        raise Touched(f"import {args[0]}")


class Vendors:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in VENDORS:
            raise Touched(f"import {name}")


def no_start(*args, **options):
    raise Touched("a thread was started")


def stopped(name):
    def look(*args):
        raise Touched(f"the clock was read: {name}")
    return look


def seal():
    # A clock is broken in the module and wherever a name was imported from it.
    import _thread, datetime, time
    broken = {id(getattr(time, name)): stopped(name) for name in CLOCKS}
    for module in [*sys.modules.values()]:
        name = getattr(module, "__name__", "")
        if name.partition(".")[0] in OURS:
            for name, value in [*vars(module).items()]:
                if id(value) in broken:
                    setattr(module, name, broken[id(value)])
                elif value is datetime.datetime:
                    setattr(module, name, Datetime)
    datetime.datetime = Datetime
    os.urandom = stopped("urandom")
    threading.Thread.start = threading._start_new_thread = _thread.start_new_thread = no_start
    for name in [name for name in sys.modules if name.partition(".")[0] in VENDORS]:
        del sys.modules[name]
    sys.meta_path.insert(0, Vendors())
    sys.addaudithook(watch)


import datetime as _datetime


class Datetime(_datetime.datetime):
    now = utcnow = today = stopped("datetime")


def write(text):
    sys.__stdout__.write(text)
    sys.__stdout__.flush()
"""

LIBRARY = """
from agent_core.audit.replay import replay
seal()
for path in sys.argv[1:]:
    again = replay(path)
    write(json.dumps([again.identical, again.steps, again.outputs["agent"].output["final_answer"]]) + "\\n")
"""

COMMAND = """
from engine_shim.cli import app, terminal
from engine_shim.cli.main import main
seal()
try:
    main(["replay", sys.argv[1], "--json"])
except SystemExit as end:
    write(f"\\nexit {end.code}\\n")
"""

CONTROLS = {
    "a socket": "import socket; seal(); socket.socket()",
    "a name looked up": "import socket; seal(); socket.getaddrinfo('localhost', 80)",
    "a process": "import subprocess; seal(); subprocess.run(['true'])",
    "a fork": "seal(); os.fork()",
    "a thread": "seal(); threading.Thread(target=print).start()",
    "a bare thread": "import _thread; seal(); _thread.start_new_thread(print, ())",
    "a file written": "seal(); open(sys.argv[1] + '.copy', 'w')",
    "a file made": "seal(); os.open(sys.argv[1] + '.copy', os.O_CREAT | os.O_WRONLY)",
    "a vendor's client": "seal(); import openai",
    "the time": "import time; seal(); time.time()",
    "the time of the clock": "import agent_core.run.clock as clock; seal(); clock.now()",
    "a counter of the door": "import agent_core.run.executor as door; seal(); door.perf_counter()",
    "chance": "seal(); os.urandom(1)",
}


def sealed(body: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-B", "-c", SEALED + body, *words]  # -B: an import caches no bytecode
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_replay_touches_nothing() -> None:
    names = ("arguments_refused_then_corrected", "unreadable_then_repaired", "nested_agent", "cut_to_size", "chinese")
    done = sealed(LIBRARY, *(str(TRANSCRIPTS / f"{name}.jsonl") for name in names))
    assert done.returncode == 0, done.stderr[-3000:]
    told = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert [identical for identical, _, _ in told] == [True] * len(names)
    assert told[0][1:] == [4, "3"]
    assert told[2][1:] == [4, "The answer is 42."]


def test_the_command_touches_nothing() -> None:
    done = sealed(COMMAND, str(TRANSCRIPTS / "nested_agent.jsonl"))
    *document, end = done.stdout.splitlines()
    assert end == "exit 0", done.stderr[-3000:]
    told = orjson.loads("\n".join(document))
    assert (told["identical"], told["divergence"], told["steps"]) == (True, None, 4)


@pytest.mark.sampled
@pytest.mark.parametrize("body", CONTROLS.values(), ids=CONTROLS)
def test_the_seal_is_tight(body: str, tmp_path: Path) -> None:
    done = sealed(body, str(tmp_path / "file"))
    assert done.returncode == 1
    assert "Touched" in done.stderr.splitlines()[-1], done.stderr
    assert not list(tmp_path.iterdir())
