"""What only a vendor understands, in the journal: after a crash, in a fork, with another API meanwhile, masked."""

from typing import Any

import orjson
import pytest

from agent_core import AgentOutput, MemoryJournal, replay, run_agent, verify
from agent_core.audit.fork import fork_rows
from agent_core.journal.record import Row
from agent_core.loop.agent import AGENT_LOOPS
from support.wires import chat
from support.wires.clients import CALL, CONFIG, THOUGHT, client_of, each_native, each_way, lookup, replies_in, run
from support.wires.serving import Vendor, vendor
from support.wires.turn import Turn, WireStandIn
from utools import ToolRegistry

SECOND = Turn(thought=THOUGHT, calls=[("lookup", {"word": "Haus"})])
SCRIPT = [CALL, SECOND, Turn("A house.")]


def questions(journal: MemoryJournal, run_id: str = "r") -> list[Row]:
    """The rows in which the model is asked."""
    rows = journal.load(run_id)["agent"]
    return [row for row in rows if row.kind == "asked" and row.record()["ask"] == "model"]


def cut(journal: MemoryJournal, last: int) -> MemoryJournal:
    """The journal of a process that has died after this row of the agent."""
    torn, tape = MemoryJournal(), journal.load("r")
    torn.append("r", [row for name in tape for row in tape[name] if name != "agent" or row.n <= last])
    return torn


async def go_on(endpoint: Vendor, journal: MemoryJournal, run_id: str = "r", **config: Any) -> AgentOutput:
    model: Any = client_of(endpoint)
    given = {**CONFIG, "model": "openai:m1", "protocol": "tools", **config}
    try:
        return await run_agent(given, registry=ToolRegistry([lookup]), model=model, journal=journal, run_id=run_id)
    finally:
        await model.close()


@each_native
async def test_a_batch_that_a_crash_has_cut_goes_back_with_its_own_parts(stand_in: WireStandIn) -> None:
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPT) as endpoint:
        await go_on(endpoint, journal)
        second = endpoint.asked[1]
    tape = journal.load("r")
    batch = next(row.n for row in tape["agent"] if row.kind == "asked" and row.record()["ask"] == "batch")
    for size in (0, 1):  # of the second call nothing is recorded, or that it was begun
        rows = [*tape["agent"][: batch + 1], *tape[f"agent/{batch}.0"], *tape[f"agent/{batch}.1"][:size]]
        torn = MemoryJournal()
        torn.append("r", rows)
        async with vendor(stand_in, Turn("A house.")) as endpoint:
            output = await go_on(endpoint, torn)
        assert output.final_answer == "A house."
        assert endpoint.asked == [second]
        assert verify(torn, run_id="r").ok
        assert replay(torn, run_id="r").identical


@each_native
async def test_a_fork_sends_the_own_parts_of_the_run_that_it_is_of(stand_in: WireStandIn) -> None:
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPT) as endpoint:
        await go_on(endpoint, journal)
        whole = endpoint.asked[-1]
        last = questions(journal)[-1].n
        rows = fork_rows("r", journal.load("r"), [("agent", last)], "f", loops=AGENT_LOOPS, at="2027-01-01T00:00:00Z")
        journal.append("f", rows)
        output = await go_on(endpoint, journal, "f")
    assert output.final_answer == "A house."
    assert endpoint.asked[-1] == whole
    assert all(whole.thoughts)
    assert verify(journal, run_id="f").ok


@each_native
async def test_own_parts_outlast_questions_to_another_api(stand_in: WireStandIn) -> None:
    """Native, then chat completions, then native again: as a host whose extra is not installed for a while."""
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPT) as endpoint:
        await go_on(endpoint, journal)
    torn = cut(journal, questions(journal)[1].n)
    async with vendor(chat.STAND_IN, SECOND, Turn("Of chat.")) as endpoint:
        assert (await go_on(endpoint, torn)).final_answer == "Of chat."
        assert b'"native"' not in b"".join(request.body for request in endpoint.requests)
    assert [answer.get("dropped") for answer in replies_in(torn)] == [None, [stand_in.api], [stand_in.api]]
    assert replay(torn, run_id="r").identical
    again = cut(torn, questions(torn)[-1].n)
    async with vendor(stand_in, Turn("A house.")) as endpoint:
        output = await go_on(endpoint, again)
    assert output.final_answer == "A house."
    assert endpoint.asked[-1].thoughts == [True, False]
    assert replies_in(again)[-1].get("dropped") is None
    assert replay(again, run_id="r").identical


SECRET = "a-key-of-another-host-0123456789"
WORDS = {
    "messages": "Invalid `signature`",
    "gemini": "Corrupted thought signature",
    "responses": "encrypted content could not be verified",
}


@each_way
@each_native
async def test_a_thought_whose_secret_is_masked_is_left_out_once_it_is_refused(
    stand_in: WireStandIn, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", SECRET)
    journal = MemoryJournal()
    first = Turn(f"I have {SECRET}.", thought=f"The key is {SECRET}.", calls=CALL.calls)
    async with vendor(stand_in, first, SECOND, Turn("A house."), refuses=WORDS[stand_in.api]) as endpoint:
        output = await run(endpoint, way, protocol="tools", journal=journal)
        assert output.final_answer == "A house."
        assert len(endpoint.refused) == 2
        assert SECRET not in b"".join(request.body for request in endpoint.requests).decode()
    assert SECRET not in str([row.record() for row in journal.load("r")["agent"]])
    assert [answer.get("dropped") for answer in replies_in(journal)] == [None, [stand_in.api], [stand_in.api]]
    assert output.usage["requests"] == 5
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


@each_native
async def test_a_policy_that_is_tried_on_a_recorded_run_asks_nobody(stand_in: WireStandIn) -> None:
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPT) as endpoint:
        await go_on(endpoint, journal)
        found = replay(journal, run_id="r", policy={"deny_tools": ["lookup"]})
    assert [each["now"] for each in found.decisions] == ["refuse"] * 3
    assert len(endpoint.asked) == 3


@each_way
@each_native
async def test_the_next_turn_of_a_conversation_is_one_that_the_vendor_takes(stand_in: WireStandIn, way: str) -> None:
    async with vendor(stand_in, *SCRIPT, *SCRIPT) as endpoint:
        first = await run(endpoint, way, protocol="tools")
        again = await run(endpoint, way, protocol="tools", messages_json=[*first.messages_json], prompt="And a maison?")
    assert again.final_answer == "A house."
    assert '"native"' not in str(first.messages_json)
    assert endpoint.asked[-1].said[-1] == "And a maison?"
    assert endpoint.asked[-1].thoughts[-2:] == [True, True]


@each_native
async def test_a_conversation_that_is_cut_to_size_is_one_that_the_vendor_takes(stand_in: WireStandIn) -> None:
    long = Turn(thought=THOUGHT * 20, calls=[("lookup", {"word": "casa" * 100})])
    async with vendor(stand_in, *[long] * 7, Turn("A house.")) as endpoint:
        output = await run(endpoint, protocol="tools", max_steps=9, max_input_tokens=2000)
    assert output.final_answer == "A house."
    assert len(endpoint.asked[-1].calls) < 7
    assert all(endpoint.asked[-1].thoughts)


PLAN = {"type": "plan", "steps": [{"tool": "lookup", "args": {"word": "casa"}}]}


@each_way
@each_native
async def test_a_plan_is_made_and_summed_up(stand_in: WireStandIn, way: str) -> None:
    journal = MemoryJournal()
    plan = Turn(orjson.dumps(PLAN).decode(), thought=THOUGHT)
    async with vendor(stand_in, plan, Turn('{"type":"final","answer":"A house."}')) as endpoint:
        output = await run(endpoint, way, mode="plan", protocol="json", journal=journal)
    assert (output.error, output.final_answer) == (None, "A house.")
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


@each_native
async def test_own_parts_are_in_the_journal_as_they_came(stand_in: WireStandIn) -> None:
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPT) as endpoint:
        await go_on(endpoint, journal)
    parts: list[Any] = [answer["echo"]["native"]["parts"] for answer in replies_in(journal)[:2]]
    sent = endpoint.requests[-1].json()
    for each in parts:
        assert _contains(sent, each), each


def _contains(value: Any, parts: list[Any]) -> bool:
    """Whether these parts follow one another in a list somewhere in a value."""
    if isinstance(value, dict):
        return any(_contains(each, parts) for each in value.values())
    if not isinstance(value, list):
        return False
    size = len(parts)
    return any(value[at : at + size] == parts for at in range(len(value))) or any(_contains(v, parts) for v in value)
