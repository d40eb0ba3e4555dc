"""A small world for runs: processes that die, a clock that jumps, and acts that answer only when they are told to."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from agent_core.errors import JournalAway
from agent_core.journal.path import CONTROL
from agent_core.journal.record import Row, Tape
from agent_core.models.client import Completion, ModelInfo, Question
from engine_shim import Engine
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.runs.prepare import with_runs
from engine_shim.store.entries import RunEntry
from engine_shim.store.leases import TTL, Notice, Signal
from engine_shim.store.run_store import RunStore
from utools import Tool, ToolContext, ToolRegistry, ToolResult
from utools.limiter import settle

T = TypeVar("T")
HERE: ContextVar["tuple[Host, str]"] = ContextVar("HERE")
"""The process in which a task runs, and the run that it is about: neither is a tool or a model told."""
ANY = {"type": "object", "additionalProperties": True}
LAG = TTL / 3
"""How much older a lease may be than its last renewal."""


class Died(Exception):
    """The process ended here."""


class Loop(asyncio.SelectorEventLoop):
    """An event loop that runs only when it is told to, and whose time is moved by hand."""

    def __init__(self) -> None:
        self.at = 0.0
        super().__init__()
        self.set_exception_handler(lambda *_: None)

    def time(self) -> float:
        return self.at

    def settle(self) -> None:
        """Run until nothing can go on by itself."""
        for _ in range(5000):
            self.call_soon(self.stop)
            self.run_forever()
            if not self._ready:  # type: ignore[attr-defined]
                return
        raise AssertionError("this never comes to rest")

    def tick(self) -> bool:
        """Move on to the next moment that something waits for; False when nothing does."""
        moments = [each.when() for each in self._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
        self.at = max(self.at, min(moments, default=self.at))
        self.settle()
        return bool(moments)


class Still(LeaseKeeper):
    """Looks after leases when it is told to, not in a thread."""

    def _renew_while_needed(self) -> None:
        """Nobody looks by himself."""

    def look(self) -> None:
        self.renew(dict(self._driven))


@dataclass(eq=False)
class Leased:
    """Who has leased a run: until when at least, and at most."""

    holder: "Host"
    least: float
    most: float


@dataclass(eq=False)
class UnderWay:
    """An act that has begun, and not answered."""

    host: "Host"
    run: str
    key: str
    tool: str
    answer: "asyncio.Future[Callable[[], Any]]"


@dataclass(eq=False)
class World:
    """What all processes share. `mixed` are the runs that two drive, `overtaken` are
    the processes that drove a run when another one took it, `tries` the acts that a process may try again by
    itself, since they failed for a moment; `faults` are what was done that should not have been. `passed` are the
    seconds by a clock that is never set."""

    store: RunStore
    time: float = 1_000_000.0
    passed: float = 0.0
    was_set_back: bool = False
    hosts: "list[Host]" = field(default_factory=list)
    acts: list[UnderWay] = field(default_factory=list)
    begun: Counter[str] = field(default_factory=Counter)
    leased: dict[str, Leased] = field(default_factory=dict)
    mixed: set[str] = field(default_factory=set)
    overtaken: "set[tuple[Host, str]]" = field(default_factory=set)
    tries: "set[tuple[Host, str]]" = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.time

    def pass_time(self, seconds: float) -> None:
        """Let time pass; a negative one sets back the clock that leases go by."""
        self.time += seconds
        self.passed += max(0.0, seconds)
        self.was_set_back = self.was_set_back or seconds < 0

    def has_noticed(self, host: "Host", run: str) -> bool:
        """Whether a process must know that another one has the run: its own clock says how long it was not asked."""
        lease = self.leased.get(run)
        is_others = lease is not None and lease.holder is not host
        return host.notices and is_others and not self.was_set_back

    def settle(self) -> None:
        for host in self.hosts:
            host.loop.settle()

    def busy(self, host: "Host", run: str) -> bool | None:
        """Whether somebody drives a run, so that this host may not; None when that is a matter of seconds."""
        lease = self.leased.get(run)
        if run in host.line.driving:
            return True
        if lease is None or lease.holder is host:
            return False
        known = {self.time < until <= self.time + TTL for until in (lease.least, lease.most)}
        return known.pop() if len(known) == 1 else None

    def driven(self, run: str) -> bool:
        return any(run in host.line.driving for host in self.hosts)

    async def act(self, host: "Host", run: str, strand: str, tool: str, key: str | None) -> Any:
        """Begin an act; it ends when the test says how."""
        if host.line.dead:
            await asyncio.Event().wait()
        act = UnderWay(host, run, self._key(host, run, strand, tool, key), tool, host.loop.create_future())
        self.acts.append(act)
        try:
            done = (await act.answer)()
            if isinstance(done, ToolResult) and done.metadata.get("transient"):
                self.tries.add((host, act.key))
            return done
        finally:
            self.acts.remove(act)

    def _key(self, host: "Host", run: str, strand: str, tool: str, key: str | None) -> str:
        """The act's key, after a look at whether it may begin now."""
        tape = self.store.journal.load(run)
        told, rows = f"{tool} at {run}/{strand}", tape.get(strand, [])
        last = rows[-1].record() if rows else {}
        key = key or f"{run}/{strand}/{len(rows) - 1}"
        if self.has_noticed(host, run):
            self.faults.append(f"{told} begins, and another process has the run")
        if tool != "pay" and (host, key) in self.tries:  # within one act, which knows nothing of the tape
            return key
        if last.get("kind") != "asked" or last.get("tool", "model") != tool:
            self.faults.append(f"{told} begins, though the tape ends with {last.get('kind')}")
        if _ended(tape):
            self.faults.append(f"{told} begins after the run has ended")
        entry = self.store.entry(run)
        if run not in self.mixed and (entry is None or entry.status != "running"):
            self.faults.append(f"{told} begins while the run is {entry and entry.status}")
        if tool == "pay" and self.begun[key] > _retries(rows[int(key.rsplit("/", 1)[1]) :]):
            self.faults.append(f"{told} begins again, and nobody said so")
        self.begun[key] += 1
        return key


def _ended(tape: Tape) -> bool:
    return "flow" in tape and tape["flow"][-1].record()["kind"] == "run_finished"


def _may_come_late(row: Row) -> bool:
    """Whether a row may be appended by a driver that has lost the run, or by no driver."""
    return row.path == CONTROL or row.kind in ("answered", "resolved")


def _retries(rows: Sequence[Row]) -> int:
    return sum(row.record().get("decision") == "retry" for row in rows)


class LaterThreads:
    """In place of threads: each call is made a little later, so that others come in between."""

    async def run(self, function: Callable[[], T]) -> T:
        return await (await self.begin(function))

    async def begin(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def call(left: int) -> None:
            if left:
                loop.call_soon(call, left - 1)
                return
            try:
                result = function()
            except Exception as error:
                settle(answer, None, error)
            else:
                settle(answer, result)

        call(2)
        return answer


class Line:
    """One process's way to the store. It may be cut at any write, before or after that; then nothing comes through."""

    def __init__(self, host: "Host", *, is_remote: bool) -> None:
        self.threads = LaterThreads() if is_remote else None
        self.host, self.world = host, host.world
        self.store = host.world.store
        self.journal, self.leases = self, self
        self.identity, self.clock = self.store.journal.identity, self.store.clock
        self.dead, self.left, self.done_by_then = False, 0, False
        self.leases_are_away = False
        self.on_append: Callable[[Sequence[Row]], None] = lambda rows: None
        self.driving: set[str] = set()

    def die(self) -> None:
        self.dead = True

    def _read(self) -> None:
        if self.dead:
            raise Died

    def _write(self, write: Callable[[], Any]) -> Any:
        self._read()
        self.left -= 1
        if self.left == 0 and not self.done_by_then:
            self.dead = True
            raise Died
        done = write()
        if self.left == 0:
            self.dead = True
            raise Died
        return done

    # ── the journal ──────────────────────────────────────────────────────────────────────────────

    def load(self, run: str) -> Tape:
        self._read()
        return self.store.journal.load(run)

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if self.world.has_noticed(self.host, run) and not all(map(_may_come_late, rows)):
            self.world.faults.append(f"{[row.kind for row in rows]} in {run}, and another process has it")
        is_new = bool(self._write(lambda: self.store.journal.append(run, rows)))
        self.on_append(rows)
        return is_new

    def takeovers(self, run: str) -> int:
        self._read()
        return self.store.takeovers(run)

    def add_takeover(self, run: str) -> None:
        self._write(lambda: self.store.add_takeover(run))

    def forget_takeovers(self, run: str) -> None:
        self._read()
        self.store.forget_takeovers(run)

    def runs(self) -> list[str]:
        return self.store.journal.runs()

    def delete(self, run: str) -> bool:
        return self.store.journal.delete(run)

    # ── the leases ───────────────────────────────────────────────────────────────────────────────

    def acquire(self, run: str, driver: str) -> str | None:
        def acquire() -> str | None:
            holder = self.store.leases.acquire(run, driver)
            if holder is None:
                others = [host for host in self.world.hosts if host is not self.host and run in host.line.driving]
                (self.world.mixed.add if others else self.world.mixed.discard)(run)
                self.world.overtaken |= {(host, run) for host in others}
                until = self.world.time + TTL
                self.world.leased[run] = Leased(self.host, until, until)
                self.driving.add(run)
            return holder

        holder: str | None = self._write(acquire)
        return holder

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        self._read()
        if self.leases_are_away:
            raise JournalAway("the leases cannot be reached")
        now, until = self.world.time, self.world.time + TTL
        for lease in [self.world.leased[run] for run in runs if run in self.world.leased]:
            if lease.holder is self.host:
                fresh = until - LAG < lease.least and lease.most <= until
                lease.least, lease.most = lease.least if fresh and lease.least > now else until, until
        return self.store.leases.renew(driver, runs)

    def signal(self, run: str, signal: Signal) -> bool:
        return bool(self._write(lambda: self.store.leases.signal(run, signal)))

    def release(self, run: str, driver: str) -> None:
        def release() -> None:
            self.store.leases.release(run, driver)
            self.driving.discard(run)
            if run in self.world.leased and self.world.leased[run].holder is self.host:
                del self.world.leased[run]

        self._write(release)

    def holder(self, run: str) -> str | None:
        self._read()
        return self.store.leases.holder(run)

    # ── the entries ──────────────────────────────────────────────────────────────────────────────

    def save(self, entry: RunEntry) -> None:
        self._write(lambda: self.store.save(entry))

    def entry(self, run: str) -> RunEntry | None:
        self._read()
        return self.store.entry(run)

    def entries(self) -> list[RunEntry]:
        return self.store.entries()

    def save_due(self, run: str, due: str | None) -> None:
        if self.store.due(run) != due:
            self._write(lambda: self.store.save_due(run, due))

    def forget(self, run: str) -> bool:
        return self.store.forget(run)

    def close(self) -> None:
        """The store outlives this process."""


@cache
def tools() -> ToolRegistry:
    """The tools of all processes: two that write, one of them safe to repeat, and one that reads."""
    effects: dict[str, Any] = {"look": "read", "pay": "write", "note": "write"}
    known = [Tool(c, c, ANY, _acting(c), effect=e, idempotent=c == "note") for c, e in effects.items()]
    return with_runs(ToolRegistry(known), None)


def _acting(code: str) -> Any:
    async def execute(args: dict[str, Any], context: ToolContext) -> Any:
        host, run = HERE.get()
        assert run == context.run_id
        return await host.world.act(host, run, context.strand, code, context.idempotency_key)

    return execute


class Host:
    """One process: an engine, its event loop and its way to the store. It is the model, too.

    Unless it `notices` how long it was not at work, its clock stood still as long as it did.
    """

    def __init__(self, world: World, *, places: int, is_remote: bool = False, notices: bool = False) -> None:
        self.world, self.loop, self.notices = world, Loop(), notices
        self.line = Line(self, is_remote=is_remote)
        self.engine = Engine(tools(), store=self.line, model=self, max_running=places)
        self.steering = self.engine._lease_keeper = Still(self.line, clock=self.clock)

    def clock(self) -> float:
        return self.world.passed if self.notices else 0.0

    async def complete(self, question: Question) -> Completion:
        said: Completion = await self.world.act(self, HERE.get()[1], question.strand, "model", None)
        return said

    def info(self) -> ModelInfo:
        return ModelInfo("m")

    async def close(self) -> None:
        """The model's; nothing to let go of."""

    def ask(self, run: str, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Begin to do something about a run in this process, as far as it goes by itself."""
        context = copy_context()
        context.run(HERE.set, (self, run))
        task = self.loop.create_task(work, context=context)
        self.loop.settle()
        return task

    def end(self) -> None:
        """The process is gone: nothing that it still does has any effect."""
        self.line.die()
        for _ in range(100):
            left = asyncio.all_tasks(self.loop)
            if not left:
                break
            for task in left:
                task.cancel()
            self.loop.settle()
        assert not asyncio.all_tasks(self.loop)
        self.loop.close()
