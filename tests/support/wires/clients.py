"""Clients at the stand-ins of all APIs: asked a question, and in runs of an agent."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from agent_core import AgentOutput, MemoryJournal, run_agent
from agent_core.models import Completion, Delta, ModelClient, Question
from agent_core.models.providers import create_model
from support.wires.installed import STAND_INS
from support.wires.serving import Vendor
from support.wires.turn import KEY, Turn
from utools import Tool, ToolRegistry, tool

NATIVE = [each for each in STAND_INS if each.api != "chat"]
each_client = pytest.mark.parametrize("stand_in", STAND_INS, ids=lambda each: each.api)
each_native = pytest.mark.parametrize("stand_in", NATIVE, ids=lambda each: each.api)
each_way = pytest.mark.parametrize("way", ["whole", "streamed"])
QUESTION = (b'{"role":"system","content":"Be brief."}', b'{"role":"user","content":"What is a casa?"}')
THOUGHT = "They ask for a word."


def question(*messages: bytes, **options: Any) -> Question:
    return Question("m1", messages or QUESTION, options, "agent", 0, within=20.0)


def client_of(endpoint: Vendor, **about: Any) -> ModelClient:
    """A client with a key of its own, so that no other test's has learnt anything of its endpoint."""
    api = "chat" if endpoint.stand_in.api == "chat" else "native"
    return create_model(endpoint.model, base_url=endpoint.url, **{"api_key": KEY, "api": api, **about})


async def ask(client: ModelClient, asked: Question, way: str) -> tuple[str, Completion]:
    """What was shown while the reply was written, and the reply."""
    if way == "whole":
        completion = await client.complete(asked)
        return completion.content, completion
    shown = ""
    async for piece in client.stream(asked):
        match piece:
            case Delta():
                shown = piece.text if piece.anew else shown + piece.text
            case Completion():
                return shown, piece
    raise AssertionError


@tool(effect="read")
async def lookup(word: str) -> str:
    """Look a word up.

    Args:
        word: the word to look up
    """
    return f"{word} means house"


CONFIG = {"max_steps": 6, "allowed_tools": ["lookup"], "prompt": "What is a casa?", "temperature": None}
CALL = Turn(thought=THOUGHT, calls=[("lookup", {"word": "casa"}), ("lookup", {"word": "maison"})])
ACTION, FINAL = '{"type":"action","tool":"lookup","args":{"word":"casa"}}', '{"type":"final","answer":"A house."}'
SCRIPTS = {
    "json": [Turn(ACTION), Turn(FINAL)],
    "tools": [CALL, Turn(thought=THOUGHT, calls=[("lookup", {"word": "Haus"})]), Turn("A house.")],
}


class Streaming:
    """A model that answers in a stream what it is asked for whole: so that a run without listeners streams."""

    def __init__(self, model: ModelClient) -> None:
        self.model, self.info, self.close = model, model.info, model.close

    async def complete(self, asked: Question) -> Completion:
        shown, completion = await ask(self.model, asked, "streamed")
        assert shown == completion.content
        return completion

    async def stream(self, asked: Question) -> AsyncGenerator[Delta | Completion]:
        yield await self.complete(asked)


async def run(
    endpoint: Vendor, way: str = "whole", *, tools: Sequence[Tool] = (lookup,), journal: Any = None, **config: Any
) -> AgentOutput:
    model: Any = client_of(endpoint)
    try:
        given = {**CONFIG, "model": endpoint.model, "allowed_tools": [each.code for each in tools], **config}
        asked = Streaming(model) if way == "streamed" else model
        return await run_agent(given, registry=ToolRegistry(tools), model=asked, journal=journal, run_id="r")
    finally:
        await model.close()


def replies_in(journal: MemoryJournal) -> list[Any]:
    """The recorded replies of the model."""
    records = [row.record() for row in journal.load("r")["agent"] if row.kind == "answered"]
    return [record for record in records if record["reply"] == "said"]
