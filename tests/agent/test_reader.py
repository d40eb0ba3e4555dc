"""The reader says what the rows of a run say: which run each belongs to, what an answer answers, and how it went."""

import re
from pathlib import Path

import orjson
import pytest

from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.errors import Damaged
from agent_core.journal import facts, reader
from agent_core.journal.facts import Answered, Batch, Call, Fact, Question, RunFinished, RunStarted
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.kinds import KINDS, beginning
from agent_core.journal.reader import Reader, find_agents, leave_nested, read_run, read_strands
from agent_core.journal.record import Row, Tape, by_path

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "transcripts").rglob("*.jsonl"))
README = Path(reader.__file__).with_name("README.md")


def load(path: Path) -> Tape:
    journal = JsonlJournal(path)
    (run,) = journal.runs()
    return journal.load(run)


def every_fact(tape: Tape) -> list[Fact]:
    return [fact for facts in read_strands(tape).values() for fact in facts]


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) > 20


@pytest.mark.sampled
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_record_of_a_transcript_is_a_fact_of_its_kind(path: Path) -> None:
    tape = load(path)
    strands = read_strands(tape)
    assert set(strands) == set(tape)
    for strand, rows in tape.items():
        assert [(fact.strand, fact.n) for fact in strands[strand]] == [(row.path, row.n) for row in rows]
        for row, fact in zip(rows, strands[strand], strict=True):
            assert row.kind == row.record()["kind"]
            if isinstance(fact, Answered) and fact.n:
                assert fact.asked is not None
                assert (fact.asked.strand, fact.asked.n) <= (fact.strand, fact.n)


@pytest.mark.sampled
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_strand_but_those_beside_the_run_belongs_to_the_run_above_it(path: Path) -> None:
    tape = load(path)
    for fact in every_fact(tape):
        if fact.strand in ("control", "seal"):
            assert fact.run is None
            continue
        assert fact.run is not None
        assert fact.strand == fact.run.path or fact.strand.startswith(f"{fact.run.path}/")
        assert read_run(tape, fact.strand).path == fact.run.path


def test_records_of_the_documentation_are_read() -> None:
    examples = re.findall(r"^```json [a-z ]+\n(.+?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) > 12
    named = Reader()
    for n, example in enumerate(examples):
        record = orjson.loads(example)
        fact = named.read(Row("agent", n, b"", orjson.dumps(record)))
        assert type(fact).__name__ in vars(facts)


def answer(reply: dict[str, object], asked: dict[str, object]) -> Answered:
    """What a reader says of an answer after its question."""
    here = Reader()
    rows = [{"kind": "asked", **asked}, {"kind": "answered", "at": "2026-11-26T10:00:00Z", "seconds": 1.0, **reply}]
    facts = [here.read(Row("agent", n, b"", orjson.dumps(row))) for n, row in enumerate(rows, 1)]
    assert isinstance(facts[-1], Answered)
    return facts[-1]


QUESTION = {"ask": "model", "step": 1, "model": "m", "digest": "d", "messages": 2}
CALL = {"ask": "tool", "id": "call_1", "tool": "find", "args": {"q": "17"}, "effect": "read"}
DID = {"reply": "did", "output": {"a": 1}, "cached": False, "usage": None}


def test_reply_of_a_model_succeeds() -> None:
    said = {"reply": "said", "content": "{}", "finish_reason": "stop", "usage": {}, "requests": 1, "model": "m"}
    found = answer(said, QUESTION)
    assert isinstance(found.asked, Question)
    assert isinstance(found.answer, ModelReply)
    assert (found.succeeded, found.error) == (True, None)


def test_result_of_a_tool_succeeds_or_fails_as_it_says() -> None:
    found = answer({**DID, "success": True, "error": None}, CALL)
    assert isinstance(found.asked, Call)
    assert found.asked.nested == "agent/find.1"
    assert isinstance(found.answer, ToolReply)
    assert (found.succeeded, found.error) == (True, None)
    found = answer({**DID, "success": False, "error": "no such order"}, CALL)
    assert (found.succeeded, found.error) == (False, "no such order")


def test_failure_of_the_world_fails() -> None:
    found = answer({"reply": "failed", "reason": "timeout", "message": "too late", "requests": 0}, CALL)
    assert isinstance(found.answer, Failed)
    assert (found.succeeded, found.error) == (False, "too late")


def test_batch_succeeds_once_all_have_answered() -> None:
    found = answer({"reply": "batch", "closes": []}, {"ask": "batch", "tools": ["find", "add"]})
    assert isinstance(found.asked, Batch)
    assert found.succeeded


@pytest.mark.parametrize(
    ("ending", "failure"),
    [
        ({"status": "completed", "error": None}, None),
        ({"status": "failed", "error": {"kind": "tool_error", "message": "no"}}, ("tool_error", "no")),
        ({"status": "cancelled", "error": None}, ("cancelled", None)),
        ({"finish_reason": "final", "error": None, "usage": {}}, None),
        ({"finish_reason": "timeout", "error": {"kind": "x", "message": "late"}, "usage": {}}, ("timeout", "late")),
    ],
)
def test_run_ends_as_its_status_or_its_reason_says(ending: dict[str, object], failure: tuple[str, str] | None) -> None:
    record = {"kind": "run_finished", "at": "2026-11-26T10:00:00Z", **ending}
    fact = Reader().read(Row("flow", 3, b"", orjson.dumps(record)))
    assert isinstance(fact, RunFinished)
    assert (fact.failure, fact.succeeded) == (failure, failure is None)
    assert fact.is_agent == ("finish_reason" in ending)


def test_kind_that_there_is_not_is_damage() -> None:
    with pytest.raises(Damaged, match="its kind 'guessed' is unknown"):
        Reader().read(Row("flow", 3, b"", b'{"kind":"guessed"}'))


def test_strand_of_no_run_is_damage() -> None:
    tape = {"a": [Row("a", 0, b"", b'{"kind":"asked"}')]}
    with pytest.raises(Damaged, match="record 0 of strand 'a/b' is damaged: no run begins there or above"):
        read_run(tape, "a/b")


@pytest.mark.parametrize("data", [b"", b"{}", b'{"n":1,"kind":"asked"}', b'{"kind":"guessed"}', b'{"kind": "asked"}'])
def test_bytes_of_another_form_have_no_kind(data: bytes) -> None:
    assert Row("agent", 0, b"", data).kind is None


@pytest.mark.parametrize("kind", KINDS.values())
def test_bytes_of_a_record_tell_its_kind(kind: str) -> None:
    assert Row("agent", 0, b"", orjson.dumps({"kind": kind, "more": 1})).kind == kind


def test_beginning_is_that_of_the_bytes_with_these_fields() -> None:
    assert beginning("asked", ask="model") == b'{"kind":"asked","ask":"model"'


def test_agents_are_found_in_order_and_those_below_others_left_out() -> None:
    rows = [
        Row(path, 0, b"", orjson.dumps({"kind": "run_started", "loop": loop, "at": "", "limits": {}, **more}))
        for path, loop, more in (
            ("flow", "flow", {"definition": {"id": "w"}}),
            ("flow/b.1", "agent", {}),
            ("flow/a.1", "agent", {}),
            ("flow/a.1/helper.3", "agent", {}),
        )
    ]
    strands = read_strands(by_path(rows))
    assert find_agents(strands) == ["flow/a.1", "flow/a.1/helper.3", "flow/b.1"]
    assert leave_nested(find_agents(strands)) == ["flow/a.1", "flow/b.1"]
    (helper,) = [fact.begun for fact in strands["flow/a.1/helper.3"] if isinstance(fact, RunStarted)]
    assert (helper.name, helper.agent, helper.workflow) == ("helper", "helper", "w")
    assert helper.above is not None
    assert (helper.above.path, helper.above.name) == ("flow/a.1", "a")
