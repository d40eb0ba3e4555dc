"""A client that goes away in the midst of a stream."""

import asyncio

import pytest

from agent_core import verify
from agent_core.testing import FunctionModel, assert_finish
from service.serving import ADA, OpenDesk, Serve


class Hanging:
    """A model that never replies, and notes that its question was cancelled."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    async def __call__(self, messages: object, tools: object) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return ""


@pytest.mark.parametrize("path", ["/cases", "/verdicts/events", "/chats/c1", "/questions"])
async def test_a_client_that_goes_away_cancels_its_run(path: str, serve: Serve, open_desk: OpenDesk) -> None:
    hanging, before = Hanging(), asyncio.all_tasks()
    async with serve(FunctionModel(hanging)) as client:
        async with client.stream("POST", path, json={"number": "17", "text": "broken"}, headers=ADA) as response:
            first = await anext(response.aiter_lines())
        async with asyncio.timeout(60):
            await hanging.cancelled.wait()
    assert asyncio.all_tasks() == before
    desk = open_desk(FunctionModel(hanging))
    journal = desk.engine.store.journal if path == "/cases" else desk.journal
    assert first == "event: step_started"
    assert_finish(journal, "cancelled")
    assert verify(journal).complete
    assert await desk.conversations.history("ada/c1") == []
