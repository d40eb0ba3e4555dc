"""What a replay does not compute again: none of it lets a change of the record, or another verdict, go by."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import DefinitionError, MemoryJournal, Replay, replay, run_agent
from agent_core.journal.record import Record, Row, chain_row, genesis
from agent_core.loop.transcript import Transcript
from agent_core.models import ScriptedModel
from agent_core.origins.kinds import probes_of
from agent_core.origins.source import Origin, Source
from agent_core.origins.sources import Sources
from agent_core.protocol import strict_json
from agent_core.protocol.dialect import Entry
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry

REPLIES = [action("read", q="a"), "no", action("write", q="the answer"), action("write", q="the answer"), final()]
OF_NO_DECISION = {
    "said": {("model",), ("requests",), ("finish_reason",), ("usage", "estimated")},
    "did": {("error",), ("at",)},
}
"""Fields of an answer that nothing which is decided or given depends on here: a word for an end that is unknown, what
the sum has already, the error of a success, a time before the last."""
KINDS = ("asked", "answered", "decided", "run_finished")


async def _recorded(**config: Any) -> list[Row]:
    async def act(args: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"text": f"this is the answer to {args['q']}", "count": 3}

    registry = ToolRegistry([Tool(code, code, Q, act, effect=code) for code in ("read", "write")])
    journal = MemoryJournal()
    given = {"model": "m", "max_steps": 6, "allowed_tools": ["read", "write"], "prompt": "Go.", **config}
    await run_agent(given, registry=registry, model=ScriptedModel(REPLIES), journal=journal, run_id="r")
    (rows,) = journal.load("r").values()
    return rows


ROWS = asyncio.run(_recorded())


def _forged(n: int, record: Record) -> Replay:
    """The replay of the run with another record `n`, and all hashes made anew: no chain tells of it."""
    previous, rows = genesis("r", "agent"), list[Row]()
    for each in ROWS:
        rows.append(chain_row("agent", each.n, previous, record if each.n == n else each.record()))
        previous = rows[-1].hash
    return replay(rows, run_id="r")


Place = tuple[str | int, ...]


def _places(value: Any, at: Place = ()) -> Iterator[Place]:
    if isinstance(value, dict | list) and value:
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(each, (*at, key))
    else:
        yield at


def _other(value: Any, at: Place) -> Any:
    """The value with another one at this place."""
    if at:
        changed = value.copy()
        changed[at[0]] = _other(value[at[0]], at[1:])
        return changed
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}." if "T" not in value or not value.endswith("Z") else f"3{value[1:]}"
        case _:
            return 7


CHANGES = [
    (row.n, place)
    for row in ROWS[1:]
    for place in _places(row.record())
    if place not in OF_NO_DECISION.get(row.record().get("reply", ""), ())
]


def test_what_is_changed_here_is_in_records_of_each_kind() -> None:
    assert replay(ROWS, run_id="r").identical
    assert {ROWS[n].kind for n, _ in CHANGES} == set(KINDS)
    assert any("origins" in place for _, place in CHANGES)


@pytest.mark.parametrize(("n", "place"), CHANGES, ids=[f"{ROWS[n].kind} {n}: {place}" for n, place in CHANGES])
def test_no_value_of_a_record_can_be_another_though_all_hashes_fit(n: int, place: Place) -> None:
    changed = _other(ROWS[n].record(), place)
    assert changed != ROWS[n].record()
    try:
        found = _forged(n, changed)
    except Exception:
        return
    assert not found.identical


@pytest.mark.parametrize("n", range(1, len(ROWS)))
def test_no_record_can_be_left_out(n: int) -> None:
    previous, rows = genesis("r", "agent"), list[Row]()
    for each in [row for row in ROWS if row.n != n]:
        rows.append(chain_row("agent", len(rows), previous, each.record()))
        previous = rows[-1].hash
    assert not replay(rows, run_id="r").identical


def test_a_record_with_its_fields_in_another_order_is_the_same() -> None:
    record = ROWS[3].record()
    kind = record.pop("kind")
    assert _forged(3, {"kind": kind, **dict(reversed(record.items()))}).identical


def test_a_policy_that_is_no_json_is_refused_as_a_policy() -> None:
    with pytest.raises(DefinitionError, match="deny_tools"):
        replay(ROWS, run_id="r", policy={"deny_tools": object()})


def test_one_config_under_two_policies_gives_two_verdicts() -> None:
    for _ in range(2):
        denied = replay(ROWS, run_id="r", policy={"deny_tools": ["write"]})
        asked = replay(ROWS, run_id="r", policy={"approval": "on_write"})
        assert [each["now"] for each in denied.decisions] == ["run", "refuse", "refuse"]
        assert [each["now"] for each in asked.decisions] == ["run", "wait", "wait"]


# ── origins ──────────────────────────────────────────────────────────────────────────────────────

POLICY: Any = {"schema": {"type": "object", "properties": {}}, "args": None, "provenance": {}}
TEXTS = st.sampled_from(["blue lamp", "17", "1.50", "a@b.de", "[1,2]", "no", '{"k":"blue lamp"}', "x/y.txt", "Ä", ""])
LEAVES = TEXTS | st.integers(-20, 20) | st.booleans() | st.none() | st.floats(-1e18, 1e18) | st.text(max_size=8)
VALUES = st.recursive(LEAVES, lambda s: st.lists(s, max_size=3) | st.dictionaries(TEXTS, s, max_size=3), max_leaves=6)
EVENTS = st.tuples(st.sampled_from(["answer", "message", "edit", "trace"]), VALUES, LEAVES)


@given(st.lists(EVENTS, max_size=12))
def test_an_origin_is_the_same_whether_it_was_looked_for_before_or_not(events: list[tuple[str, Any, Any]]) -> None:
    """What was found once is kept: sources that know of no earlier search find the same."""
    asked = Sources()
    for count, (event, value, leaf) in enumerate(events):
        _tell(asked, count, event, value)
        fresh = Sources()
        for earlier, (known, said, _) in enumerate(events[: count + 1]):
            _tell(fresh, earlier, known, said)
        assert asked.trace({"v": leaf}, POLICY) == fresh.trace({"v": leaf}, POLICY)


def _tell(sources: Sources, count: int, event: str, value: Any) -> None:
    match event:
        case "answer":
            sources.add_answer("look", str(count), value, trusted=False)
        case "message":
            sources.add_message(str(value), vouched=count % 2 == 0)
        case "edit":
            sources.add_edit({"v": value}, {})
        case _:
            pass


@given(VALUES, st.data())
def test_what_stands_in_a_source_stands_in_its_rough_text(value: Any, data: st.DataObject) -> None:
    source = Source(Origin("tool", "look", "look"), value)
    for part in source.folded.split("\n\0\n"):
        start = data.draw(st.integers(0, len(part)))
        assert part[start : data.draw(st.integers(start, len(part)))] in source.rough


@pytest.mark.parametrize("number", [1e-05, -1.5e-05, 9.99e-05, 1e-06, 1e-07, 1e16, -1.5e300])
def test_a_number_that_json_writes_otherwise_stands_in_the_rough_text(number: float) -> None:
    """Up to the third comparison a number's text was what Python writes."""
    for comparison, text in ((3, str(number)), (4, orjson.dumps(number).decode())):
        source = Source(Origin("tool", "look", "look"), {"rate": number, "unit": "mol"}, comparison=comparison)
        assert text in source.folded
        assert text in source.rough
        assert "".join(filter(str.isdigit, text)) in source.figures


@pytest.mark.parametrize(("comparison", "origin"), [(3, "model"), (4, "look step 1 /rate")])
def test_a_text_is_found_as_a_model_reads_a_number(comparison: int, origin: str) -> None:
    sources = Sources(comparison=comparison)
    sources.add_answer("look", "1", {"rate": 0.00001}, trusted=False)
    assert sources.trace({"v": "0.00001"}, POLICY).origins == {"/v": origin}


@given(VALUES, LEAVES)
def test_a_value_is_found_in_a_source_that_may_hold_it_alone(value: Any, leaf: Any) -> None:
    """The rough text and the figures refuse no source in which the value stands."""
    source = Source(Origin("tool", "look", "look"), value)
    for probe in probes_of(leaf, None, "v") if leaf is not None else ():
        if list(source.find(probe)):
            assert probe.hint is None or probe.hint in source.rough
            assert probe.figures is None or probe.figures in source.figures


# ── replies and questions ────────────────────────────────────────────────────────────────────────

PIECES = [
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\n",
        "\t",
        '"a"',
        '"a b"',
        '"ab"',
        '"\\u0061"',
        '"\\ud800"',
        '"\u00a0"',
        '"\u2003"',
    ),
    *('"a":1', '"a":1,"a":1', '"a":1e400', "1", "1e5", "100000.0", "-0", "18446744073709551616", "true", "null"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text())
def test_a_text_that_is_surely_sound_is_read_as_the_strict_reader_does(text: str) -> None:
    value = strict_json.decode_sound(text)
    if value is not None:
        assert repr(strict_json.decode(text)) == repr(value)
        assert strict_json.find_json_fault(strict_json.decode(text)) is None


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"a":[{"b":1,\n"b":1}]}', '{"a b":1,"a b":1, "ab":1}'])
def test_a_key_that_occurs_twice_is_seen_whatever_the_white_space(text: str) -> None:
    assert strict_json.decode_sound(text) is None


def test_entries_that_are_written_later_come_in_their_place(tmp_path: Path) -> None:
    written: list[int] = []

    def write(n: int) -> list[Entry]:
        written.append(n)
        return [Entry("assistant", str(n)), Entry("user", str(n))]

    transcript = Transcript([Entry("user", "Go.")], [], None)
    for n in range(3):
        transcript.append_later(2, lambda n=n: write(n), ([], []), step=n)  # type: ignore[misc]
        assert len(transcript.messages()) == 3 + 2 * n
    assert not written
    asked = transcript.messages()
    transcript.append([Entry("user", "last")], [], step=3)
    assert [message.decode()[-4:-2] for message in asked] == ["o.", '"0', '"0', '"1', '"1', '"2', '"2']
    assert written == [0, 1, 2]
    assert len(transcript.messages()) == 8


@pytest.mark.parametrize("protocol", ["json", "tools"])
@pytest.mark.parametrize("more", [{}, {"max_steps": 3}, {"max_tool_calls": 2}])
async def test_the_record_counts_the_messages_that_were_sent(protocol: str, more: dict[str, Any]) -> None:
    """They are counted before they are written."""
    sent: list[int] = []

    class Counting(ScriptedModel):
        async def complete(self, question: Any) -> Any:
            sent.append(len([*question.messages]))
            return await super().complete(question)

    async def act(args: dict[str, Any], context: Any) -> str:
        return "done"

    journal = MemoryJournal()
    registry = ToolRegistry([Tool("read", "read", Q, act, effect="read")])
    config = {"model": "m", "max_steps": 6, "allowed_tools": ["read"], "prompt": "Go.", "protocol": protocol, **more}
    call = {
        "content": "",
        "calls": [{"name": "read", "arguments": '{"q":"x"}'}, {"name": "read", "arguments": '{"q":"y"}'}],
    }
    replies: list[Any] = [action("read")] * 3 if protocol == "json" else [call] * 3
    await run_agent(config, registry=registry, model=Counting([*replies, final()]), journal=journal, run_id="r")
    (rows, *_) = [rows for path, rows in journal.load("r").items() if "/" not in path]
    asked = [row.record() for row in rows if row.kind == "asked"]
    assert [record["messages"] for record in asked if record["ask"] == "model"] == sent
    assert replay(journal, run_id="r").identical
