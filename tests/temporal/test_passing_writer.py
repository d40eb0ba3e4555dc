"""What a worker writes of what passes in its acts: together, for those who follow, and nothing without them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core.effects import CallModel, ModelReply, ToolCall
from agent_core.errors import JournalError
from agent_core.journal.operations import Act, Slot
from agent_core.models.client import Completion, Delta, ModelInfo, Question
from agent_core.run.executor import ActReply, Executor
from engine_shim.runs.temporal.passing_writer import PassingWriter
from engine_shim.store.passing_events import Passing, PassingEvents, Piece, passing_events_of
from engine_shim.store.run_store import SqliteRunStore
from utools.registry import ToolRegistry
from utools.secrets.redaction import Redactor
from utools.tool import Tool, ToolContext

RUN, STRAND = "r1", "flow/agent"
SECRET = "sk-a-key-of-the-tests"
ANSWER = "The answer has some words, of which it is written slowly, " * 4 + "and no key."
REPLY = f'{{"type": "final", "answer": "{ANSWER}"}}'


class Model:
    """Gives its reply in pieces with a pause between them; a single piece comes as from a model that does not
    stream."""

    def __init__(self, reply: str = REPLY, pieces: int = 6, pause_s: float = 0.0) -> None:
        self._reply, self._pieces, self._pause_s = reply, pieces, pause_s
        self.was_streamed = False

    async def complete(self, question: Question) -> Completion:
        return Completion(self._reply)

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        self.was_streamed = True
        size = len(self._reply) // self._pieces + 1
        for at in range(0, len(self._reply) if self._pieces > 1 else 0, size):
            yield Delta(self._reply[at : at + size])
            await asyncio.sleep(self._pause_s)
        yield Completion(self._reply)

    def info(self) -> ModelInfo:
        return ModelInfo("slow", streaming=True)

    async def close(self) -> None:
        pass


class Noted:
    """The events of a store, with the calls that were made; `is_away` makes them fail."""

    def __init__(self, events: PassingEvents) -> None:
        self._events = events
        self.calls: list[str] = []
        self.is_away = False
        self.fault: Exception = JournalError("away")

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            self.calls.append(name)
            if self.is_away:
                raise self.fault
            return getattr(self._events, name)(*args)

        return call


@pytest.fixture
def events(tmp_path: Path) -> Iterator[PassingEvents]:
    with closing(SqliteRunStore(tmp_path / "runs.db")) as store:
        found = passing_events_of(store)
        assert found is not None
        yield found


@pytest.fixture
def noted(events: PassingEvents) -> Noted:
    return Noted(events)


@pytest.fixture
def writer(noted: Noted) -> PassingWriter:
    return PassingWriter(noted)  # type: ignore[arg-type]


def question(strand: str = STRAND) -> Act:
    call = CallModel(1, 0, "slow", [b'{"role": "user", "content": "Go."}'], "", {}, 20.0)
    return Act((), call, Slot(strand, 2, b""), key="key", once_only=False)


def call_of_tool() -> Act:
    call = ToolCall("c1", "work", {}, {}, "read", 20.0)
    return Act((), call, Slot(STRAND, 2, b""), key="key", once_only=False)


async def work(args: Any, context: ToolContext) -> str:
    context.progress("half of it", 0.5)
    await asyncio.sleep(0)
    return "done"


async def act(writer: PassingWriter, act: Act, model: Model, found: Callable[[], Any] = list) -> tuple[ActReply, Any]:
    """What came of an act, and what was found before it was recorded."""
    registry = ToolRegistry([Tool("work", "Works.", {"type": "object"}, work, effect="read")])
    executor = Executor(RUN, registry, lambda *_: model, {}, redactor=Redactor({"KEY": SECRET}))
    async with writer.showing(RUN) as shown:
        shown.begin(act)
        reply = await (await shown.executor(executor)).act(act)
        await shown.settle()
        return reply, found()


def texts(found: Sequence[tuple[int, Passing]]) -> str:
    return "".join(piece.text for _, each in found for piece in each.pieces if piece.kind == "answer")


async def test_answer_is_written_in_few_pieces_and_whole_before_it_is_recorded(
    writer: PassingWriter, events: PassingEvents, noted: Noted
) -> None:
    events.follow([RUN])
    _, found = await act(writer, question(), Model(pieces=20, pause_s=0.05), lambda: events.read(RUN, 0))
    assert texts(found) == ANSWER
    assert found[-1][1].pieces[-1] == Piece("whole", "", len(ANSWER))
    assert {(each.strand, each.n) for _, each in found} == {(STRAND, 1)}
    assert 3 <= len(found) <= 8, "about five a second"
    await writer.close()
    assert events.read(RUN, 0) == []


async def test_nobody_who_follows_costs_a_look_and_no_write(writer: PassingWriter, noted: Noted) -> None:
    model = Model()
    reply, _ = await act(writer, question(), model)
    assert isinstance(reply, ModelReply)
    assert (noted.calls, model.was_streamed) == (["find_followed"], False)


async def test_tool_without_a_word_costs_nothing(events: PassingEvents, noted: Noted, writer: PassingWriter) -> None:
    async with writer.showing(RUN) as shown:
        shown.begin(call_of_tool())
        await shown.settle()
    assert noted.calls == []


async def test_words_of_a_tool_are_written_if_somebody_follows(
    writer: PassingWriter, events: PassingEvents, noted: Noted
) -> None:
    await act(writer, call_of_tool(), Model())
    assert noted.calls == ["find_followed"]
    events.follow([RUN])
    _, found = await act(writer, call_of_tool(), Model(), lambda: events.read(RUN, 0))
    assert [each for _, each in found] == [Passing(STRAND, 1, [Piece("progress", "half of it", 0.5)])]
    await writer.close()


async def test_nothing_is_written_of_an_answer_that_comes_in_one_piece(
    writer: PassingWriter, events: PassingEvents, noted: Noted
) -> None:
    events.follow([RUN])
    await act(writer, question(), Model(pieces=1))
    await writer.close()
    assert noted.calls == ["find_followed"]


async def test_secret_is_not_written(writer: PassingWriter, events: PassingEvents) -> None:
    events.follow([RUN])
    model = Model(REPLY.replace("no key", f"the key {SECRET} too"), pieces=30)
    _, found = await act(writer, question(), model, lambda: events.read(RUN, 0))
    assert texts(found) == ANSWER.replace("no key", "the key [redacted:KEY] too")
    await writer.close()


async def test_acts_of_a_worker_are_written_together(
    writer: PassingWriter, events: PassingEvents, noted: Noted
) -> None:
    events.follow([RUN])
    acts = [act(writer, question(f"flow/{n}"), Model(pieces=20, pause_s=0.05)) for n in range(20)]
    await asyncio.gather(*acts)
    assert noted.calls.count("write") <= 12
    assert texts(events.read(RUN, 0)).count("no key") == 20
    await writer.close()
    assert events.read(RUN, 0) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", [JournalError("away"), RuntimeError("odd")], ids=["away", "odd"])
async def test_store_that_is_away_costs_pieces_and_nothing_else(
    fault: Exception, writer: PassingWriter, events: PassingEvents, noted: Noted
) -> None:
    noted.fault = fault
    events.follow([RUN])
    acting = asyncio.create_task(act(writer, question(), Model(pieces=20, pause_s=0.05), lambda: events.read(RUN, 0)))
    while not events.read(RUN, 0):
        await asyncio.sleep(0.02)
    noted.is_away = True
    while noted.calls.count("write") < 3:
        await asyncio.sleep(0.02)
    noted.is_away = False
    reply, found = await acting
    assert isinstance(reply, ModelReply)
    assert texts(found) != ANSWER
    assert found[-1][1].pieces[-1] == Piece("whole", "", len(ANSWER)), "who follows sees that a piece is missing"
    await writer.close()


async def test_worker_of_a_store_without_events_shows_nothing() -> None:
    model = Model()
    reply, _ = await act(PassingWriter(None), question(), model)
    assert isinstance(reply, ModelReply)
    assert not model.was_streamed
