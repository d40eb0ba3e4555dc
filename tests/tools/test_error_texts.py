"""What an error of foreign code says: whatever its own code does, a run hears of it, and goes on."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core import JsonlJournal, replay, run_agent, verify
from agent_core.models import ScriptedModel
from agent_core.models.client import ModelError
from engine_shim import Engine, MemoryRunStore
from support.by_hand import action, final
from utools import Tool, ToolRegistry, default_registry
from utools.error_text import describe
from utools.words.text import LONGEST, Text, error_words, translate

ANY = {"type": "object", "additionalProperties": True}


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class NoText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class Ends(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class MuteModel(ModelError):
    def __str__(self) -> str:
        raise RecursionError


class Weird:
    def __repr__(self) -> str:
        raise OSError("no repr")


def nested() -> ExceptionGroup[Exception]:
    inner = ExceptionGroup("below", [ConnectionError("10.0.0.7 refused"), Mute()])
    return ExceptionGroup("unhandled errors", [ValueError("first"), inner])


ERRORS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "mute": (Mute, "Mute"),
    "not a text": (NoText, "NoText"),
    "ends the program": (Ends, "Ends"),
    "empty": (RuntimeError, "RuntimeError"),
    "key": (lambda: KeyError("x"), "KeyError: 'x'"),
    "odd key": (lambda: KeyError(Weird()), "KeyError"),
    "surrogate": (lambda: RuntimeError("a \ud83d b"), "RuntimeError: a ? b"),
    "group": (nested, "first; ConnectionError: 10.0.0.7 refused; Mute"),
    "stopped": (lambda: StopIteration("over"), "StopIteration: over"),
    "huge": (lambda: RuntimeError("x" * 3_000_000), "RuntimeError: xxx"),
}
CASES = pytest.mark.parametrize(("make", "said"), ERRORS.values(), ids=ERRORS)


@CASES
def test_every_error_has_a_text_that_a_journal_can_hold(make: Callable[[], BaseException], said: str) -> None:
    text = describe(make())
    assert said in text
    assert len(text) <= LONGEST + 100
    assert json.loads(json.dumps(text).encode()) == text
    assert error_words(make()) in str(Text("it failed: {error}", error=make()))
    for language in ("en", "zh"):
        assert translate(make(), language)


def test_group_tells_some_of_very_many_errors() -> None:
    group = ExceptionGroup("many", [ValueError(f"n{each}") for each in range(5000)])
    assert "ValueError: n9; …" in describe(group)
    deep: Exception = ValueError("deepest")
    for _ in range(3000):
        deep = ExceptionGroup("", [deep])
    assert "deepest" in describe(deep)


def test_text_that_was_cut_off_inside_a_trace_shows_none_of_it(tmp_path: Path) -> None:
    from utools.secrets.scrub import scrub

    trace = "broken\nTraceback (most recent call last):\n" + '  File "/srv/own/code.py", line 1, in x\n    y()\n' * 900
    text = scrub(describe(RuntimeError(trace)), os.environ)
    assert ("own" in text, "y()" in text, text.startswith("RuntimeError: broken")) == (False, False, True)


@pytest.mark.sampled
@CASES
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_tool_that_raises_it_fails_and_the_run_goes_on(
    make: Callable[[], BaseException], said: str, is_async: bool, tmp_path: Path
) -> None:
    def give(args: Any, context: Any) -> Any:
        raise make()

    async def give_later(args: Any, context: Any) -> Any:
        raise make()

    if is_async and said.startswith("StopIteration"):
        said = "coroutine raised StopIteration"
    tool = Tool("give", "Gives.", ANY, give_later if is_async else give, effect="read")
    journal, model = JsonlJournal(tmp_path / "run.jsonl"), ScriptedModel([action("give"), final("ok")])
    config = {"model": "m", "max_steps": 3, "prompt": "x", "allowed_tools": ["give"]}
    output = await run_agent(config, registry=[tool], model=model, journal=journal)
    (told,) = [each["content"] for each in output.messages_json if each["role"] == "tool"]
    assert said[:40] in told
    assert output.finish_reason == "final"
    assert verify(journal).ok
    assert replay(journal).identical


@pytest.mark.parametrize("make", [Mute, NoText, nested, lambda: MuteModel("x"), RuntimeError])
async def test_model_client_that_raises_it_ends_the_run_as_a_model_error(
    make: Callable[[], BaseException], tmp_path: Path
) -> None:
    def answer(messages: Any) -> str:
        raise make()

    journal = JsonlJournal(tmp_path / "run.jsonl")
    config = {"model": "m", "max_steps": 3, "prompt": "x", "allowed_tools": []}
    output = await run_agent(config, registry=[], model=ScriptedModel(answer), journal=journal)
    assert output.finish_reason == "model_error"
    assert type(make()).__name__ in (output.error or {})["message"]
    assert verify(journal).ok


async def test_plain_node_and_listener_that_raise_it_leave_the_run_whole(tmp_path: Path) -> None:
    def give(args: Any, context: Any) -> Any:
        raise Mute

    def listen(event: Any) -> None:
        raise Mute

    registry = default_registry(tmp_path)
    registry.register(Tool("give", "Gives.", ANY, give, effect="read"))
    engine = Engine(registry, store=MemoryRunStore())
    result = await engine.run({"id": "w", "nodes": [{"tool": "give", "config": {}}]}, on_event=listen)
    assert (result.status, "Mute" in str(result.error)) == ("failed", True)


async def test_write_of_which_one_connection_broke_may_have_been_made() -> None:
    def of(*errors: Exception) -> Tool:
        async def execute(args: Any, context: Any) -> Any:
            raise ExceptionGroup("unhandled errors in a TaskGroup", list(errors))

        return Tool("send", "Sends.", ANY, execute)

    registry = ToolRegistry([of(ConnectionResetError("reset"), ValueError("then this"))])
    assert (await registry.execute("send", {})).metadata == {"cut_off": True}
    registry = ToolRegistry([of(ConnectionRefusedError("refused"))])
    assert (await registry.execute("send", {})).metadata == {"transient": True}


def test_definition_error_names_a_value_that_cannot_be_shown() -> None:
    from utools.errors import DefinitionError

    assert "got a Weird" in str(DefinitionError("is no text", where="x", value=Weird()))
