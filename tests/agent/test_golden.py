"""Golden transcripts: what was recorded once replays in every version, to the same output, and nothing is asked."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_core import JournalError, JsonlJournal, replay, verify
from agent_core.journal import jsonl_format as lines
from agent_core.journal.record import FORMAT, Row, chain_row, genesis
from support.record_transcripts import CASES, TRANSCRIPTS, told

FILES = sorted(TRANSCRIPTS.glob("*.jsonl"))
FINISHED = [path for path in FILES if not path.stem.endswith("_yet")]


def expected(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(path.with_suffix(".expected.json").read_bytes())
    return loaded


def test_every_case_has_its_transcript() -> None:
    assert {path.stem for path in FILES} >= set(CASES)


@pytest.mark.parametrize("path", FINISHED, ids=lambda path: path.stem)
def test_a_transcript_verifies_and_replays_to_the_same_output(path: Path) -> None:
    proof = verify(path)
    assert (proof.ok, proof.complete) == (True, True), proof
    again = replay(path)
    assert (again.identical, again.divergence, again.tape_ended) == (True, None, None)
    assert orjson.loads(told(again.outputs["agent"].output)) == expected(path)


def test_a_run_that_waits_replays_up_to_where_it_waits() -> None:
    path = TRANSCRIPTS / "approval_not_given_yet.jsonl"
    again = replay(path)
    assert again.identical
    assert orjson.loads(told(again.outputs["agent"].output)) == expected(path)
    assert verify(path).complete is False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_is_small_and_tells_nothing_of_the_machine(path: Path) -> None:
    data = path.read_bytes()
    assert len(data) < 64_000
    assert not [place for place in (b"/tmp", b"/home", b"/root", b"/Users", b"/work") if place in data]


def test_a_transcript_of_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    run = "golden-success_with_tools"
    rows = JsonlJournal(TRANSCRIPTS / "success_with_tools.jsonl").load(run)["agent"]
    newer = tmp_path / "newer.jsonl"
    newer.write_bytes(b"".join(lines.write_line(run, row) for row in _of_format(FORMAT + 1, run, rows)))
    with pytest.raises(JournalError, match="use a newer version"):
        replay(newer)
    proof = verify(newer)
    assert (proof.ok, proof.first_bad, proof.contents) == (False, None, "newer")
    same = tmp_path / "same.jsonl"
    same.write_bytes(b"".join(lines.write_line(run, row) for row in _of_format(FORMAT, run, rows)))
    assert replay(same).identical


def _of_format(number: int, run: str, rows: list[Row]) -> list[Row]:
    """The same records under another format, chained as its writer would have done."""
    records = [row.record() for row in rows]
    records[0]["format"] = number
    written: list[Row] = []
    for record in records:
        head = written[-1].hash if written else genesis(run, "agent")
        written.append(chain_row("agent", len(written), head, record))
    return written
