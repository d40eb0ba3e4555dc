"""A run that is killed at one point after another, each time in a process of its own, and then gone on with.

Run as a script: prints one JSON line per kill point. The run has a batch of parallel reads, a nested agent, a call
that waits for approval, and a write. What the tools did is counted in a file that no kill can take back.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from agent_core.audit.verify import verify
from agent_core.decisions import Approve, Skip
from agent_core.effects import CallTools, Suspended, ToolCall, ToolReply, Wait
from agent_core.journal.control import decision_rows, waiting_calls
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.operations import Spec
from agent_core.journal.record import FORMAT
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.strand import Loops
from agent_core.loop.react import react
from agent_core.models.scripted import ScriptedModel
from agent_core.run.agent_drive import CODE, agent_preparer
from agent_core.run.clock import now
from agent_core.run.driver import drive
from agent_core.run.executor import Executor
from agent_core.run.secrets import Secrets
from utools.registry import ToolRegistry
from utools.secrets.redaction import Redactor
from utools.tool import Tool

RUN = "run-1"
ANY = {"type": "object", "additionalProperties": True}
CHILD = {"model": "scripted", "max_steps": 4, "allowed_tools": ["read_a", "write_a"], "prompt": "Read and write."}
REPLIES = [
    '{"type":"action","tool":"read_a","args":{"by":"child"}}',
    '{"type":"action","tool":"write_a","args":{"by":"child"}}',
    '{"type":"final","answer":"child done"}',
]


class Outcome:
    """How the spike's loop ends."""

    def __init__(self, reason: str, waits: tuple[Any, ...] = (), seen: Any = None) -> None:
        self.finish_reason, self.waiting, self.seen = reason, waits, seen

    def finished(self) -> dict[str, Any]:
        return {"finish_reason": self.finish_reason, "seen": self.seen}

    def answer(self) -> ToolReply:
        return ToolReply(True, self.seen, None, "", 0.0)


def spike(started: dict[str, Any]) -> Any:
    """Three reads side by side, two agents one after the other, an approval for two calls, then the two writes."""
    seen: list[Any] = []
    reads = tuple(call(f"r{i}", "read_a", "read", {"i": i}) for i in range(3))
    agents = [CallTools((call(f"n{i}", CODE, "nested", CHILD),)) for i in range(2)]
    both = CallTools((reads[0], call("n2", CODE, "nested", CHILD)))
    writes = (call("w0", "write_a", "write", {"by": "root"}), call("w1", "write_a", "write", {"by": "root too"}))
    for step in (CallTools(reads), *agents, both, Wait(writes), *(CallTools((write,)) for write in writes)):
        replies = yield step
        stopped = [r for r in (replies if isinstance(replies, tuple) else (replies,)) if isinstance(r, Suspended)]
        if stopped:
            return Outcome(stopped[0].reason, tuple(w for s in stopped for w in s.waiting))
        seen.append([reply.output if isinstance(reply, ToolReply) else type(reply).__name__ for reply in replies])
    return Outcome("final", seen=seen)


def call(id_: str, tool: str, effect: str, args: dict[str, Any]) -> ToolCall:
    return ToolCall(id_, tool, args, args, effect, within=30.0)


LOOPS: Loops = {"agent": react, "spike": spike}


class Killer:
    """Kills the process when it passes its k-th point."""

    def __init__(self, at: int | None) -> None:
        self.at, self.passed = at, 0

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class KillableJournal:
    """A journal with a kill point before and after each append."""

    threads: Final = None
    identity: Final = None

    def __init__(self, journal: Any, killer: Killer) -> None:
        self.inner, self.killer = journal, killer

    def load(self, run: str) -> Any:
        return self.inner.load(run)

    def append(self, run: str, rows: Any) -> bool:
        self.killer()
        new = self.inner.append(run, rows)
        self.killer()
        return new

    def runs(self) -> list[str]:
        return self.inner.runs()

    def close(self) -> None:
        self.inner.close()


def tools(counter: Path, killer: Killer) -> ToolRegistry:
    """A read and a write that count themselves, with kill points before and after the deed."""

    def counting(effect: str) -> Tool:
        async def act(args: dict[str, Any], context: Any) -> Any:
            killer()
            with counter.open("a") as file:
                file.write(f"{effect} {context.idempotency_key}\n")
            killer()
            return {"did": args}

        return Tool(f"{effect}_a", effect, ANY, act, effect=effect)

    return ToolRegistry([counting("read"), counting("write")])


def journal_at(path: Path) -> Any:
    return SqliteJournal(path) if path.suffix == ".db" else JsonlJournal(path)


def go_on(path: Path, counter: Path, killer: Killer) -> str:
    """Drive the run as far as it goes, deciding whatever waits; returns the finish reason."""
    journal = KillableJournal(journal_at(path), killer)
    registry = tools(counter, killer)
    model = ScriptedModel(REPLIES)
    prepare = {CODE: agent_preparer(registry, Redactor({})), "spike": lambda run, *_: started(run)}
    executor = Executor(RUN, registry, lambda *_: model, prepare, Secrets(env={}))
    while True:
        ended = asyncio.run(drive(RUN, "agent", Spec("spike", {}), journal=journal, executor=executor, loops=LOOPS))
        if not ended.outcome.waiting:
            journal.close()
            return ended.outcome.finish_reason
        tape = journal.load(RUN)
        words = {(w["strand"], w["n"]): decision(w, counter) for w in waiting_calls(tape)}
        journal.append(RUN, decision_rows(tape, words, by="test", at=now(), encrypt=None))


def started(run: str) -> dict[str, Any]:
    return {"loop": "spike", "format": FORMAT, "run": run, "at": now()}


def decision(entry: dict[str, Any], counter: Path) -> Any:
    """Approve what waits for approval; a write in doubt is skipped, so that none can happen twice."""
    return Skip() if entry["reason"] == "in_doubt" else Approve()


def in_child(work: Any) -> int:
    """The exit status of `work` in a process of its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def plain(path: Path) -> dict[str, list[Any]]:
    """The strands without times, hashes and what stems from them."""
    aside = {"at", "seconds", "closes", "total_ms", "output", "used_tools", "versions"}
    journal = journal_at(path)
    tape = journal.load(RUN)
    journal.close()
    return {p: [{k: v for k, v in row.record().items() if k not in aside} for row in rows] for p, rows in tape.items()}


def episode(strands: dict[str, list[Any]]) -> bool:
    return any(record.get("reason") == "in_doubt" for records in strands.values() for record in records)


def answered(path: Path) -> set[str]:
    """The keys of the calls that the journal holds an answer for."""
    journal = journal_at(path)
    tape = journal.load(RUN)
    journal.close()
    kinds = {p: [row.record()["kind"] for row in rows] for p, rows in tape.items()}
    return {
        f"{RUN}/{p}/{n}"
        for p, ks in kinds.items()
        for n in range(len(ks) - 1)
        if ks[n : n + 2] == ["asked", "answered"]
    }


def trial(suffix: str, at: int, undisturbed: dict[str, list[Any]]) -> dict[str, Any] | None:
    """One run killed at point `at` and gone on with; None when the run has no such point."""
    with tempfile.TemporaryDirectory() as name:
        path, counter = Path(name, f"run{suffix}"), Path(name, "counter")
        counter.touch()
        status = in_child(lambda: go_on(path, counter, Killer(at)))
        if status == 0:
            return None
        known, before = answered(path), len(counter.read_text().splitlines())
        again = in_child(lambda: go_on(path, counter, Killer(None)))
        acts = [line.split() for line in counter.read_text().splitlines()]
        writes = [key for effect, key in acts if effect == "write"]
        strands = plain(path)
        return {
            "at": at,
            "killed": status == -signal.SIGKILL,
            "resumed": again == 0,
            "verified": verify(path).ok,
            "same": strands == undisturbed,
            "in_doubt": episode(strands),
            "writes_repeated": len(writes) - len(set(writes)),
            "answered_repeated": sum(key in known for _, key in acts[before:]),
            "acts": len(set(map(tuple, acts))),
        }


def main(suffix: str, step: int = 1) -> None:
    with tempfile.TemporaryDirectory() as name:
        path, counter = Path(name, f"run{suffix}"), Path(name, "counter")
        reason = go_on(path, counter, Killer(None))
        undisturbed = plain(path)
        print(
            json.dumps(
                {"finish_reason": reason, "acts": len(counter.read_text().splitlines()), "strands": sorted(undisturbed)}
            )
        )
    at = 1
    while (told := trial(suffix, at, undisturbed)) is not None:
        print(json.dumps(told))
        at += step


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
