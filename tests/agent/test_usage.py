"""What a reply has used: a count that cannot be true is estimated, and says so."""

from typing import Any

import pytest

from agent_core import run_agent
from agent_core.models import Completion, Question, ScriptedModel
from agent_core.models.openai.client import OpenAICompatible
from agent_core.models.usage import Counted, count_usage, merge_usage, read_vendor_usage
from agent_core.models.vendors import VENDORS
from support.asking import MESSAGES, client
from support.loopback import Reply, chat, events, piece, serving
from utools import ToolRegistry

TEXT = "Twelve pieces are left, as far as the list goes."


def usage(prompt: Any, completion: Any, total: Any = None, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 40}}
CACHED = {"prompt_tokens_details": {"cached_tokens": 900}}
COUNTS: dict[str, tuple[Any, tuple[int | None, int | None, bool]]] = {
    "whole": (usage(1000, 50, 1050), (1000, 50, False)),
    "without a total": (usage(1000, 50), (1000, 50, False)),
    "thoughts counted in": (usage(1000, 50, 1050, **THOUGHT), (1000, 50, False)),
    "thoughts named beside": (usage(1000, 50, 1090, **THOUGHT), (1000, 90, False)),
    "thoughts in the total alone": (usage(1000, 50, 1400), (1000, 400, True)),
    "a total that is too small": (usage(1000, 50, 7), (1000, 50, True)),
    "a total of 0": (usage(1000, 50, 0), (1000, 50, True)),
    "zeros": (usage(0, 0, 0), (None, 0, False)),
    "no prompt": (usage(0, 5), (None, 5, False)),
    "no prompt, but a total": (usage(0, 5, 1005), (1000, 5, True)),
    "no completion, but a total": (usage(1000, None, 1005), (1000, 5, True)),
    "more cached than read": (usage(100, 50, 150, **CACHED), (1000, 50, True)),
    "negative": (usage(-3, -1, -4), (None, None, False)),
    "floats": (usage(12.0, 5.0), (None, None, False)),
    "texts": (usage("12", "5"), (None, None, False)),
    "truths": (usage(True, True), (None, None, False)),
    "nothing": (None, (None, None, False)),
    "a list": ([], (None, None, False)),
}


@pytest.mark.parametrize(("given", "expected"), COUNTS.values(), ids=COUNTS)
def test_a_vendors_count_is_taken_where_it_can_be_true(given: Any, expected: tuple[Any, ...]) -> None:
    counted = read_vendor_usage(given)
    assert (counted.inputs, counted.outputs, counted.doubtful) == expected


APART: dict[str, tuple[dict[str, Any], tuple[int, int, int]]] = {
    "OpenAI": (CACHED, (900, 0, 0)),
    "DeepSeek": ({"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}, (900, 0, 0)),
    "Moonshot": ({"cached_tokens": 900}, (900, 0, 0)),
    "a gateway's empty details": ({"prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 900}, (900, 0, 0)),
    "OpenRouter": ({"prompt_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 800}}, (9, 800, 0)),
    "Qwen": ({"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 800}}, (0, 800, 0)),
    "LiteLLM": ({"prompt_tokens_details": {"cache_creation_tokens": 800}}, (0, 800, 0)),
    "SGLang": ({"reasoning_tokens": 40, "prompt_tokens_details": None}, (0, 0, 40)),
}


@pytest.mark.parametrize(("more", "expected"), APART.values(), ids=APART)
def test_tokens_are_counted_apart_in_the_places_of_each_vendor(
    more: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    counted = read_vendor_usage(usage(1000, 50, 1050, **more))
    assert (counted.cached, counted.written, counted.reasoning) == expected
    assert not counted.doubtful


def test_a_cost_of_nothing_counted_is_none() -> None:
    assert read_vendor_usage(usage(0, 0, 0, cost=0)).cost is None
    assert read_vendor_usage(usage(0, 0, 0, cost=0.5)).cost == 0.5
    assert read_vendor_usage(usage(9, 1, 10, cost=0)) == Counted(9, 1, 0, 0.0, False)


def test_only_a_reply_without_text_has_no_output() -> None:
    assert count_usage(Completion("", "stop", 10, 0), 99)["estimated"] is False
    for completion in (Completion("x", "stop", 10, 0), Completion("", "stop", 10, 0, calls=({"arguments": "{}"},))):
        used = count_usage(completion, 99)
        assert (used["input_tokens"], used["output_tokens"] > 0, used["estimated"]) == (10, True, True)


def test_a_later_chunk_does_not_erase_what_was_counted() -> None:
    whole = usage(1000, 2, 1002)
    assert merge_usage(whole, usage(0, 0, 0)) == {"prompt_tokens": 1000, "completion_tokens": 2}
    assert merge_usage(usage(1000, 1, 1001), whole) == whole
    assert merge_usage(usage(1000, 1, 1001), {"completion_tokens": 9}) == {
        "prompt_tokens": 1000, "completion_tokens": 9
    }  # fmt: skip
    assert merge_usage({**whole, **CACHED}, {**whole, "prompt_tokens_details": {"cached_tokens": 0}}) == {
        **whole, **CACHED
    }  # fmt: skip
    for nothing in (None, {}, [], "x"):
        assert merge_usage(whole, nothing) == whole
        assert merge_usage(None, whole) == whole


# ── a whole run ───────────────────────────────────────────────────────────────────────────────────


async def spent(*replies: Reply, streamed: bool = False, **config: Any) -> Any:
    listen: Any = {"on_event": lambda event: None} if streamed else {}
    async with serving(*replies) as server:
        model = client(server.url)
        given = {"model": "m", "max_steps": 2, "prompt": "How many?", "allowed_tools": [], "protocol": "tools"}
        output = await run_agent({**given, **config}, registry=ToolRegistry([]), model=model, **listen)
        await model.close()
    return output.usage


@pytest.mark.parametrize(
    "given",
    [usage(0, 0, 0), usage("9", "9"), usage(-1, -1), {}, None],
    ids=["zeros", "texts", "negative", "{}", "none"],
)
async def test_a_run_is_estimated_where_its_vendor_counts_nothing(given: Any) -> None:
    used = await spent(chat(TEXT, usage=given))
    assert used["estimated"] is True
    assert used["input_tokens"] > 10
    assert used["output_tokens"] == pytest.approx(len(TEXT) / 4, abs=2)


@pytest.mark.parametrize("vendor", ["Moonshot", "Groq"])
async def test_a_streams_count_may_stand_beside_its_own_field(vendor: str) -> None:
    count, last = usage(1000, 12, 1012), piece(finish_reason="stop")
    if vendor == "Moonshot":
        last["choices"][0]["usage"] = count
    else:
        last["x_groq"] = {"id": "req_1", "usage": count}
    used = await spent(events(piece(TEXT), last), streamed=True)
    assert (used["input_tokens"], used["output_tokens"], used["estimated"]) == (1000, 12, False)


async def test_a_streams_last_chunk_of_zeros_is_not_its_count() -> None:
    stream = events(
        {**piece(TEXT), "usage": usage(1000, 12, 1012)}, {**piece(finish_reason="stop"), "usage": usage(0, 0, 0)}
    )
    used = await spent(stream, streamed=True)
    assert (used["input_tokens"], used["output_tokens"], used["estimated"]) == (1000, 12, False)
    used = await spent(events({**piece(TEXT), "usage": usage(0, 0, 0)}, piece(finish_reason="stop")), streamed=True)
    assert (used["input_tokens"] > 10, used["output_tokens"] > 5, used["estimated"]) == (True, True, True)


async def test_zeros_reach_the_token_budget() -> None:
    replies = [{"content": "hm", "usage": {"input_tokens": 0, "output_tokens": 0}}] * 9
    config = {"model": "m", "max_steps": 9, "max_repairs": 9, "prompt": "Go.", "allowed_tools": []}
    output = await run_agent(
        {**config, "total_token_budget": 1500}, registry=ToolRegistry([]), model=ScriptedModel(replies)
    )
    assert output.finish_reason == "token_budget"
    assert 0 < output.usage["total_tokens"] <= 1500


async def test_an_estimate_has_its_cost() -> None:
    async with serving(chat(TEXT, usage=usage(0, 0, 0, cost=0))) as server:
        model = OpenAICompatible("gpt-4o-mini", base_url=server.url, api_key=None, vendor=VENDORS["openai"])
        completion = await model.complete(Question("openai:gpt-4o-mini", MESSAGES, {}, "agent", 0))
        await model.close()
    assert (completion.cost or 0.0) > 0


async def test_tokens_that_are_counted_apart_add_up_over_a_run() -> None:
    usage = {
        "input_tokens": 90,
        "output_tokens": 20,
        "cached_tokens": 60,
        "cache_write_tokens": 9,
        "reasoning_tokens": 7,
    }
    replies = [{"content": "no JSON", "usage": usage}, {"content": '{"type":"final","answer":1}', "usage": usage}]
    config = {"model": "m", "max_steps": 3, "allowed_tools": [], "prompt": "x"}
    output = await run_agent(config, registry=ToolRegistry([]), model=ScriptedModel(replies))
    names = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
    assert {name: output.usage[name] for name in names} == {name: 2 * usage[name] for name in names}
