"""A script in place of a model: the forms of a reply, and what is said of one that has none of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import DefinitionError
from agent_core.models import Completion, Question, ScriptedModel
from agent_core.protocol.parse import Action, Final, parse

STEPS = {
    "action": ({"type": "action", "tool": "look", "args": {"q": "Öl"}}, Action("look", {"q": "Öl"})),
    "final": ({"type": "final", "answer": "12", "thought": "Counted."}, Final("12", "Counted.")),
}


async def reply(model: ScriptedModel, strand: str = "agent") -> Completion:
    return await model.complete(Question("m", (), {}, strand, 0))


def script(tmp_path: Path, content: Any) -> ScriptedModel:
    (tmp_path / "en.json").write_text(json.dumps(content))
    return ScriptedModel.from_file(tmp_path / "en.json")


@pytest.mark.parametrize(("step", "read"), STEPS.values(), ids=STEPS)
async def test_a_step_is_taken_as_the_reply_that_a_model_writes(tmp_path: Path, step: Any, read: Any) -> None:
    assert parse((await reply(script(tmp_path, [step]))).content) == read
    assert parse((await reply(script(tmp_path, {"flow/a.1": [step]}), "flow/a.1")).content) == read
    assert parse((await reply(ScriptedModel([step]))).content) == read


async def test_a_reply_with_content_is_that_text_whatever_else_it_says(tmp_path: Path) -> None:
    found = await reply(script(tmp_path, [{"type": "final", "content": "cut", "finish_reason": "length"}]))
    assert (found.content, found.finish_reason) == ("cut", "length")


FAULTS: dict[str, tuple[Any, str]] = {
    "unknown type": (["a text", {"type": "acton"}], r"en\.json: reply 2 must be a text, a step such as \{"),
    "no text": ([7], r"en\.json: reply 1 must be a text.*\(got 7\)"),
    "of a strand": ({"flow/a.1": [[]]}, r"en\.json: flow/a\.1: reply 1 must be"),
    "no list of a strand": ({"flow/a.1": "a text"}, r"en\.json: flow/a\.1: must be an array of replies"),
    "calls that are no list": ([{"content": None, "calls": {"a": 1}}], r"reply 1: calls must be a list of \{"),
    "a call of OpenAI's own shape": (
        ["a", {"content": None, "calls": [{"type": "function", "function": {"name": "look"}}]}],
        r'en\.json: reply 2: call 1 must be \{"name": …, "arguments": …\}',
    ),
    "calls under the key that OpenAI has": (
        [{"content": None, "tool_calls": [{"name": "look", "arguments": {}}]}],
        r"reply 1: its calls are under `calls`, not under `tool_calls`",
    ),
    "a call without arguments": ({"a": [{"content": "", "calls": [{"name": "look"}]}]}, r"a: reply 1: call 1 must be"),
    "no text in content": ([{"content": ["a"]}], r"reply 1: content must be a text, or null"),
    "no counts": ([{"content": "", "usage": {"output_tokens": "9"}}], r"usage/output_tokens must be a number"),
    "no list": ("a text", r"en\.json: must be an array of replies"),
}


@pytest.mark.parametrize(("content", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_the_file_and_the_number_of_the_reply(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        script(tmp_path, content)


def test_a_script_that_is_not_there_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="No such file or directory") as caught:
        ScriptedModel.from_file(tmp_path / "replies" / "en.json")
    assert str(tmp_path / "replies" / "en.json") in str(caught.value)
