"""Two runs side by side: what is set aside, where they part, and in which order that is told."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent
from agent_core.audit.diff import Diff, diff
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Row, Tape, chain_row, genesis
from agent_core.journal.signature import VARIABLE
from agent_core.models import ScriptedModel
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry
from utools.tool import ToolContext

MADE = "20260101-120000-0123abcd", "20260102-120000-4567cdef"


def tools(seen: Any = "seen") -> ToolRegistry:
    def where(args: dict[str, Any], context: ToolContext) -> Any:
        return {"key": context.idempotency_key, "seen": seen}

    return ToolRegistry([Tool(code, "Looks.", Q, where, effect="read") for code in ("look", "peek")])


CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["look", "peek"], "prompt": "Go."}


async def run(run_id: str, replies: list[str], *, seen: Any = "seen", **config: Any) -> tuple[str, Tape]:
    journal = MemoryJournal()
    await run_agent(
        {**CONFIG, **config}, registry=tools(seen), model=ScriptedModel(replies), journal=journal, run_id=run_id
    )
    return run_id, journal.load(run_id)


def at(found: Diff) -> list[tuple[str, int]]:
    return [(each.strand, each.n) for each in found.partings]


def changed(found: Diff, index: int = 0) -> dict[str, tuple[Any, Any]]:
    return {change["at"]: (change.get("a"), change.get("b")) for change in found.partings[index].changes}


# ── what is set aside ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ids", [("a", "s"), MADE], ids=["chosen ids", "made ids"])
async def test_the_same_run_at_another_time_under_another_id_is_equal(
    ids: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await run(ids[0], [action(), final("I see a sea.")])
    monkeypatch.setenv(VARIABLE, "k1:the-key-of-this-host")
    second = await run(ids[1], [action(), final("I see a sea.")])
    assert SEAL in second[1]
    assert first[1]["agent"][0].data != second[1]["agent"][0].data
    found = diff(first, second)
    assert (found.equal, found.same, found.partings) == (True, ("agent",), ())
    assert (found.a.run, found.b.run) == ids


async def test_an_id_that_is_a_word_hides_no_difference() -> None:
    found = diff(await run("yes", [final("yes")]), await run("no", [final("no")]))
    assert [record and record["kind"] for each in found.partings for record in (each.a, each.b)] == ["answered"] * 2
    assert found.a.answers == {"agent": "yes"}


async def test_a_made_id_is_set_aside_wherever_it_stands() -> None:
    first, second = [await run(run_id, [final(f"This is run {run_id}.")]) for run_id in MADE]
    assert diff(first, second).equal
    third = await run(MADE[1], [final(f"This is run {MADE[0]}.")])
    assert not diff(second, third).equal


AGENT = {
    "final_answer": 5,
    "trace": [{"step": 1, "elapsed_ms": 1.5, "timestamp": "2026-01-01T00:00:00.000Z", "thought": None}],
    "used_tools": {"look": {"count": 1, "total_ms": 1.5}},
    "run_id": "x",
    "journal": {"head": "00"},
    "total_ms": 1.5,
    "started_at": "2026-01-01T00:00:00.000Z",
    "ended_at": "2026-01-01T00:00:00.000Z",
}
LATER = {
    **AGENT,
    "trace": [{**AGENT["trace"][0], "elapsed_ms": 2.5, "timestamp": "2026-01-02T00:00:00.000Z"}],
    "used_tools": {"look": {"count": 1, "total_ms": 2.5}},
    "run_id": "y",
    "journal": {"head": "01"},
    "total_ms": 2.5,
    "started_at": "2026-01-02T00:00:00.000Z",
    "ended_at": "2026-01-02T00:00:00.000Z",
}


def one(answer: Any) -> tuple[str, Tape]:
    told = {"kind": "answered", "reply": "did", "success": True, "output": answer, "at": str(answer)}
    return tape("r", {"agent": [{"kind": "run_started", "loop": "agent"}, told]})


NEEDED: dict[str, Record] = {
    "run_started": {"at": "2026-01-01T00:00:00.000Z", "limits": {}},
    "asked": {"ask": "tool", "id": "call_1", "tool": "look", "args": {}, "effect": "read", "messages": 1, "step": 1},
    "answered": {"at": "2026-01-01T00:00:01.000Z", "seconds": 1.0, "closes": []},
    "decided": {"step": 1},
    "run_finished": {"at": "2026-01-01T00:00:02.000Z", "status": "completed"},
    "waiting": {"reason": "awaiting_approval"},
    "resolved": {"decision": "approve", "by": "a", "at": "2026-01-01T00:00:01.000Z"},
    "cancelled": {"at": "2026-01-01T00:00:01.000Z"},
}
"""What records of a kind have at least, whatever a test says of them."""
ANSWERED: dict[str, Record] = {
    "did": {"reply": "did", "success": True, "output": None, "error": None},
    "said": {"content": "", "finish_reason": "stop", "usage": {"input_tokens": 0, "output_tokens": 0}},
    "failed": {"reason": "timeout", "message": "late"},
    "batch": {},
}


def whole(record: Record) -> Record:
    """The record with the fields that its kind has."""
    if record.get("ask") == "model":
        return record
    reply = record.get("reply", "did") if record["kind"] == "answered" else ""
    return {"kind": "", **NEEDED[record["kind"]], **ANSWERED.get(reply, {}), **record}


def tape(run_id: str, strands: dict[str, list[Record]]) -> tuple[str, Tape]:
    made: Tape = {}
    for path, records in strands.items():
        rows: list[Row] = made.setdefault(path, [])
        for n, record in enumerate(map(whole, records)):
            rows.append(chain_row(path, n, rows[-1].hash if rows else genesis(run_id, path), record))
    return run_id, made


def test_an_agents_output_that_a_tool_was_given_is_compared_without_its_times() -> None:
    assert diff(one([AGENT]), one([LATER])).equal
    assert changed(diff(one([AGENT]), one([{**LATER, "final_answer": 6}]))) == {"/output/0/final_answer": (5, 6)}


@pytest.mark.parametrize(
    ("a", "b", "where"),
    [
        pytest.param({"at": 1, "seconds": 2}, {"at": 1, "seconds": 3}, "/output/seconds", id="a tool's own seconds"),
        pytest.param({"total_ms": 1}, {"total_ms": 2}, "/output/total_ms", id="a tool's own total_ms"),
        pytest.param({"run": "r"}, {"run": "s"}, "/output/run", id="a tool's own run"),
        pytest.param(1, True, "/output", id="a number and a truth"),
        pytest.param(1, 1.0, "/output", id="an integer and a float"),
        pytest.param({}, [], "/output", id="an object and a list"),
        pytest.param({"a/b~": 1}, {"a/b~": 2}, "/output/a~1b~0", id="a key that a pointer escapes"),
        pytest.param(["x", "y"], ["x"], "/output/1", id="a shorter list"),
    ],
)
def test_whatever_a_tool_gave_counts(a: Any, b: Any, where: str) -> None:
    assert list(changed(diff(one(a), one(b)))) == [where]


def test_what_one_side_lacks_has_no_key_and_null_is_a_value() -> None:
    found = diff(one({"x": None}), one({}))
    assert found.partings[0].changes == ({"at": "/output/x", "a": None},)


# ── where they part ──────────────────────────────────────────────────────────────────────────────


async def test_runs_part_at_the_first_answer_that_differs() -> None:
    found = diff(await run("a", [action(), final("one")]), await run("b", [action("peek"), final("two")]))
    assert at(found) == [("agent", 2)]
    assert list(changed(found)) == ["/content"]
    assert (found.a.finish_reason, found.a.steps, found.a.tool_calls) == ("final", 2, 1)
    assert (found.a.answers, found.b.answers) == ({"agent": "one"}, {"agent": "two"})
    assert found.a.tokens > 0


async def test_what_a_tool_gave_parts_them_though_the_answers_are_the_same() -> None:
    found = diff(await run("a", [action(), final()]), await run("b", [action(), final()], seen="something else"))
    assert at(found) == [("agent", 5)]
    assert changed(found) == {"/output/seen": ("seen", "something else")}


async def test_another_config_is_told_by_its_key_and_then_where_it_first_told() -> None:
    found = diff(await run("a", [action(), final()]), await run("b", [action(), final()], max_steps=1, prompt="Go. ~/"))
    assert at(found) == [("agent", 0), ("agent", 3)]
    assert changed(found)["/config/max_steps"] == (4, 1)
    assert changed(found)["/config/prompt"] == ("Go.", "Go. ~/")
    assert (found.b.finish_reason, found.b.answers) == ("max_steps", {})


async def test_tokens_alone_part_runs_that_began_alike_and_no_others() -> None:
    first, (run_id, rows) = await run("a", [final()]), await run("b", [final()])
    dearer = [{**row.record(), "usage": {"input_tokens": 1, "output_tokens": 2}} for row in rows["agent"][2:3]]
    records = [row.record() for row in rows["agent"]]
    assert at(diff(first, tape(run_id, {"agent": [*records[:2], *dearer, *records[3:]]}))) == [("agent", 2)]
    other = await run("c", [final()], prompt="Go, and take your time.", model="m2")
    assert at(diff(first, other)) == [("agent", 0)]


async def test_a_longer_timeout_is_told_as_config_alone() -> None:
    found = diff(await run("a", [final()]), await run("b", [final()], single_call_timeout=60))
    assert (at(found), changed(found)) == (
        [("agent", 0)],
        {
            "/config/single_call_timeout": (30.0, 60.0),
            "/limits/call_seconds": (30, 60.0),
        },
    )


async def test_a_run_that_ends_before_the_other_parts_where_it_ends() -> None:
    run_id, whole = await run("a", [action(), final()])
    found = diff((run_id, whole), (run_id, {"agent": whole["agent"][:6]}))
    (parting,) = found.partings
    assert (parting.strand, parting.n, parting.b, parting.only_in) == ("agent", 6, None, None)
    assert parting.a == whole["agent"][6].record()
    assert (found.a.finish_reason, found.b.finish_reason) == ("final", "unfinished")


async def test_a_run_that_waits_says_so() -> None:
    found = diff(await run("a", [action()], approval="always"), await run("b", [action(), final()]))
    assert (found.a.finish_reason, found.b.finish_reason) == ("waiting", "final")


async def test_runs_of_another_kind_share_no_strand() -> None:
    bare = await run("a", [final()])
    found = diff(bare, tape("b", {"flow": [{"kind": "run_started", "loop": "flow"}]}))
    assert [(each.strand, each.only_in) for each in found.partings] == [("agent", "a"), ("flow", "b")]


# ── in which order ───────────────────────────────────────────────────────────────────────────────

START: Record = {"kind": "run_started", "loop": "agent"}


def asks(n: int, tool: str = "look") -> list[Record]:
    return [{"kind": "asked", "ask": "tool", "tool": tool, "id": str(i)} for i in range(n)]


def test_strands_are_told_in_the_order_in_which_they_were_begun() -> None:
    a = {
        "agent": [START, *asks(11)],
        "agent/sub.2": [START],
        "agent/10.0": asks(1),
        "agent/10.1": asks(1),
        "agent/10.1/sub.0": [START],
        "agent/sub.11": [START],
    }
    b = {path: [{**record, "x": 1} for record in records] for path, records in a.items()}
    b["agent"] = [START, *asks(9), {"kind": "run_finished"}]
    found = diff(tape("a", a), tape("b", b))
    assert at(found) == [
        ("agent/sub.2", 0),
        ("agent", 10),
        ("agent/10.0", 0),
        ("agent/10.1", 0),
        ("agent/10.1/sub.0", 0),
        ("agent/sub.11", 0),
    ]


def visit(at: str) -> list[Record]:
    return [{"kind": "asked", "ask": "tool", "tool": "echo"}, {"kind": "answered", "output": 1, "at": at}]


FLOW: Record = {"kind": "run_started", "loop": "flow"}


@pytest.mark.parametrize("ended", [True, False], ids=["by the path of the end", "by time"])
def test_visits_of_a_workflow_are_told_in_its_order(ended: bool) -> None:
    def end(*path: str) -> list[Record]:
        return [FLOW, *([{"kind": "run_finished", "status": "completed", "path": path}] if ended else [])]

    first = {"flow": end("z", "y", "x"), "flow/z.1": visit("1"), "flow/y.1": visit("2"), "flow/x.1": visit("3")}
    second = {"flow": end("z", "b", "c"), "flow/z.1": visit("7"), "flow/b.1": visit("8"), "flow/c.1": visit("9")}
    found = diff(tape("a", first), tape("b", second))
    assert found.same[-1] == "flow/z.1"
    visits = [(each.strand, each.only_in) for each in found.partings if each.only_in]
    assert visits == [("flow/y.1", "a"), ("flow/x.1", "a"), ("flow/b.1", "b"), ("flow/c.1", "b")]
    assert at(found)[-1] == (("flow", 1) if ended else ("flow/c.1", 0))


def test_rounds_of_a_loop_and_attempts_are_told_as_they_came() -> None:
    end = {"kind": "run_finished", "status": "completed", "path": ["b", "a", "b", "a"]}
    rounds = ("flow/b.1", "flow/a.1", "flow/a.1~1", "flow/a.1~2", "flow/b.2", "flow/a.2")
    strands = {"flow": [FLOW, end], **{path: visit("5") for path in sorted(rounds)}}
    empty = {"flow": [FLOW, end]}
    assert [each.strand for each in diff(tape("a", strands), tape("b", empty)).partings] == list(rounds)
    assert [each.strand for each in diff(tape("a", empty), tape("b", strands)).partings] == list(rounds)


def test_a_diff_the_other_way_round_is_the_same_with_sides_changed() -> None:
    a = {"agent": [START, *asks(3)], "agent/sub.2": [START], "agent/3.0": asks(1)}
    b = {"agent": [START, *asks(2), *asks(1, "peek")], "agent/sub.2": [START], "agent/sub.3": [START]}
    there, back = diff(tape("a", a), tape("b", b)), diff(tape("b", b), tape("a", a))
    assert {(p.strand, p.n, str(p.a), str(p.b)) for p in there.partings} == {
        (p.strand, p.n, str(p.b), str(p.a)) for p in back.partings
    }
    assert (there.same, there.a, there.b) == (back.same, back.b, back.a)


def test_calls_of_agents_are_counted_once_and_nodes_not_at_all() -> None:
    again = [*asks(1), {"kind": "waiting"}, {"kind": "resolved", "decision": "retry"}, *asks(1)]
    strands = {"flow": [FLOW], "flow/echo.1": visit("1"), "flow/a.1": [START, *again], "flow/a.1/5.0": asks(1)}
    assert diff(tape("a", strands), tape("a", strands)).a.tool_calls == 2


async def test_a_diff_needs_no_file(tmp_path: Path) -> None:
    run_id, rows = await run("a", [final()])
    assert diff((run_id, rows), (run_id, rows)).equal
    assert list(tmp_path.iterdir()) == []
