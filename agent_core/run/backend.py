"""Backend: where a driver's operations happen: in this process, or by way of an engine that calls processes."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from agent_core.effects import Cancelled, Classify, InDoubt, ReadMessage, Signalled
from agent_core.errors import Lost
from agent_core.journal.operations import Act, Begin
from agent_core.journal.record import Row
from agent_core.run.admission import Admission, call_to_admit
from agent_core.run.appender import Appender
from agent_core.run.clock import now, write_time
from agent_core.run.executor import Executor
from agent_core.run.inbox import Inbox

Guard = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Lets an act be aborted when its run is cancelled; it then comes to Cancelled."""


class Backend(Protocol):
    """What a driver needs done. Each raises Lost where another driver was first."""

    def now(self) -> str:
        """Return the time, as records hold it."""
        ...

    def read_clock(self) -> str:
        """Return the time that waits go by, in the same form."""
        ...

    async def append(self, rows: Sequence[Row], *, settled: bool = False) -> None:
        """Append rows. After those that are `settled` no act follows at once."""
        ...

    async def begin(self, begin: Begin) -> Any:
        """Return the body of `run_started` for a run, or Failed."""
        ...

    async def classify(self, classify: Classify) -> str:
        """Return what a call would do: "read", "write" or "nested"."""
        ...

    async def take_messages(self, strand: str) -> tuple[ReadMessage, ...]:
        """Return the messages for the question that a strand is about to ask."""
        ...

    async def take_signal(self, name: str) -> Signalled | None:
        """Return the oldest signal of this name that no node has taken; None before one is sent."""
        ...

    def must_admit(self, act: Act) -> bool:
        """Return whether `admit` has to be asked before the act's last row is appended."""
        ...

    async def admit(self, act: Act) -> Admission | None:
        """Wait until the act may begin."""
        ...

    async def act(self, act: Act, rows: Sequence[Row], admission: Admission | None, guard: Guard) -> Any:
        """Append the rows, act unless another driver appended the last one, and put a write's answer on disk. What
        acts stands under the guard."""
        ...


class LocalBackend:
    """The backend of a run that is driven in this process."""

    def __init__(self, appender: Appender, executor: Executor, inbox: Inbox | None = None) -> None:
        self._appender, self._executor, self._inbox = appender, executor, inbox

    def now(self) -> str:
        return now()

    def read_clock(self) -> str:
        clock = self._executor.clock
        return now() if clock is None else write_time(datetime.fromtimestamp(clock(), UTC))

    async def append(self, rows: Sequence[Row], *, settled: bool = False) -> None:
        if settled:
            await self._appender.append_settled(rows)
        else:
            await self._appender.append(rows)

    async def begin(self, begin: Begin) -> Any:
        return await self._executor.begin(begin)

    async def classify(self, classify: Classify) -> str:
        return self._executor.classify(classify)

    async def take_messages(self, strand: str) -> tuple[ReadMessage, ...]:
        if self._inbox is None:
            return ()
        if self._inbox.stop.has_messages and self._inbox.accepts(strand):
            await self._appender.retry_until_available(self._inbox.read)
        return self._inbox.take(strand)

    async def take_signal(self, name: str) -> Signalled | None:
        if self._inbox is None:
            return None
        if self._inbox.stop.has_messages:
            await self._appender.retry_until_available(self._inbox.read)
        return self._inbox.take_signal(name)

    def must_admit(self, act: Act) -> bool:
        return call_to_admit(act) is not None

    async def admit(self, act: Act) -> Admission | None:
        return await self._executor.admit(act)

    async def act(self, act: Act, rows: Sequence[Row], admission: Admission | None, guard: Guard) -> Any:
        is_claimed = await self._appender.append(rows)
        if act.rows and not is_claimed:  # another driver wrote this very `asked`: it acts, and may have answered by now
            raise Lost(act.slot.path, act.slot.n - 1)
        await self._appender.confirm_hold()
        reply = await guard(self._executor.act(act, admission))
        if act.once_only and not isinstance(reply, InDoubt | Cancelled):
            await self._appender.append_answer(act, reply)
        return reply
