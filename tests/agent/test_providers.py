"""Which client a model's name gives, and where a key may go."""

import json
from pathlib import Path

import pytest
from loopback import Loopback, chat, serving

from agent_core.errors import DefinitionError
from agent_core.models import ModelClient, Question, ScriptedModel, create_model
from agent_core.models.openai_compatible import OpenAICompatible
from agent_core.models.providers import Providers


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)


async def ask(client: ModelClient, server: Loopback) -> tuple[str, str | None]:
    """The model's name and the key that the endpoint received."""
    try:
        await client.complete(Question("m", (b'{"role":"user","content":"hi"}',), {}, "agent", 0))
    finally:
        await client.close()
    request = server.requests[-1]
    return request.json()["model"], request.headers.get("authorization")


async def test_own_key_goes_to_the_endpoint_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(chat("ok")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "own-key")
        assert await ask(Providers()("gpt-4o", {}), server) == ("gpt-4o", "Bearer own-key")
        assert await ask(Providers()("openai:gpt-4o", {"base_url": server.url + "/"}), server) == (
            "gpt-4o",
            "Bearer own-key",
        )


async def test_own_key_does_not_go_to_another_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "own-key")
    async with serving(chat("ok")) as server:
        assert await ask(Providers()("openai:qwen3:8b", {"base_url": server.url}), server) == ("qwen3:8b", None)
        assert await ask(create_model("openai:m", base_url=server.url), server) == ("m", None)


async def test_a_paired_key_goes_to_its_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "other-key")
    async with serving(chat("ok")) as server:
        providers = Providers(base_urls={server.url: "OTHER_KEY"})
        options = {"base_url": server.url, "api_key_env": "OTHER_KEY"}
        assert await ask(providers("openai:m", options), server) == ("m", "Bearer other-key")


async def test_a_key_that_the_caller_gives_goes_where_the_caller_says() -> None:
    async with serving(chat("ok")) as server:
        assert await ask(create_model("openai:m", base_url=server.url, api_key="k1"), server) == ("m", "Bearer k1")
        client = create_model("qwen3:8b", base_url=server.url, api_key="k2")
        assert await ask(client, server) == ("qwen3:8b", "Bearer k2")


@pytest.mark.parametrize("base_url", ["https://api.openai.com/v1", "https://evil.example/v1"])
def test_a_config_cannot_send_a_key_that_is_not_paired(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "own-key")
    with pytest.raises(DefinitionError, match="api_key_env"):
        Providers()("openai:m", {"base_url": base_url, "api_key_env": "OTHER_KEY"})


@pytest.mark.parametrize("base_url", [None, "https://api.openai.com/v1", "https://api.openai.com/v1/"])
def test_openai_without_a_key_says_which_to_set(base_url: str | None) -> None:
    with pytest.raises(DefinitionError, match="set OPENAI_API_KEY"):
        create_model("openai:gpt-4o", base_url=base_url)


def test_an_unknown_provider_is_refused_by_name() -> None:
    with pytest.raises(DefinitionError, match="antropic:c"):
        create_model("antropic:c")


def test_a_bare_name_belongs_to_the_default_provider(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text(json.dumps(["hello"]))
    assert isinstance(Providers(tmp_path, default_provider="scripted")("replies.json", {}), ScriptedModel)
    assert isinstance(Providers(tmp_path)("scripted:replies.json", {}), ScriptedModel)


def test_a_client_is_made_once_for_each_endpoint() -> None:
    providers = Providers()
    first = providers("openai:m", {"base_url": "http://a/v1"})
    assert isinstance(first, OpenAICompatible)
    assert providers("m", {"base_url": "http://a/v1"}) is first
    assert providers("m", {"base_url": "http://b/v1"}) is not first


async def test_closing_the_providers_closes_their_connections() -> None:
    async with serving(chat("ok")) as server:
        providers = Providers()
        client = providers("m", {"base_url": server.url})
        question = Question("m", (b'{"role":"user","content":"hi"}',), {}, "agent", 0)
        await client.complete(question)
        await providers.close()
        await providers.close()
        await client.complete(question)
        await providers.close()
    assert server.connections == 2
