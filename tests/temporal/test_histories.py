"""Histories that releases have left: this one goes on where they stop."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from agent_core.journal.path import CONTROL
from engine_shim.runs.temporal.backend import TemporalBackend
from engine_shim.runs.temporal.workflow import AgentRun
from support.temporal.record_histories import FOLDER, NAMES, file_name, read_recorded
from support.temporal.replaying import replay_histories

pytestmark = pytest.mark.exhaustive
FILES = sorted(FOLDER.glob("*/*.json.gz"))


def test_each_release_has_left_all_histories() -> None:
    versions = {file.parent.name for file in FILES}
    assert versions
    assert {(file.parent.name, file.name) for file in FILES} >= {
        (version, file_name(name)) for version in versions for name in NAMES
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.name.removesuffix('.json.gz')}")
def test_run_of_a_release_in_flight_goes_on(file: Path) -> None:
    journal, histories = read_recorded(file)
    assert histories
    replay_histories(AgentRun, journal, histories)


def test_workflow_that_asks_for_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = TemporalBackend.begin

    async def look_first(self: TemporalBackend, asked: Any) -> Any:
        await self._perform("read_strand", CONTROL)
        return await begin(self, asked)

    monkeypatch.setattr(TemporalBackend, "begin", look_first)
    journal, histories = read_recorded(next(file for file in FILES if file.name.startswith("agent")))
    with pytest.raises(Exception, match=r"[Nn]ondeterminism"):
        replay_histories(AgentRun, journal, histories[:1])
