"""One whole run with each vendor: by chat completions with its stand-in, and by each API with the vendor itself."""

import os
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_core import AgentOutput, run_agent
from agent_core.models import Completion, Delta, ModelClient, ModelInfo, Question
from agent_core.models.apis import NATIVE
from agent_core.models.openai.client import OpenAICompatible
from agent_core.models.providers import Providers
from agent_core.models.vendors import VENDORS
from support.vendor_standins import KEY, THOUGHT, Json, StandIn, Turn, standing_in
from utools import ToolRegistry, tool

NAMES = ["openai", "gemini", "anthropic", "qwen", "deepseek", "openrouter"]


class Whole:
    """A model that is asked for whole replies."""

    def __init__(self, model: ModelClient) -> None:
        self._model = model

    async def complete(self, question: Question) -> Completion:
        return await self._model.complete(question)

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        yield await self._model.complete(question)

    def info(self) -> ModelInfo:
        return self._model.info()

    async def close(self) -> None:
        await self._model.close()


class Streamed(Whole):
    """A model whose replies are read as they are written; what it wrote must be what it said."""

    async def complete(self, question: Question) -> Completion:
        text = ""
        async for piece in self._model.stream(question):
            match piece:
                case Delta():
                    text = piece.text if piece.anew else text + piece.text
                case Completion():
                    assert text == piece.content
                    return piece
        raise AssertionError

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        yield await self.complete(question)


@tool(effect="read")
async def lookup(word: str) -> str:
    """Look a word up.

    Args:
        word: the word to look up
    """
    return f"{word} means house"


CONFIG: Json = {
    "max_steps": 8,
    "allowed_tools": ["lookup"],
    "prompt": "What is a casa?",
    "temperature": 0.5,
    "top_p": 0.9,
    "max_output_tokens": 500,
    "timeout": None,
}
ANSWER = "A house."
RIGHT, WRONG = {"word": "casa"}, {"word": 7}
SCRIPTS = {
    "json": [
        Turn('{"type":"action","tool":"lookup","args":{"word":"casa"}}'),
        Turn('{"type":"action","tool":"lookup","args":{"word":7}}'),
        Turn('{"type":"final","answer":"A house."}'),
    ],
    "tools": [
        Turn(calls=[("lookup", RIGHT), ("lookup", {"word": "maison"})]),
        Turn(calls=[("lookup", WRONG)]),
        Turn(ANSWER),
    ],
}


async def run(
    name: str, protocol: str, way: type[Whole], model: str = "m", api: str = "chat", **config: Any
) -> AgentOutput:
    client = way(Providers()(f"{name}:{model}", {"api": api}))
    try:
        given = {**CONFIG, "model": f"{name}:{model}", "protocol": protocol, **config}
        return await run_agent(given, registry=ToolRegistry([lookup]), model=client)
    finally:
        await client.close()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say where the vendor is, as its operator would."""

    def say(name: str, stand_in: StandIn, key: str = KEY) -> None:
        vendor = VENDORS[name]
        for variable in vendor.keys:
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv(vendor.keys[0], key)
        monkeypatch.setenv(vendor.url_env, stand_in.url)

    return say


@pytest.mark.parametrize("way", [Whole, Streamed])
@pytest.mark.parametrize("protocol", SCRIPTS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_run_ends_with_its_answer(name: str, protocol: str, way: type[Whole], at: Any) -> None:
    script = SCRIPTS[protocol]
    async with standing_in(name, *script) as stand_in:
        at(name, stand_in)
        output = await run(name, protocol, way)
    assert (output.error, output.finish_reason, output.final_answer) == (None, "final", ANSWER)
    assert [bool(step["error"]) for step in output.trace][-2:] == [True, False]
    assert output.used_tools["lookup"]["count"] == len(script[0].calls or [1])
    assert output.usage["input_tokens"] == 120 * len(script)
    assert output.usage["output_tokens"] == 30 * len(script)
    assert output.usage["requests"] == len(stand_in.asked) == len(script) + len(stand_in.refused)
    assert not output.usage["estimated"]


@pytest.mark.sampled
@pytest.mark.parametrize("way", [Whole, Streamed])
@pytest.mark.parametrize("protocol", SCRIPTS)
@pytest.mark.parametrize("name", NAMES)
async def test_what_was_refused_once_is_not_tried_again(name: str, protocol: str, way: type[Whole], at: Any) -> None:
    providers = Providers()
    async with standing_in(name, *SCRIPTS[protocol], *SCRIPTS[protocol]) as stand_in:
        at(name, stand_in)
        client = way(providers(f"{name}:m", {"api": "chat"}))
        given = {**CONFIG, "model": f"{name}:m", "protocol": protocol}
        registry = ToolRegistry([lookup])
        await run_agent(given, registry=registry, model=client)
        learnt = len(stand_in.refused)
        output = await run_agent(given, registry=registry, model=client)
        await client.close()
    assert output.finish_reason == "final"
    assert len(stand_in.refused) == learnt <= 3


LEARNT = {
    ("openai", "json"): ["max_completion_tokens", "'temperature' does not support", "Invalid schema"],
    ("gemini", "json"): [],
    ("gemini", "tools"): ['Unknown name "additionalProperties"'],
    ("anthropic", "json"): ["cannot both be specified"],
    ("qwen", "json"): ["enable_thinking must be set to false"],
    ("deepseek", "json"): [],
    ("openrouter", "json"): ["Provider returned error"],
}


@pytest.mark.parametrize(("name", "protocol"), LEARNT)
async def test_what_is_learnt_of_a_vendor_is_all_that_it_refuses(name: str, protocol: str, at: Any) -> None:
    async with standing_in(name, *SCRIPTS[protocol]) as stand_in:
        at(name, stand_in)
        await run(name, protocol, Whole)
    told = LEARNT[name, protocol]
    assert len(stand_in.refused) == len(told)
    assert all(words in refused for words, refused in zip(told, stand_in.refused, strict=True))


async def test_openai_itself_is_known_to_take_no_schema_and_no_max_tokens() -> None:
    async with standing_in("openai", *SCRIPTS["json"]) as stand_in:
        vendor = VENDORS["openai"]
        client = OpenAICompatible("gpt-5", base_url=stand_in.url, api_key=KEY, vendor=vendor)
        output = await run_agent({**CONFIG, "model": "gpt-5"}, registry=ToolRegistry([lookup]), model=client)
        await client.close()
    assert output.finish_reason == "final"
    assert [told.partition(" does")[0] for told in stand_in.refused] == ["Unsupported value: 'temperature'"]


@pytest.mark.parametrize("way", [Whole, Streamed])
@pytest.mark.parametrize("name", ["qwen", "deepseek"])
async def test_a_call_that_may_not_be_required_is_asked_for(name: str, way: type[Whole], at: Any) -> None:
    async with standing_in(name, *SCRIPTS["tools"]) as stand_in:
        at(name, stand_in)
        output = await run(name, "tools", way, tool_choice="required")
    assert output.finish_reason == "final"
    assert "tool_choice" not in stand_in.asked[-1]


@pytest.mark.parametrize("way", [Whole, Streamed])
@pytest.mark.parametrize("name", NAMES)
async def test_a_wrong_key_is_told_in_the_vendors_words_at_once(name: str, way: type[Whole], at: Any) -> None:
    async with standing_in(name, *SCRIPTS["json"]) as stand_in:
        at(name, stand_in, key="wrong-key")
        output = await run(name, "json", way)
    assert output.finish_reason == "model_error"
    assert output.error is not None
    assert stand_in.vendor.wrong_key.message in output.error["message"]
    assert len(stand_in.asked) == 1


@pytest.mark.parametrize("way", [Whole, Streamed])
async def test_the_vendors_own_cost_is_the_runs(way: type[Whole], at: Any) -> None:
    async with standing_in("openrouter", *SCRIPTS["json"]) as stand_in:
        at("openrouter", stand_in)
        output = await run("openrouter", "json", way)
    assert output.usage["cost"] == 0.75


@pytest.mark.parametrize("protocol", SCRIPTS)
async def test_what_a_model_thinks_is_no_part_of_its_answer(protocol: str, at: Any) -> None:
    async with standing_in("deepseek", *SCRIPTS[protocol]) as stand_in:
        at("deepseek", stand_in)
        output = await run("deepseek", protocol, Streamed)
    assert THOUGHT not in str(output.messages_json)


# ── the vendors themselves: pytest -m vendor ──────────────────────────────────────────────────────────

MODELS = {
    "openai": "gpt-4o-mini",
    "gemini": "gemini-2.5-flash",
    "anthropic": "claude-haiku-4-5",
    "qwen": "qwen-plus",
    "deepseek": "deepseek-chat",
    "openrouter": "openai/gpt-4o-mini",
}
APIS = [(name, api) for name in NAMES for api in ("chat", "native") if api == "chat" or name in NATIVE]


@pytest.mark.vendor
@pytest.mark.parametrize("way", [Whole, Streamed])
@pytest.mark.parametrize("protocol", SCRIPTS)
@pytest.mark.parametrize(("name", "api"), APIS)
async def test_the_vendor_itself_ends_a_run_with_its_answer(
    name: str, api: str, protocol: str, way: type[Whole]
) -> None:
    """AGENT_CORE_TEST_MODELS, `vendor=model,…`, chooses other models than these."""
    if not any(map(os.environ.get, VENDORS[name].keys)):
        pytest.skip(f"needs {' or '.join(VENDORS[name].keys)}")
    if api == "native":
        pytest.importorskip(NATIVE[name].package, reason=f"needs {NATIVE[name].package}")
    chosen = dict(pair.split("=", 1) for pair in os.environ.get("AGENT_CORE_TEST_MODELS", "").split(",") if pair)
    asked = {
        "prompt": "Look up the word casa with the tool, then answer in one sentence what it means.",
        "top_p": None,
        "max_repairs": 2,
        "single_call_timeout": 120,
    }
    output = await run(name, protocol, way, chosen.get(name, MODELS[name]), api, **asked)
    assert (output.error, output.finish_reason) == (None, "final")
    assert "house" in output.final_answer.lower()
    assert "lookup" in output.used_tools
    assert output.usage["input_tokens"] > 0
