"""Golden transcripts of workflows: what was recorded once replays in every version, to the same result."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_core import replay, verify
from agent_core.run.agent_output import OUTPUT
from engine_shim.definition.invoke import OUTPUT as INVOKED
from engine_shim.runs.loops import LOOPS
from support.record_workflows import CASES, TRANSCRIPTS, told
from utools.schema.config_schema import ConfigSchema

FILES = sorted(TRANSCRIPTS.glob("*.jsonl"))


def test_every_case_has_its_transcript() -> None:
    assert {path.stem for path in FILES} >= set(CASES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_verifies_and_replays_to_the_same_result(path: Path) -> None:
    proof = verify(path)
    assert proof.complete is not path.stem.endswith("_yet")
    assert proof.ok is proof.complete
    again = replay(path, loops=LOOPS)
    assert (again.identical, again.divergence, again.tape_ended) == (True, None, None)
    expected: dict[str, Any] = orjson.loads(path.with_suffix(".expected.json").read_bytes())
    assert orjson.loads(told(again.outputs["flow"].output)) == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_is_small_and_tells_nothing_of_the_machine_and_no_secret(path: Path) -> None:
    data = path.read_bytes() + path.with_suffix(".expected.json").read_bytes()
    assert len(data) < 96_000
    places = (b"/tmp", b"/home", b"/root", b"/Users", b"/work", b"a-secret-of-this-host")
    assert not [place for place in places if place in data]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_recorded_run_and_its_agents_gave_fits_their_output_schemas(path: Path) -> None:
    ended = replay(path, loops=LOOPS).outputs["flow"]
    workflow, agent = (ConfigSchema(each, foreign=True) for each in (INVOKED, OUTPUT))
    journal = {"strand": "flow", "head": "0" * 64, "count": 1}
    assert workflow.faults({**ended.output, "journal": journal}) == []
    given = [each for each in ended.output["outputs"].values() if isinstance(each, dict) and "trace" in each]
    assert [fault for each in given for fault in agent.faults(each)] == []
