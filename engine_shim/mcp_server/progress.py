"""ProgressReporter: the events of a run as progress notifications, for the client that asked for them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Final

import orjson

from agent_core.run.events import Event
from engine_shim.service.feed import Feeds, Position

ENDED_S: Final = 1.0
WAITING_S: Final = 0.2
"""How long the last events may take to arrive of a run that has ended, and of one that waits."""
log = logging.getLogger("engine_shim.mcp_server")
Report = Callable[[float, str], Awaitable[None]]
"""Sends one notification: how many events there were so far, and what happened."""


class ProgressReporter:
    """Follows one run from a position on, and reports what happens in it."""

    def __init__(self, feeds: Feeds, report: Report, after: Position) -> None:
        self._feeds, self._report = feeds, report
        self._after, self._count = after, 0
        self._run, self._task = "", None  # type: str, asyncio.Task[None] | None

    @property
    def position(self) -> Position:
        """The last event that was reported."""
        return self._after

    def start(self, run: str) -> None:
        """Begin to follow a run."""
        self._run, self._task = run, asyncio.create_task(self._follow(run))

    async def flush(self, *, is_waiting: bool) -> None:
        """Report what has happened by now in a run at rest."""
        if self._task is not None:
            if feed := self._feeds.find(self._run):
                feed.wake()
            await asyncio.wait([self._task], timeout=WAITING_S if is_waiting else ENDED_S)

    async def close(self) -> None:
        """Follow no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()):
                log.debug("progress of run %s was not reported to its end: %s", self._run, error)

    async def _follow(self, run: str) -> None:
        async with aclosing(self._feeds.follow(run, self._after)) as followed:
            async for data in followed:
                for position, event in read_frames(data):
                    self._after = position or self._after
                    if text := describe_event(event):
                        self._count += 1
                        await self._report(self._count, text)


def read_frames(data: bytes) -> Iterator[tuple[Position | None, Event]]:
    """The events in a piece of a feed, each with its position, which a passing one does not have."""
    for frame in data.split(b"\n\n"):
        fields = dict(line.split(b": ", 1) for line in frame.splitlines() if b": " in line)
        if text := fields.get(b"data"):
            position = fields.get(b"id")
            yield None if position is None else Position.read(position.decode()), orjson.loads(text)


def describe_event(event: Event) -> str | None:
    """An event in a few words; None for one that tells a client nothing. Arguments and answers are not shown."""
    match event:
        case {"event": "step_started", "step": step}:
            text = f"step {step}"
        case {"event": "action", "tool": tool}:
            text = f"calls {tool}"
        case {"event": "tool_progress", "text": words}:
            text = str(words)
        case {"event": "observation", "success": success}:
            text = "was answered" if success else "a call failed"
        case {"event": "plan_step", "plan_step": number, "status": status}:
            text = f"step {number} of the plan: {status}"
        case {"event": "waiting", "tool": tool}:
            text = f"{tool} waits for a decision"
        case {"event": "finished"}:
            text = "finished"
        case _:
            return None
    return f"{event['node']}: {text}" if event.get("node") else text
