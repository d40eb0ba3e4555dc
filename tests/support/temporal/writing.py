"""A model that writes its answers slowly, and projects whose workers ask it."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from support.by_hand import action, final
from support.loopback import USAGE, Loopback, Reply, Stream, piece, serving
from support.served_host import INPUTS
from support.temporal_project import Project

WORDS = tuple(f"word {n} of the answer, " for n in range(12))
ANSWER = "".join(WORDS)
PAUSE_S = 0.1
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def event(chunk: Any) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(chunk)


def slowly(texts: Sequence[str], pause_s: float = PAUSE_S) -> Stream:
    """A reply whose pieces come one after another."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + event(piece("", role="assistant")))
        for text in texts:
            writer.write(event(piece(text)))
            await writer.drain()
            await asyncio.sleep(pause_s)
        writer.write(event(piece(finish_reason="stop")) + event(USAGE) + b"data: [DONE]\n\n")
        await writer.drain()

    return write


def call_then_write_slowly(texts: Sequence[str] = WORDS, pause_s: float = PAUSE_S) -> tuple[Stream, Stream]:
    """A call of a tool, and an answer, as the JSON dialect writes them."""
    call = slowly([action("stock", article="A-17")], 0.0)
    begun = final("").removesuffix('"}')
    return call, slowly([begun, *texts, '"}'], pause_s)


@contextmanager
def writing_model(*replies: Reply) -> Iterator[Loopback]:
    """An endpoint in a thread, which answers its requests in turn with the replies."""
    begun, found = threading.Event(), list[Any]()

    async def serve() -> None:
        async with serving(*replies) as loopback:
            end = asyncio.Event()
            found.extend((loopback, end, asyncio.get_running_loop()))
            begun.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert begun.wait(10)
    loopback, end, loop = found
    try:
        yield loopback
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(10)


def write_project(folder: Path, address: str, model: Loopback, store: Path | str) -> Project:
    """A project with a workflow `slow`, whose agent asks the model."""
    project = Project(folder, address, engine="temporal", base_urls={model.url: ""})
    project.store = store  # type: ignore[assignment]
    config = {
        "model": "openai:slow",
        "base_url": model.url,
        "max_steps": 5,
        "allowed_tools": ["stock"],
        "prompt": "{{external.message}}",
    }
    definition = {"id": "slow", "inputs": INPUTS, "nodes": [{"tool": "agent_core", "config": config}]}
    (folder / "workflows" / "slow.json").write_text(json.dumps(definition))
    return project
