"""Outputs of an agent that are too large for Temporal, which would have its activity tried again for ever."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from agent_core.models import ScriptedModel
from engine_shim.plugins.temporal import AgentRequest, make_agent_activity

HALF = 780_000
SAID = [{"role": "user", "content": "x" * HALF}, {"role": "assistant", "content": "y" * HALF}]


async def ask(folder: Path, answer: str, messages: list[dict[str, str]], store: str = "runs.db") -> Any:
    config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "messages_json": messages}
    model = ScriptedModel([json.dumps({"type": "final", "answer": answer})])
    activity = make_agent_activity("desk", config, tools=[], journal=folder / store, model=model)
    return await ActivityEnvironment().run(activity, AgentRequest("Go."))


async def test_large_outputs_come_without_what_the_journal_keeps(tmp_path: Path) -> None:
    output = await ask(tmp_path, "done", SAID)
    assert (output["status"], output["final_answer"]) == ("completed", "done")
    assert "messages_json" not in output
    assert len((await ask(tmp_path, "done", [], "small.db"))["messages_json"]) == 2


async def test_answer_that_is_too_large_by_itself_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine_shim.plugins.temporal.activity.MAX_RESULT", 10_000)
    with pytest.raises(ApplicationError, match="too large for Temporal; they are in the journal") as refused:
        await ask(tmp_path, "z" * 20_000, [])
    assert (refused.value.type, refused.value.non_retryable) == ("OutputsTooLarge", True)
