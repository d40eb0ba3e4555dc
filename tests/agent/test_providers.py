"""Which client a model's name gives, and where a key may go."""

import json
import struct
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agent_core.errors import DefinitionError
from agent_core.models import ModelClient, ModelError, ModelInfo, Question, ScriptedModel, create_model
from agent_core.models.apis import NATIVE
from agent_core.models.endpoint.address import mask, read_host
from agent_core.models.endpoint.client import EndpointClient
from agent_core.models.providers import Providers
from agent_core.models.vendors import VENDORS, vendor_url
from support.loopback import Loopback, chat, http, serving

KEYLESS = [name for name, vendor in VENDORS.items() if not vendor.needs_key]
KEYED = [name for name, vendor in VENDORS.items() if vendor.needs_key]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in VENDORS.values():
        for name in (*vendor.keys, vendor.url_env):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("OTHER_KEY", raising=False)


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


KEYLESS_ENDPOINT = {
    "unpaired": ("", "base_urls of the host's configuration pairs it with none"),
    "unset": ("OTHER_KEY", "OTHER_KEY is not set"),
}


@pytest.mark.parametrize(("paired", "reason"), KEYLESS_ENDPOINT.values(), ids=KEYLESS_ENDPOINT)
async def test_an_endpoint_that_wants_a_key_is_told_why_it_got_none(paired: str, reason: str) -> None:
    refusal = http(401, {"error": {"message": "who are you?"}})
    async with serving(refusal) as server:
        pairs = {server.url: paired} if paired else {}
        client = Providers(base_urls=pairs)("m", {"base_url": server.url})
        with pytest.raises(ModelError) as refused:
            await ask(client, server)
    assert str(refused.value).endswith(f"answered 401: who are you?; no key was sent, since {reason}")


async def test_a_refused_key_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "other-key")
    async with serving(http(401, {"error": {"message": "no such key"}})) as server:
        client = Providers(base_urls={server.url: "OTHER_KEY"})("m", {"base_url": server.url})
        with pytest.raises(ModelError) as refused:
            await ask(client, server)
    assert str(refused.value).endswith("answered 401: no such key")


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


# ── vendors ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", VENDORS)
async def test_a_vendors_key_goes_where_the_operator_says_the_vendor_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = VENDORS[name]
    async with serving(chat("ok")) as server:
        monkeypatch.setenv(vendor.url_env, server.url.removesuffix("/v1"))
        monkeypatch.setenv(vendor.keys[0], "own-key")
        assert await ask(Providers()(f"{name}:m", {"api": "chat"}), server) == ("m", "Bearer own-key")
    assert server.requests[-1].target == f"{vendor.path}/chat/completions"


@pytest.mark.parametrize("name", VENDORS)
async def test_no_vendors_key_goes_to_a_base_url_that_an_author_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for vendor in VENDORS.values():
        for key in vendor.keys:
            monkeypatch.setenv(key, "own-key")
    async with serving(chat("ok")) as server:
        options = {"base_url": server.url, "api": "chat"}
        assert await ask(Providers()(f"{name}:m", options), server) == ("m", None)


@pytest.mark.parametrize("name", NATIVE)
async def test_a_vendors_own_api_is_sent_no_more_keys_than_chat_completions(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(NATIVE[name].package)
    monkeypatch.setenv(VENDORS[name].keys[0], "own-key")
    async with serving(http(400, {"error": {"message": "no"}})) as named, serving(http(400, {})) as own:
        monkeypatch.setenv(VENDORS[name].url_env, own.url.removesuffix("/v1"))
        for options in ({"base_url": named.url, "api": "native"}, {"api": "native"}):
            with pytest.raises(ModelError):
                await ask(Providers()(f"{name}:m", options), named)
    holds_key = ["own-key" in str(server.requests[-1].headers) for server in (named, own)]
    assert holds_key == [False, True]
    assert not any("own-key" in server.requests[-1].target for server in (named, own))


@pytest.mark.parametrize("name", VENDORS)
def test_an_author_cannot_name_a_vendors_key_for_a_base_url(name: str) -> None:
    options = {"base_url": "https://evil.example/v1", "api_key_env": VENDORS[name].keys[0]}
    with pytest.raises(DefinitionError, match="api_key_env"):
        Providers().check(f"{name}:m", options)


LOOKALIKES = [
    "http://api.openai.com/v1",
    "https://api.openai.com:444/v1",
    "https://api.openai.com/v1/../evil",
    "https://api.openai.com.evil.example/v1",
    "https://api.openai.com/v1/x",
]


@pytest.mark.parametrize("url", LOOKALIKES)
def test_what_only_looks_like_the_vendor_gets_no_key(url: str) -> None:
    with pytest.raises(DefinitionError, match="api_key_env"):
        Providers().check("openai:m", {"base_url": url, "api_key_env": "OPENAI_API_KEY"})


@pytest.mark.parametrize("name", VENDORS)
def test_every_address_of_a_vendor_is_the_vendor(name: str) -> None:
    for url in VENDORS[name].urls:
        Providers().check(f"{name}:m", {"base_url": url + "/", "api_key_env": VENDORS[name].keys[0]})


@pytest.mark.parametrize("name", KEYED)
def test_a_vendor_without_a_key_says_which_to_set(name: str) -> None:
    with pytest.raises(DefinitionError, match=" or ".join(VENDORS[name].keys)):
        create_model(f"{name}:m")


@pytest.mark.parametrize("name", KEYLESS)
def test_a_server_on_this_machine_needs_no_key(name: str) -> None:
    assert isinstance(create_model(f"{name}:m"), EndpointClient)


async def test_the_second_name_of_a_key_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "second")
    async with serving(chat("ok")) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        assert await ask(Providers()("gemini:g", {"api": "chat"}), server) == ("g", "Bearer second")
        monkeypatch.setenv("GEMINI_API_KEY", "first")
        assert await ask(Providers()("gemini:g", {"api": "chat"}), server) == ("g", "Bearer first")
        options = {"api_key_env": "GOOGLE_API_KEY", "api": "chat"}
        assert await ask(Providers()("gemini:g", options), server) == ("g", "Bearer second")


NAMES = {
    "ollama:qwen2.5:0.5b": "qwen2.5:0.5b",
    "openrouter:meta-llama/llama-3-8b:free": "meta-llama/llama-3-8b:free",
    "vllm:Qwen/Qwen2.5-0.5B": "Qwen/Qwen2.5-0.5B",
}


@pytest.mark.parametrize("model", NAMES)
async def test_a_models_name_may_hold_colons_and_slashes(model: str) -> None:
    async with serving(chat("ok")) as server:
        assert await ask(Providers()(model, {"base_url": server.url}), server) == (NAMES[model], None)


OLLAMA = {
    "": "http://127.0.0.1:11434/v1",
    "gpu1": "http://gpu1:11434/v1",
    "0.0.0.0": "http://127.0.0.1:11434/v1",
    "[::1]": "http://[::1]:11434/v1",
    "0.0.0.0:8080": "http://127.0.0.1:8080/v1",
    "https://gpu1/": "https://gpu1/v1",
    "http://gpu1:8080/v1": "http://gpu1:8080/v1",
}


@pytest.mark.parametrize("told", OLLAMA)
def test_where_ollama_is_may_be_told_as_ollama_takes_it(told: str) -> None:
    assert vendor_url(VENDORS["ollama"], {"OLLAMA_HOST": told}) == OLLAMA[told]


def test_an_unknown_provider_is_told_which_there_are() -> None:
    with pytest.raises(DefinitionError, match="antropic:c") as caught:
        create_model("antropic:c")
    assert all(name in str(caught.value) for name in (*VENDORS, "scripted:FILE", "replay:RUN", "base_url"))


def test_a_default_provider_that_there_is_not_is_told() -> None:
    with pytest.raises(DefinitionError, match="no such provider: antropic"):
        Providers(default_provider="antropic").check("m", {})


# ── what is known without a key ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", VENDORS)
def test_a_check_needs_no_key(name: str) -> None:
    Providers().check(f"{name}:m", {})


FAULTS: dict[str, tuple[str, dict[str, str]]] = {
    "no such provider": ("antropic:c", {}),
    "no such script": ("scripted:nowhere.json", {}),
    "no such recorded run": ("replay:nowhere", {}),
    "no such model file": ("local:nowhere.gguf", {}),
    "base_url": ("openai:m", {"base_url": "localhost:11434"}),
    "api_key_env": ("openai:m", {"api_key_env": "OTHER_KEY"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_check_finds_what_needs_no_key_to_be_wrong(name: str, tmp_path: Path) -> None:
    model, options = FAULTS[name]
    with pytest.raises(DefinitionError, match=name.replace("no such script", "the script")):
        Providers(tmp_path).check(model, options)


def test_what_is_known_of_a_model_needs_no_key() -> None:
    known = Providers().info("ollama:qwen2.5:0.5b", {})
    assert (known.name, known.json_schema, known.streaming, known.function_calling) == (
        "qwen2.5:0.5b",
        True,
        True,
        None,
    )
    assert Providers().info("deepseek:deepseek-chat", {}).json_schema is False
    assert Providers().info("gpt-4o", {}).function_calling is True


NO_MODELS = {
    "empty": b"",
    "other": b'["a script"]',
    "older format": b"ggjt" + bytes(28),
    "cut": b"GGUF" + bytes(3),
}


@pytest.mark.parametrize("content", NO_MODELS.values(), ids=NO_MODELS)
def test_a_check_finds_a_file_that_is_no_gguf(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(DefinitionError, match=r"not a sound GGUF file.*m\.gguf"):
        Providers(tmp_path).check("local:m.gguf", {})


def test_a_check_takes_a_gguf_without_the_extra_that_runs_it(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    Providers(tmp_path).check("local:m.gguf", {})


ENDPOINTS = {
    "none is named": ({}, {}, True),
    "the vendor's own": ({"base_url": "https://api.openai.com/v1/"}, {}, True),
    "one's own": ({"base_url": "http://gateway.example/v1"}, {}, False),
    "the operator's": ({}, {"OPENAI_BASE_URL": "http://gateway.example/v1"}, False),
    "one's own, with its key": ({"base_url": "http://gateway.example/v1", "api_key_env": "OTHER_KEY"}, {}, False),
}


@pytest.mark.parametrize(("options", "environment", "known"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_nothing_is_known_of_a_model_behind_an_endpoint_that_is_not_its_vendors(
    options: dict[str, str], environment: dict[str, str], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("genai_prices")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = Providers(base_urls={"http://gateway.example/v1": "OTHER_KEY"}).info("openai:gpt-4", options)
    neither: Any = {"json_schema": False, "reasoning": False, "vision": False, "caching": False}
    its_vendors = ModelInfo("gpt-4", 8192, function_calling=True, streaming=True, api="responses", **neither)
    assert found == (its_vendors if known else ModelInfo("gpt-4", api="chat"))


@pytest.mark.parametrize(("asked", "api"), [(None, "chat"), ("chat", "chat"), ("native", "responses")])
def test_a_client_says_by_which_api_it_asks(asked: Any, api: str) -> None:
    client = create_model("openai:m", base_url="http://gateway.example/v1", api_key="k", api=asked)
    assert client.info().api == api


# ── clients ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_bare_name_belongs_to_the_default_provider(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text(json.dumps(["hello"]))
    assert isinstance(Providers(tmp_path, default_provider="scripted")("replies.json", {}), ScriptedModel)
    assert isinstance(Providers(tmp_path)("scripted:replies.json", {}), ScriptedModel)


def test_a_client_is_made_once_for_each_endpoint() -> None:
    providers = Providers()
    first = providers("openai:m", {"base_url": "http://a/v1"})
    assert isinstance(first, EndpointClient)
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


ECHOED: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "base64 with a name": lambda key: b64encode(f"user:{key}".encode()).decode(),
    "URL-encoded": partial(quote, safe=""),
    "JSON of PHP": lambda key: json.dumps({"key": key}).replace("/", "\\/"),
    "HTML": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "hex": lambda key: key.encode().hex(),
    "a dump of headers": lambda key: str([(b"authorization", f"Bearer {key}".encode())]),
}


@pytest.mark.parametrize("encode", ECHOED.values(), ids=ECHOED)
def test_key_that_a_vendor_echoes_is_shown_in_no_encoding(encode: Callable[[str], str]) -> None:
    key = "gw/Zx9+Ab3cd==Qq7_w"
    shown = mask(key, f"the key {encode(key)} is none")
    assert shown.startswith("the key ")
    assert shown.endswith(" is none")
    assert "***" in shown
    assert encode(key)[-12:-4] not in shown


@pytest.mark.parametrize("model", ["openai:", "ollama: ", "scripted:", ""])
def test_model_without_a_name_is_refused(model: str) -> None:
    with pytest.raises(DefinitionError, match=r"^model: names no model; write \w+:(NAME|FILE\.json) \(got "):
        Providers().check(model, {})
    if not model.startswith("scripted"):
        with pytest.raises(DefinitionError, match="names no model; write"):
            create_model(model, api_key="a-key-of-mine")


def test_address_of_ipv6_is_shown_in_brackets() -> None:
    assert [read_host(f"http://[::1]{port}/v1") for port in (":8000", "")] == ["[::1]:8000", "[::1]"]


@pytest.mark.parametrize(("name", "shown"), [("", ""), ("user:", "dXNlcjp")])
def test_beginning_of_a_key_in_base64_is_not_shown_at_the_end(name: str, shown: str) -> None:
    key = "sk-abcdefghijklmnop1234567890"
    begun = b64encode(f"{name}{key}".encode()).decode()[:24]
    assert mask(key, f"401: the login {begun}") == f"401: the login {shown}***"
