"""What a model read is composed again from the journal, word for word."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_core import run_agent_sync
from agent_core.audit.questions import find_question, list_questions
from agent_core.errors import JournalError
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.memory import MemoryJournal
from agent_core.models import ScriptedModel
from agent_core.models.client import Completion, Question
from engine_shim.runs.loops import LOOPS
from support.by_hand import action, final
from support.record_transcripts import TRANSCRIPTS
from utools import ToolRegistry
from utools.builtin import calculator, echo

RECORDED = sorted(Path(TRANSCRIPTS).glob("*.jsonl"))


@pytest.mark.sampled
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_each_question_of_a_recorded_run_is_composed_again(path: Path) -> None:
    journal = JsonlJournal(path)
    (run,) = journal.runs()
    tape = journal.load(run)
    for asked in list_questions(tape):
        found = find_question(run, tape, asked, LOOPS)
        assert (found.strand, found.n, len(found.messages)) == (asked.strand, asked.n, asked.messages)


class Noting(ScriptedModel):
    """A script that keeps the questions as they were sent."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies)
        self.sent: list[Question] = []

    async def complete(self, question: Question) -> Completion:
        self.sent.append(question)
        return await super().complete(question)


CALL = action("calculator", expression="1+1")
NATIVE = {"content": None, "calls": [{"name": "calculator", "arguments": {"expression": "1+1"}}]}
CONFIGS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "json": ({}, [CALL, "no JSON", final("2")]),
    "native": ({"protocol": "tools"}, [NATIVE, {"content": "2"}]),
    "Chinese": ({"language": "zh"}, [CALL, final("2")]),
    "cut": ({"max_input_tokens": 900, "prompt": "word " * 200}, [action("echo", text="x " * 900), CALL, final("2")]),
}


@pytest.mark.parametrize(("config", "replies"), CONFIGS.values(), ids=list(CONFIGS))
def test_composed_question_is_what_was_sent(config: dict[str, Any], replies: list[Any]) -> None:
    model, journal = Noting(replies), MemoryJournal()
    given = {"model": "m", "max_steps": 6, "prompt": "How much?", "allowed_tools": ["*"], "max_repairs": 2, **config}
    output = run_agent_sync(given, registry=ToolRegistry([calculator(), echo()]), model=model, journal=journal)
    tape = journal.load(output.run_id)
    found = [find_question(output.run_id, tape, each) for each in list_questions(tape)]
    assert len(found) == len(model.sent) > 1
    for one, sent in zip(found, model.sent, strict=True):
        assert one.messages == [orjson.loads(each) for each in sent.messages]


def test_question_that_this_version_composes_otherwise_is_told() -> None:
    model, journal = ScriptedModel([final("2")]), MemoryJournal()
    given = {"model": "m", "max_steps": 2, "prompt": "x", "allowed_tools": []}
    output = run_agent_sync(given, registry=ToolRegistry(), model=model, journal=journal)
    tape = journal.load(output.run_id)
    (asked,) = list_questions(tape)
    with pytest.raises(JournalError, match="asks other questions"):
        find_question(output.run_id, tape, type(asked)(asked.strand, asked.n, None, 1, "m", 2, "0" * 64))
