"""A run whose disk fails in the middle, and goes on when it is sound again. Each attempt is a process of its own.

Run as a script, with a suffix and a fault: prints what each attempt came to, and which questions the model was asked.
The fault comes up in the second call of a tool, or, for one that stands before a process starts, after the first
process has died there.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_core import JournalError, JsonlJournal, SqliteJournal, replay, run_agent_sync, verify
from agent_core.models import Completion, Question, ScriptedModel
from utools import Tool, ToolRegistry

RUN = "run-1"
CONFIG = {"model": "scripted", "max_steps": 6, "allowed_tools": ["read_a"], "prompt": "Go.", "observation_max_len": 60}
ANY = {"type": "object", "additionalProperties": True}
REPLIES = [*(json.dumps({"type": "action", "tool": "read_a", "args": {"n": n}}) for n in range(4))]
REPLIES.append('{"type":"final","answer":"done"}')
NOBODY = 65534
PATIENCE_S = 0.5
HOLDER = """
import fcntl, sqlite3, sys
kind, path = sys.argv[1:]
if kind == ".db":
    held = sqlite3.connect(path)
    held.execute("BEGIN IMMEDIATE")
else:
    held = open(path, "rb")
    fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Asked(ScriptedModel):
    """Answers from the script, and writes down which question it was asked."""

    def __init__(self, ledger: Path) -> None:
        super().__init__(REPLIES)
        self.ledger = ledger

    async def complete(self, question: Question) -> Completion:
        with self.ledger.open("a") as file:
            file.write(f"{len(question.messages)}\n")
        return await super().complete(question)


def journal_at(path: Path) -> Any:
    return (SqliteJournal if path.suffix == ".db" else JsonlJournal)(path, patience=PATIENCE_S)


def attempt(path: Path, ledger: Path, on_second: Callable[[], None] = lambda: None) -> str:
    """One try at the run: its finish reason, or what the journal said."""

    async def read(args: dict[str, Any], context: Any) -> str:
        if args["n"] == 1:
            on_second()
        return "x" * 50_000

    journal = journal_at(path)
    registry = ToolRegistry([Tool("read_a", "Reads.", ANY, read, effect="read")])
    try:
        return run_agent_sync(CONFIG, registry=registry, model=Asked(ledger), journal=journal, run_id=RUN).finish_reason
    except JournalError as error:
        return f"JournalError: {error}"
    finally:
        journal.close()


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` gives in a process of its own; None when that died."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def die() -> None:
    os._exit(9)


# ── faults that come up while a process runs ─────────────────────────────────────────────────────


def fill(path: Path) -> None:
    """No file of the journal can grow any more."""
    largest = max(file.stat().st_size for file in path.parent.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 1000, resource.RLIM_INFINITY))


def hold(path: Path) -> None:
    """Another process locks the journal, and keeps it until this one ends."""
    command = [sys.executable, "-c", HOLDER, path.suffix, str(path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"


# ── faults that stand before a process starts ────────────────────────────────────────────────────


def forbid(path: Path) -> Callable[[], None]:
    """Nobody may write: neither the files nor their folder. Root may always, so it becomes somebody else."""
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    return lambda: os.setuid(NOBODY) if os.getuid() == 0 else None


def allow(path: Path) -> None:
    path.parent.chmod(0o755)
    for file in path.parent.iterdir():
        file.chmod(0o644)


def put_away(path: Path) -> None:
    path.parent.rename(path.parent.with_name("away"))
    path.parent.mkdir()


def bring_back(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.with_name("away").rename(path.parent)


def folder(path: Path) -> Callable[[], None]:
    put_away(path)
    path.mkdir()
    return lambda: None


def junk(path: Path) -> Callable[[], None]:
    put_away(path)
    path.write_bytes(b"Dear diary, " * 999)
    return lambda: None


def missing(path: Path) -> Callable[[], None]:
    path.parent.rename(path.parent.with_name("away"))
    return lambda: None


def found_again(path: Path) -> None:
    path.parent.with_name("away").rename(path.parent)


def tear(path: Path) -> Callable[[], None]:
    """The process died while it wrote a line."""
    with path.open("ab") as file:
        file.write(b'{"run":"run-1","strand":"agent","n":6,"hash":"00')
    return lambda: None


RUNNING: dict[str, Callable[[Path], None]] = {"full": fill, "locked": hold}
STANDING: dict[str, tuple[Callable[[Path], Callable[[], None]], Callable[[Path], None]]] = {
    "read-only": (forbid, allow),
    "a folder": (folder, bring_back),
    "something else": (junk, bring_back),
    "no folder": (missing, found_again),
    "torn": (tear, lambda path: None),
}


def main(suffix: str, fault: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        path, ledger = Path(name, "runs", f"run{suffix}"), Path(name, "ledger")
        path.parent.mkdir()
        # Whatever is imported late is imported now: somebody else may not be allowed to read it.
        assert attempt(Path(name, f"rehearsal{suffix}"), Path(name, "rehearsed")) == "final"
        ledger.touch()
        ledger.chmod(0o666)
        if fault in RUNNING:
            troubled = in_child(lambda: attempt(path, ledger, lambda: RUNNING[fault](path)))
        else:
            assert in_child(lambda: attempt(path, ledger, die)) is None
            break_it, mend = STANDING[fault]
            become = break_it(path)
            troubled = in_child(lambda: (become(), attempt(path, ledger))[1])
            mend(path)
        held = in_child(lambda: [row.record()["kind"] for row in journal_at(path).load(RUN)["agent"]])
        asked = ledger.read_text().split()
        again = in_child(lambda: attempt(path, ledger))
        told = {
            "path": str(path),
            "troubled": troubled,
            "held": held,
            "asked": asked,
            "again": again,
            "asked_in_all": ledger.read_text().split(),
            "verified": verify(path).ok,
            "identical": replay(path, run_id=RUN).identical,
        }
        print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
