"""A host that can be killed at any point: its run store, its tools and its model, and a ledger that no kill takes back.

A point is passed before and after each append, each saved entry, each tool's deed, and each model's reply.
"""

import asyncio
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from agent_core.journal.identity import StoreIdentity
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.record import Row, Tape
from agent_core.journal.store import Journal
from agent_core.models import Completion, ModelError, ModelInfo, Question
from agent_core.outputs import Json
from engine_shim import SqliteRunStore
from engine_shim.runs.prepare import with_runs
from engine_shim.store.entries import RunEntry
from utools import Tool, ToolRegistry, ToolResult
from utools.builtin import wait

ANY = {"type": "object", "additionalProperties": True}
NUMBER = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"], "additionalProperties": False}
SKIPPED = {"skipped": True, "note": "A person skipped this call; whether it took effect is not known."}
"""What a call comes to that a person has skipped."""


class Killer:
    """Kills the process when it passes its `at`-th point; never for None."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.passed = at, 0

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class KillableJournal:
    """A journal with a point before and after each append."""

    threads: Final = None

    @property
    def identity(self) -> StoreIdentity | None:
        return self._inner.identity

    def __init__(self, journal: Journal, killer: Killer) -> None:
        self._inner, self._killer = journal, killer

    def load(self, run: str) -> Tape:
        return self._inner.load(run)

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        self._killer()
        new = self._inner.append(run, rows)
        self._killer()
        return new

    def runs(self) -> list[str]:
        return self._inner.runs()

    def delete(self, run: str) -> bool:
        return self._inner.delete(run)

    def close(self) -> None:
        self._inner.close()


class KillableStore(SqliteRunStore):
    """A run store with a point before and after each write; its journal is in the same file, or in a JSONL file."""

    def __init__(self, path: Path, killer: Killer, jsonl: Path | None = None) -> None:
        super().__init__(path)
        self._killer = killer
        self.journal = KillableJournal(JsonlJournal(jsonl) if jsonl else self.journal, killer)

    def save(self, entry: RunEntry) -> None:
        self._killer()
        super().save(entry)
        self._killer()


class Ledger:
    """What was really done, when, and by which process: a JSON object a line, in a file that is only appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, **told: Any) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, orjson.dumps({**told, "by": os.getpid(), "time": time.time()}) + b"\n")
        finally:
            os.close(handle)

    def lines(self) -> list[Json]:
        return [orjson.loads(line) for line in self.path.read_bytes().splitlines()] if self.path.exists() else []


def deed(tool: str, args: Any) -> str:
    """A call as it is told apart from others, whatever its place in the journal."""
    return f"{tool} {orjson.dumps(args, option=orjson.OPT_SORT_KEYS).decode()}"


Answer = Callable[[Json, Any], Any]
Scripts = Mapping[str, Sequence[str | Completion | None]]
"""A model's replies by strand, a pattern: the first that fits. None is a failure of the model."""


Pause = Callable[[], Awaitable[None]]


async def _no_longer() -> None:
    """Let others have their turn, no more."""
    await asyncio.sleep(0)


class World:
    """What the tools and the model of one process act upon: they are made once, before processes are forked."""

    def __init__(self) -> None:
        self.ledger, self.killer, self.skipped = Ledger(Path("ledger")), Killer(), frozenset[str]()
        self.pause: Pause = _no_longer

    def enter(
        self, home: Path, killer: Killer | None = None, *, skipped: Collection[str] = (), pause: Pause | None = None
    ) -> None:
        """From now on, in this process, deeds are noted in `home`, and each takes a `pause` until its answer.

        Those `skipped` answer as one does that a person has skipped.
        """
        self.ledger, self.killer, self.skipped = Ledger(home / "ledger"), killer or Killer(), frozenset(skipped)
        self.pause = pause or _no_longer


class Model:
    """Reply k of a script is for the strand's k-th question."""

    def __init__(self, scripts: Scripts, world: World) -> None:
        self._scripts, self._world = scripts, world

    async def complete(self, question: Question) -> Completion:
        replies = next(replies for pattern, replies in self._scripts.items() if re.fullmatch(pattern, question.strand))
        self._world.killer()
        self._world.ledger.note(question=f"{question.strand} {question.index}")
        await self._world.pause()
        self._world.killer()
        reply = replies[question.index]
        if reply is None:
            raise ModelError("overloaded", requests=1)
        return reply if isinstance(reply, Completion) else Completion(reply)

    def info(self) -> ModelInfo:
        return ModelInfo("killable")

    async def close(self) -> None:
        """Nothing to let go of."""


def build_registry(world: World) -> ToolRegistry:
    """Reads, of which one is strict, one counts its node's visits and two fail; two writes, one of them idempotent;
    and the tools that are runs themselves."""

    def tool(code: str, effect: Any, answer: Answer, *, idempotent: bool = False, schema: Json = ANY) -> Tool:
        async def execute(args: Json, context: Any) -> Any:
            world.killer()
            told = {"effect": effect, "idempotent": idempotent, "key": context.idempotency_key}
            world.ledger.note(deed=deed(code, args), **told)
            await world.pause()
            world.killer()
            return SKIPPED if deed(code, args) in world.skipped else answer(args, context)

        return Tool(code, f"Does {code}.", schema, execute, effect=effect, idempotent=idempotent)

    tools = [
        tool("look", "read", lambda args, context: {"seen": args}),
        tool("strict", "read", lambda args, context: {"seen": args}, schema=NUMBER),
        tool("count", "read", lambda args, context: {"n": int(context.strand.rpartition(".")[2])}),
        tool("flaky", "read", _flaky),
        tool("broken", "read", lambda args, context: ToolResult(False, {"half": args}, "it broke")),
        tool("pay", "write", lambda args, context: {"paid": args}),
        tool("post", "write", lambda args, context: {"posted": args}, idempotent=True),
        wait(),
    ]
    return with_runs(ToolRegistry(tools), None)


def _flaky(args: Json, context: Any) -> Any:
    """Fails but for the third attempt at its node, or at an item of its list."""
    return {"at": "last"} if re.search(r"~2$|/4\.\d+$", context.strand) else ToolResult(False, None, "not yet")
