"""ProgressReporter: the events of a run as progress notifications, for the client that asked for them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from time import monotonic
from typing import Final

from agent_core.run.events import Event
from engine_shim.service.feed_merge import Position
from engine_shim.service.feeds import Feeds

ENDED_S: Final = 1.0
WAITING_S: Final = 0.2
"""How long the last events may take to arrive of a run that has ended, and of one that waits."""
QUIET_S: Final = 10.0
"""After how long without news the last is reported again. Clients give a call up that reports nothing for a while, 60
seconds for the most part, and the run is cancelled with it. A feed wakes its followers every 15 seconds."""
log = logging.getLogger("engine_shim.mcp_server")
Report = Callable[[float, str], Awaitable[None]]
"""Sends one notification: which one of the call it is, and what happened."""


class ProgressReporter:
    """Follows one run from a position on, and reports what happens in it. `now` gives the seconds of a clock."""

    def __init__(self, feeds: Feeds, report: Report, after: Position, *, now: Callable[[], float] = monotonic) -> None:
        self._feeds, self._report, self._now = feeds, report, now
        self._after, self._count = after, 0
        self._last, self._last_at = "running", now()
        self._run = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def position(self) -> Position:
        """The last event that was reported."""
        return self._after

    def start(self, run: str) -> None:
        """Begin to follow a run."""
        self._run, self._task = run, asyncio.create_task(self._follow(run))

    async def flush(self, *, is_waiting: bool) -> None:
        """Report what has happened by now in a settled run."""
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
        async with aclosing(self._feeds.frames(run, self._after)) as followed:
            async for frames in followed:
                for frame in frames:
                    self._after = frame.position or self._after
                    if text := describe_event(frame.event):
                        await self._tell(text)
                if self._now() - self._last_at >= QUIET_S:
                    await self._tell(self._last)

    async def _tell(self, text: str) -> None:
        self._count += 1
        self._last, self._last_at = text, self._now()
        await self._report(self._count, text)


def describe_event(event: Event) -> str | None:
    """Return an event in a few words; None for one that tells a client nothing. Arguments and answers are not shown."""
    match event["event"]:
        case "step_started":
            text = f"step {event['step']}"
        case "action":
            text = f"calls {event['tool']}"
        case "tool_progress":
            text = event["text"]
        case "observation":
            text = "was answered" if event["success"] else "a call failed"
        case "plan_step":
            text = f"step {event['plan_step']} of the plan: {event['status']}"
        case "waiting":
            text = f"{event['tool']} waits for a decision"
        case "finished":
            text = "finished"
        case _:
            return None
    return f"{event['node']}: {text}" if event["node"] else text
