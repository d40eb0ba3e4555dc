"""By which API a model is asked: its vendor's own where that can be spoken, else chat completions."""

import subprocess
import sys
from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent
from agent_core.errors import DefinitionError
from agent_core.models import apis
from agent_core.models.providers import Providers, create_model
from engine_shim.cli.doctor.definitions import _check_model
from support.optional import needs
from support.wires.installed import STAND_INS
from support.wires.serving import vendor
from support.wires.turn import KEY, Turn
from utools import ToolRegistry

pytestmark = needs("anthropic", "google.genai")
OWN, OTHER = "", "http://gateway.example/v1"


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apis, "is_installed", lambda package: package == "openai")


CHOICES = {
    "anthropic": ("anthropic:m", OWN, None, "messages"),
    "anthropic elsewhere": ("anthropic:m", OTHER, None, "messages"),
    "anthropic by chat": ("anthropic:m", OWN, "chat", "chat"),
    "gemini": ("gemini:m", OWN, None, "gemini"),
    "gemini elsewhere": ("gemini:m", OTHER, None, "gemini"),
    "openai": ("openai:m", OWN, None, "responses"),
    "openai by chat": ("openai:m", OWN, "chat", "chat"),
    "openai elsewhere": ("openai:m", OTHER, None, "chat"),
    "openai natively elsewhere": ("openai:m", OTHER, "native", "responses"),
    "a bare name": ("m", OWN, None, "responses"),
    "qwen": ("qwen:m", OWN, None, "chat"),
    "ollama": ("ollama:m", OWN, "chat", "chat"),
}


@pytest.mark.parametrize(("model", "url", "asked", "api"), CHOICES.values(), ids=CHOICES)
def test_api_of_a_model(model: str, url: str, asked: str | None, api: str) -> None:
    assert Providers().info(model, {"base_url": url, "api": asked}).api == api


@pytest.mark.parametrize(("model", "extra"), [("anthropic:m", "anthropic"), ("gemini:m", "gemini")])
def test_without_its_extra_a_model_is_asked_by_chat_completions(model: str, extra: str, without_extras: None) -> None:
    providers = Providers()
    assert providers.info(model, {}).api == "chat"
    assert providers.explain_api(model, {}) == f"pip install 'agent-core[{extra}]' has it asked by its vendor's own API"
    assert providers.explain_api(model, {"api": "chat"}) is None
    with pytest.raises(
        DefinitionError, match=rf"api: this needs the extra {extra}: pip install 'agent-core\[{extra}\]'"
    ):
        providers.check(model, {"api": "native"})


def test_a_vendor_without_an_api_of_its_own_is_not_asked_by_it() -> None:
    with pytest.raises(
        DefinitionError, match="api: deepseek: has no API of its own here, only anthropic:, gemini:, op"
    ):
        Providers().check("deepseek:m", {"api": "native"})


async def test_run_without_the_extra_says_which_to_install(without_extras: None) -> None:
    config = {"model": "anthropic:m", "api": "native", "max_steps": 1, "allowed_tools": [], "prompt": "x"}
    with pytest.raises(DefinitionError, match=r"pip install 'agent-core\[anthropic\]'"):
        await run_agent(config, registry=ToolRegistry([]))


@pytest.mark.parametrize("stand_in", STAND_INS, ids=lambda each: each.api)
async def test_the_record_of_a_run_says_which_api_was_asked(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    chosen = {"api": "native"} if stand_in.api == "responses" else {}
    async with vendor(stand_in, Turn('{"type":"final","answer":1}'), monkeypatch=monkeypatch) as endpoint:
        config = {"model": endpoint.model, "max_steps": 1, "allowed_tools": [], "prompt": "x", **chosen}
        await run_agent(config, registry=ToolRegistry([]), journal=journal, run_id="r")
    assert journal.load("r")["agent"][0].record()["api"] == stand_in.api


def test_doctor_says_which_api_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    found = _check_model(Providers(), "model", "anthropic:m", {})
    assert found.message == "anthropic:m: ANTHROPIC_API_KEY is set; asked by its vendor's own API, messages"
    assert (found.advice, found.facts["api"]) == ("", "messages")


def test_doctor_says_what_an_extra_would_give(monkeypatch: pytest.MonkeyPatch, without_extras: None) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    found = _check_model(Providers(), "model", "anthropic:m", {})
    assert found.message == "anthropic:m: ANTHROPIC_API_KEY is set"
    assert found.advice == "pip install 'agent-core[anthropic]' has it asked by its vendor's own API"


def test_making_native_clients_loads_no_sdk() -> None:
    code = (
        "import sys; from agent_core.models.providers import create_model as make;"
        "about = {'base_url': 'http://127.0.0.1:9', 'api_key': 'k', 'api': 'native'};"
        "[make(name, **about) for name in ('anthropic:m','gemini:m','openai:m')];"
        "print([m for m in ('anthropic', 'google.genai', 'openai', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_same_model_by_another_api_is_another_client() -> None:
    made = {api: create_model("anthropic:m", base_url=OTHER, api_key=KEY, api=api) for api in ("chat", "native")}
    assert made["chat"] is not made["native"]
    assert made["native"] is create_model("anthropic:m", base_url=OTHER, api_key=KEY)
