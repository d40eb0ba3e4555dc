"""What a client is told while a run says nothing."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from engine_shim.mcp_server.progress import ProgressReporter
from engine_shim.service.feed_merge import Frame, Position
from engine_shim.service.feeds import Feeds
from support.optional import needs

pytestmark = needs("mcp")
START = Position(0, 0)


def frame(event: str, **fields: Any) -> Frame:
    return Frame(None, cast(Any, {"event": event, "node": "desk", **fields}), b"")


class Script:
    """Feeds whose run has these frames, each at its time."""

    def __init__(self, *told: tuple[float, Sequence[Frame]]) -> None:
        self._told, self.now = told, 0.0

    def find(self, run: str) -> None:
        return None

    async def frames(self, run: str, after: Position) -> AsyncIterator[Sequence[Frame]]:
        for at, frames in self._told:
            self.now = at
            yield frames


async def reported(*told: tuple[float, Sequence[Frame]]) -> list[tuple[float, str]]:
    script, heard = Script(*told), list[tuple[float, str]]()

    async def report(count: float, text: str) -> None:
        heard.append((count, text))

    reporter = ProgressReporter(cast(Feeds, script), report, START, now=lambda: script.now)
    reporter.start("r")
    await reporter.flush(is_waiting=False)
    await reporter.close()
    return heard


async def test_last_news_is_told_again_while_there_is_none() -> None:
    calls = frame("action", tool="hold")
    heard = await reported((1, [calls]), (16, []), (31, []), (32, [frame("finished")]))
    assert heard == [
        (1, "desk: calls hold"),
        (2, "desk: calls hold"),
        (3, "desk: calls hold"),
        (4, "desk: finished"),
    ]


async def test_model_that_writes_for_long_is_told_of_as_well() -> None:
    delta = frame("answer_delta", text="so")
    assert await reported((5, [delta]), (12, [delta]), (13, [delta])) == [(1, "running")]
