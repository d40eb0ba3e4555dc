"""What it costs, in counts: Python calls of ours, selects and write sections.

    python tests/bench/cost.py

Counts do not depend on the machine. Each is taken in a process that is warm: the same was done before it at least once.
A call is one of a function of utools, agent_core or engine_shim, or a generator's that goes on; a write section is a
transaction that writes. `tests/test_cost.py` has the ceilings.
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median_low
from types import CodeType, FrameType
from typing import Any

import agent_core
import engine_shim
import utools
from agent_core import JsonlJournal, MemoryJournal, SqliteJournal, replay, run_agent
from agent_core.journal.store import Journal
from agent_core.models import Completion, Question, ScriptedModel
from agent_core.run.answer_stream import AnswerStream
from engine_shim import Engine
from engine_shim.api import create_app
from engine_shim.host.config import read_host_config
from engine_shim.service.feed_merge import Position
from engine_shim.service.feeds import Feeds
from engine_shim.service.service import Service
from utools import ToolRegistry, tool
from utools.secrets.key_formats import NAMES
from utools.secrets.redaction import Redactor

OURS = tuple(f"{Path(str(package.__file__)).parent}/" for package in (utools, agent_core, engine_shim))
FEW, MANY = 10, 30
"""A step costs the difference between a run of many steps and one of few, divided by the steps between them."""
TIMES = 5
"""A count that depends on which thread is first is the lower median of so many."""
STEP = {"type": "action", "tool": "echo", "args": {"text": "The quick brown fox"}}
FINAL = {"type": "final", "answer": "done"}
PIECE = 5
"""Characters of a piece of a streamed answer."""
LINKS = 60
"""Links on a page that a tool gives."""
INPUTS = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
AGENT = {"model": "scripted:../replies.json", "max_steps": 3, "allowed_tools": ["echo"]}
ASKED = {**AGENT, "prompt": "{{external.question}}"}
DESK = {"id": "desk", "inputs": INPUTS, "nodes": [{"tool": "agent_core", "config": ASKED}]}
CLERK = """
name: clerk
system_prompt: You are the clerk of a shop.
model: scripted:replies.json
skill_policy: {allow: [echo]}
runtime_policy: {max_steps: 3}
"""


class Enough(Exception):
    """Ends what is counted."""


@dataclass
class Count:
    """What has happened so far. Several threads may add to it: what is lost to a race is next to nothing."""

    calls: int = 0
    selects: int = 0
    writes: int = 0
    stopped: tuple[int, int, int] | None = field(default=None, repr=False)

    def see_call(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and is_ours(frame.f_code):
            self.calls += 1

    def see_statement(self, statement: str) -> None:
        self.selects += statement.startswith("SELECT") and "sqlite_master" not in statement
        self.writes += statement.startswith("BEGIN IMMEDIATE")

    def stop(self) -> None:
        """Note what it has cost until now, unless that was noted already."""
        self.stopped = self.stopped or self.now

    @property
    def now(self) -> tuple[int, int, int]:
        return self.calls, self.selects, self.writes


@cache
def is_ours(code: CodeType) -> bool:
    """Whether it is a function of ours; a comprehension is none, which newer Pythons have inline."""
    return code.co_filename.startswith(OURS) and code.co_name not in ("<listcomp>", "<setcomp>", "<dictcomp>")


COUNT = Count()


def watch() -> None:
    """Count from now on, in each thread that begins later as well."""
    connect = sqlite3.connect

    def open_watched(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        db = connect(*args, **kwargs)
        db.set_trace_callback(COUNT.see_statement)
        return db

    sqlite3.connect = open_watched  # type: ignore[assignment]
    threading.setprofile(COUNT.see_call)
    sys.setprofile(COUNT.see_call)


@contextmanager
def counted(into: list[tuple[int, int, int]]) -> Iterator[None]:
    """Add what the block costs, to its end or until `COUNT.stop`."""
    before, COUNT.stopped = COUNT.now, None
    try:
        yield
    finally:
        COUNT.stop()
        assert COUNT.stopped is not None
        into.append(tuple(after - start for after, start in zip(COUNT.stopped, before, strict=True)))  # type: ignore[arg-type]


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────


async def echo(text: str) -> str:
    """Give a text back.

    Args:
        text: The text.
    """
    return text


async def fetch(url: str, most: int) -> dict[str, object]:
    """Read a page.

    Args:
        url: Where it is.
        most: How many links to give.
    """
    links = [f"https://shop.example/{number}/lamp?from={url[-1]}" for number in range(most)]
    rows = [f"Lamp {number}, {number * 3}.50 euros, since 3 May 2026" for number in range(most)]
    return {"url": url, "links": links, "text": "\n".join(rows)}


def count_steps(new_journal: Callable[[], Journal], *, of_pages: bool = False) -> int:
    """The calls of a step of an agent, whose tool gives a text back or a page with links and prices."""

    def run(steps: int) -> int:
        found: list[tuple[int, int, int]] = []
        for _ in range(2):
            journal, runs = new_journal(), asyncio.Runner()
            with runs, counted(found):
                runs.run(run_steps(steps, journal, of_pages=of_pages))
        return found[-1][0]

    return round((run(MANY) - run(FEW)) / (MANY - FEW))


async def run_steps(steps: int, journal: Journal, *, of_pages: bool = False) -> None:
    config = {
        "model": "scripted",
        "max_steps": steps,
        "max_tool_calls": 0,
        "allowed_tools": ["echo", "fetch"] if of_pages else ["echo"],
        "prompt": "Echo the text a few times and then say done.",
    }
    replies = [_read_page(step) if of_pages else STEP for step in range(steps - 1)]
    model = ScriptedModel([*map(json.dumps, replies), json.dumps(FINAL)])
    registry = ToolRegistry([tool(effect="read", code=each.__name__)(each) for each in (echo, fetch)])
    output = await run_agent(config, registry=registry, model=model, journal=journal, run_id="counted")
    assert (output.finish_reason, len(output.trace)) == ("final", steps), output.error


def _read_page(step: int) -> dict[str, object]:
    """A step that reads a page of which a page before has told."""
    args = {"url": f"https://shop.example/{step}/lamp?from={step % 7}", "most": LINKS}
    return {"type": "action", "tool": "fetch", "args": args}


def count_replayed_steps(folder: Path) -> int:
    """The calls of a step that is replayed."""

    def run(steps: int) -> int:
        path, found = folder / f"{steps}.jsonl", list[tuple[int, int, int]]()
        asyncio.run(run_steps(steps, JsonlJournal(path)))
        for _ in range(2):
            with counted(found):
                assert replay(path).identical
        return found[-1][0]

    return round((run(MANY) - run(FEW)) / (MANY - FEW))


def count_pieces() -> int:
    """The calls for a piece of a streamed answer that is held against a key, and has escapes in it."""
    text = json.dumps({**FINAL, "answer": "Up by 7 % at R&D, says https://shop.example/?q=%20a. " * (2 * MANY)})
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    redactor, found = Redactor({"KEY": "0123456789abcdef" * 4}, formats=NAMES), list[tuple[int, int, int]]()
    for _ in range(2):
        stream = AnswerStream(redactor, native=False)
        with counted(found):
            for piece in pieces:
                stream.feed(piece)
        assert stream.finish(text) is not None
    return round(found[-1][0] / len(pieces))


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────


async def count_run(folder: Path) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """What a run of a workflow file costs until its first event, and to its end."""
    first, whole = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
    async with closed(Engine(store=folder / "own.db")) as engine:
        for _ in range(TIMES + 1):
            path = folder / "workflows" / "desk.json"
            with counted(first):
                await engine.run(path, external={"question": "What?"}, on_event=lambda _: COUNT.stop())
            with counted(whole):
                await engine.run(path, external={"question": "What?"})
    return middle(first), middle(whole)


@contextmanager
def prepared() -> Iterator[Path]:
    """A folder with a host: a workflow and an agent, whose model has its replies in a file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, file, text in (("workflows", "desk.json", json.dumps(DESK)), ("agents", "clerk.yaml", CLERK)):
            (folder / kind).mkdir()
            (folder / kind / file).write_text(text)
        replies = json.dumps([json.dumps(STEP), json.dumps(FINAL)])
        for place in (folder, folder / "agents"):
            (place / "replies.json").write_text(replies)
        (folder / "agent-core.yaml").write_text("{}")
        yield folder


class closed:
    """Closes an engine at the end of a block."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __aenter__(self) -> Engine:
        return self._engine

    async def __aexit__(self, *_: object) -> None:
        await self._engine.close()


def middle(found: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    """Of each count the lower median, without the first time, which is not warm."""
    calls, selects, writes = (median_low(each) for each in zip(*found[1:], strict=True))
    return calls, selects, writes


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Client:
    """Asks an ASGI program, in this process."""

    app: Any

    async def ask(self, method: str, path: str, body: Any = None, *, on_piece: Callable[[], None] | None = None) -> Any:
        """The answer's JSON; with `on_piece`, which is called for each piece of a stream, nothing."""
        text, pieces, query = json.dumps(body).encode(), list[bytes](), b""
        path, _, asked = path.partition("?")
        query = asked.encode()
        given = iter([{"type": "http.request", "body": text, "more_body": False}])
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path}
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        where = {"raw_path": path.encode(), "query_string": query, "root_path": "", "scheme": "http"}
        peers = {"server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1)}

        async def receive() -> dict[str, Any]:
            for message in given:
                return message
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        async def send(message: MutableMapping[str, Any]) -> None:
            if message.get("body") and on_piece is not None:
                on_piece()
            pieces.append(message.get("body", b""))

        await self.app({**scope, **where, **peers, "headers": headers}, receive, send)
        return None if on_piece is not None else json.loads(b"".join(pieces))


async def count_requests(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What a POST of a run costs until its answer and until the run's first event, and that of a turn likewise."""
    service = Service.of_host(read_host_config(folder / "agent-core.yaml"), folder / "served.db", is_open=True)
    client = Client(create_app(service))
    run = ("/workflows/desk/runs?wait=false", {"external": {"question": "What?"}}, "run_id")
    turn = ("/agent/chat?wait=false", {"agent": "clerk", "message": "What?"}, "trace_id")
    found: dict[str, list[tuple[int, int, int]]] = {}
    async with service.running():
        for _ in range(TIMES + 1):
            for name, (path, body, key) in (("run", run), ("turn", turn)):
                with counted(found.setdefault(f"{name}: POST to answer", [])):
                    begun = await client.ask("POST", path, body)
                    COUNT.stop()
                    await follow(client, begun[key])
                with counted(found.setdefault(f"{name}: POST to first event", [])):
                    begun = await client.ask("POST", path, body)
                    await follow(client, begun[key])
    return {name: middle(each) for name, each in found.items()}


@contextmanager
def replies_held() -> Iterator[None]:
    """A model answers once the count has stopped: what a run does meanwhile is no part of it."""
    complete = ScriptedModel.complete

    async def answer(model: ScriptedModel, question: Question) -> Completion:
        while COUNT.stopped is None:
            await asyncio.sleep(0.001)
        return await complete(model, question)

    ScriptedModel.complete = answer  # type: ignore[method-assign]
    try:
        yield
    finally:
        ScriptedModel.complete = complete  # type: ignore[method-assign]


async def follow(client: Client, run: str) -> None:
    """Follow a run to its end; its first event stops the count."""
    await client.ask("GET", f"/runs/{run}/events", on_piece=COUNT.stop)


async def count_events(folder: Path) -> int:
    """The calls that one event costs until its follower has it: of a long run without those of a short one."""
    from engine_shim.store.open import open_store

    found, events = [], []
    for steps in (FEW, MANY):
        await run_steps(steps, SqliteJournal(folder / f"{steps}.db"))
        store = open_store(folder / f"{steps}.db")
        for _ in range(2):
            costs, heard = list[tuple[int, int, int]](), 0
            with counted(costs):
                async for frames in Feeds(store).frames("counted", Position(0, 0)):
                    heard += len(frames)
        found.append(costs[-1][0])
        events.append(heard)
        store.close()
    return round((found[1] - found[0]) / (events[1] - events[0]))


def measure() -> dict[str, int]:
    """Each figure by its name."""
    watch()
    with prepared() as folder:
        first, whole = asyncio.run(count_run(folder))
        with replies_held():
            asked = asyncio.run(count_requests(folder))
        files = iter(range(100))
        figures = {
            "a step in memory: calls": count_steps(MemoryJournal),
            "a step in SQLite: calls": count_steps(lambda: SqliteJournal(folder / f"steps-{next(files)}.db")),
            "a step that reads a page: calls": count_steps(MemoryJournal, of_pages=True),
            "a replayed step: calls": count_replayed_steps(folder),
            "a piece of an answer: calls": count_pieces(),
            "an event for one follower: calls": asyncio.run(count_events(folder)),
            "a workflow file to its first event: calls": first[0],
            "a run of two steps: selects": whole[1],
            "a run of two steps: write sections": whole[2],
        }
        for name, (calls, selects, writes) in asked.items():
            figures |= {f"{name}: calls": calls, f"{name}: selects": selects, f"{name}: write sections": writes}
        return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(), indent=2) + "\n")
