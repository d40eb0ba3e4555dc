"""find_question(): what a model read before a reply, word for word, from the journal alone."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import orjson

from agent_core.audit.replay import replay_tape
from agent_core.effects import CallModel, Effect
from agent_core.errors import JournalError
from agent_core.journal.facts import Question
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Record, Tape
from agent_core.journal.strand import Loops
from agent_core.loop.agent import AGENT_LOOPS
from agent_core.outputs import Json

Loop = Generator[Effect, Any, Any]


class AskedQuestion(NamedTuple):
    """A question at its place: its `messages` in the shape of the wire, and the `options` that went with them."""

    strand: str
    n: int
    step: int
    model: str
    messages: list[Json]
    options: Json


def list_questions(tape: Tape) -> list[Question]:
    """Return the questions that a run asked, strand by strand."""
    return [fact for fact in read_tape(tape, {"run_started", "asked"}) if isinstance(fact, Question)]


def find_question(run: str, tape: Tape, asked: Question, loops: Loops = AGENT_LOOPS) -> AskedQuestion:
    """Return what a question of a run said. The record holds its digest; a replay composes it again.

    Damaged where the records are not whole, JournalError where this version composes other questions.
    """
    composed: dict[str, CallModel] = {}
    replay_tape(run, tape, loops={name: _listening(loop, composed) for name, loop in loops.items()})
    found = composed.get(asked.digest)
    if found is None:
        message = "this version asks other questions than the run did; `agent-core replay` shows the first difference"
        raise JournalError(f"{asked.strand}:{asked.n}: {message}")
    messages = [orjson.loads(each) for each in found.messages]
    return AskedQuestion(asked.strand, asked.n, asked.step, asked.model, messages, dict(found.options))


def _listening(loop: Callable[[Record], Loop], composed: dict[str, CallModel]) -> Callable[[Record], Loop]:
    """Return the loop, which notes each question that it asks by its digest."""

    def listen(started: Record) -> Loop:
        running, reply = loop(started), None
        while True:
            try:
                effect = running.send(reply)
            except StopIteration as stop:
                return stop.value
            if isinstance(effect, CallModel):
                composed[effect.digest] = effect
            reply = yield effect

    return listen
