"""What a reply costs: by the vendor's word, by the price list, or nobody knows."""

import socket
import subprocess
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from agent_core.models import Question
from agent_core.models.openai.client import OpenAICompatible
from agent_core.models.price_list import _load as load_list
from agent_core.models.price_list import find_listed, listed_cost
from agent_core.models.prices import context_window, cost, output_limit
from agent_core.models.vendors import VENDORS, Vendor
from support.loopback import chat, serving

OWN, AS_OF, SOURCE = load_list()["vendors"], load_list()["as_of"], "0.2.3"
genai_prices = pytest.importorskip("genai_prices")

PRICED = {
    "plain rates": ("openai", "gpt-4o-mini", 1000, 0, 100),
    "some of it cached": ("openai", "gpt-4o-mini", 1000, 400, 100),
    "no rate for the cache": ("openai", "gpt-4", 1000, 400, 100),
    "below a tier": ("google", "gemini-2.5-pro", 1000, 400, 100),
    "above a tier": ("google", "gemini-2.5-pro", 300_000, 1000, 100),
    "rates that changed": ("deepseek", "deepseek-chat", 1000, 400, 100),
    "nothing read": ("anthropic", "claude-sonnet-4-5", 0, 0, 0),
    "through a router": ("openrouter", "meta-llama/llama-3-8b-instruct", 1000, 0, 100),
}


@pytest.mark.parametrize(("vendor", "model", "given", "cached", "got"), PRICED.values(), ids=PRICED)
def test_a_cost_is_what_the_price_list_says(vendor: str, model: str, given: int, cached: int, got: int) -> None:
    usage = genai_prices.Usage(input_tokens=given, cache_read_tokens=cached, output_tokens=got)
    listed = genai_prices.calc_price(usage, model, provider_id=vendor).total_price
    assert cost(vendor, model, given, cached, got) == pytest.approx(float(listed))


UNKNOWN: dict[str, tuple[str, str, int | None, int, int | None]] = {
    "a vendor that is not listed": ("", "qwen-plus", 1, 0, 1),
    "a vendor that the list does not know": ("nobody", "m", 1, 0, 1),
    "a model that is not listed": ("openai", "no-such-model", 1, 0, 1),
    "no count of what was read": ("openai", "gpt-4o-mini", None, 0, 1),
    "no count of what was written": ("openai", "gpt-4o-mini", 1, 0, None),
}


@pytest.mark.parametrize(("vendor", "model", "given", "cached", "got"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_has_no_cost(
    vendor: str, model: str, given: int | None, cached: int, got: int | None
) -> None:
    assert cost(vendor, model, given, cached, got) is None


def test_more_cached_than_read_costs_no_less_than_nothing() -> None:
    assert (cost("openai", "gpt-4o-mini", 10, 1000, 0) or 0.0) > 0


def test_the_context_window_is_told_where_it_is_known() -> None:
    assert context_window("openai", "gpt-4o-mini") == 128_000
    assert context_window("google", "models/gemini-2.5-flash") == 1_048_576
    assert context_window("openai", "no-such-model") is None


def test_every_vendor_that_names_its_list_is_in_one() -> None:
    listed = {provider.id for provider in genai_prices.data_snapshot.get_snapshot().providers}
    assert {vendor.prices for vendor in VENDORS.values()} - {""} <= listed | OWN.keys()


OWN_PRICED = {
    "by its name": ("openai", "gpt-4o-mini", 1000, 400, 0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.6),
    "by its date": ("openai", "gpt-4o-mini-2024-07-18", 1000, 0, 0.15 + 0.1 * 0.6),
    "no rate for the cache": ("openai", "gpt-4", 1000, 400, 30 + 0.1 * 60),
    "below a tier": ("google", "models/gemini-2.5-pro", 200_000, 0, 200 * 1.25 + 0.1 * 10),
    "above a tier": ("google", "gemini-2.5-pro", 200_001, 0, 200.001 * 2.5 + 0.1 * 15),
    "qwen": ("qwen", "qwen-turbo-latest", 1000, 0, 0.05 + 0.1 * 0.2),
}


@pytest.mark.parametrize(("vendor", "model", "given", "cached", "thousandth"), OWN_PRICED.values(), ids=OWN_PRICED)
def test_common_models_have_a_price_of_our_own(
    vendor: str, model: str, given: int, cached: int, thousandth: float
) -> None:
    assert listed_cost(vendor, model, given, cached, 100) == pytest.approx(thousandth / 1000)


@pytest.mark.parametrize("vendor", [name for name in OWN if name not in ("qwen", "ollama")])
def test_our_own_prices_are_those_of_the_library_they_come_from(vendor: str) -> None:
    """At noon: some vendors take less at night."""
    if version("genai-prices") != SOURCE:
        return
    provider = next(each for each in genai_prices.data_snapshot.get_snapshot().providers if each.id == vendor)
    for name, figures in OWN[vendor].items():
        model = provider.find_model(name) or provider.find_model(f"{name}-preview")
        prices = model.get_prices(datetime.fromisoformat(f"{AS_OF}T12:00:00Z"))
        for ours, theirs in {"input": prices.input_mtok, "output": prices.output_mtok}.items():
            first = figures[ours] if isinstance(figures[ours], float | int) else figures[ours][0][1]
            assert first == float(getattr(theirs, "base", theirs)), name


def test_a_name_is_found_by_the_longest_that_it_begins_with() -> None:
    assert find_listed("ollama", "qwen2.5:0.5b")["window"] == 32_768
    assert find_listed("openai", "gpt-4o-mini-2024-07-18") == OWN["openai"]["gpt-4o-mini"]
    assert find_listed("openai", "gpt-4.5") == find_listed("openai", "gpt-40") == {}
    assert (context_window("qwen", "qwen-turbo"), output_limit("qwen", "qwen-turbo")) == (131_072, 16_384)


def test_prices_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a price was looked up on the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    assert cost("openai", "gpt-4o", 1000, 0, 100)


def test_without_the_library_our_own_list_is_asked() -> None:
    code = (
        "import sys; sys.modules['genai_prices'] = None\n"
        "from agent_core.models.prices import context_window, cost\n"
        "print(cost('openai', 'gpt-4o-mini', 10**6, 0, 0), context_window('openai', 'gpt-4o-mini'))\n"
        "print(cost('openai', 'x', 1, 0, 1))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.15 128000\nNone"


async def priced(vendor: Vendor | None, usage: dict[str, Any], name: str = "gpt-4o-mini") -> float | None:
    async with serving(chat("ok", usage=usage)) as server:
        model = OpenAICompatible(name, base_url=server.url, api_key=None, vendor=vendor)
        try:
            return (await model.complete(Question("m", (), {}, "agent", 0))).cost
        finally:
            await model.close()


async def test_a_reply_has_the_cost_of_its_tokens() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    assert await priced(VENDORS["openai"], usage) == pytest.approx(cost("openai", "gpt-4o-mini", 1000, 400, 100))
    assert await priced(None, usage) is None


async def test_what_deepseek_had_in_its_cache_is_cheaper() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_cache_hit_tokens": 900}
    listed = cost("deepseek", "deepseek-v4-flash", 1000, 900, 100)
    assert await priced(VENDORS["deepseek"], usage, "deepseek-v4-flash") == pytest.approx(listed)
    assert (listed or 0.0) < (cost("deepseek", "deepseek-v4-flash", 1000, 0, 100) or 0.0)


async def test_the_vendors_own_word_wins() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.25}
    assert await priced(VENDORS["openai"], usage) == 0.25


def test_tokens_from_a_cache_and_to_it_have_their_own_prices() -> None:
    """Of claude-opus-4-6, for a million: 5 USD for input, 0.5 from the cache, 6.25 to it, 25 for output."""
    expected = (100 * 5 + 700 * 0.5 + 200 * 6.25 + 40 * 25) / 1_000_000
    assert listed_cost("anthropic", "claude-opus-4-6", 1000, 700, 40, 200) == pytest.approx(expected)
    assert cost("anthropic", "claude-opus-4-6", 1000, 700, 40, 200) == pytest.approx(expected)
    assert listed_cost("anthropic", "claude-opus-4-6", 1000, 0, 0, 0) == pytest.approx(1000 * 5 / 1_000_000)
