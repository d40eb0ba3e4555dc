"""The command show: records in order of time, readable lines, traces, and damaged runs up to the damage."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from agent_core.journal.record import Row, encode
from engine_shim.cli.records.timeline import in_time
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action, final
from support.command import Cli, Write

FIXTURES = Path(__file__).parents[3] / "fixtures/workflows"
APPROVAL, NESTED, PARALLEL = (str(FIXTURES / f"{name}.yaml") for name in ("approval", "nested", "parallel"))
LINE = re.compile(r"^ *(?P<passed>\d+\.\d{3})  (?P<place>\S+:\d+) +(?P<kind>[a-z_]+)(?:  +(?P<text>.*))?$")


def shown(cli: Cli, *words: str) -> list[dict[str, str]]:
    """The lines about records, without the first line."""
    ran = cli("show", *words)
    assert ran.code == 0, ran
    matches = [LINE.match(line) for line in ran.out.splitlines()[1:]]
    return [match.groupdict() for match in matches if match is not None]


def test_the_date_is_told_once_and_each_record_has_its_seconds(cli: Cli) -> None:
    run = cli("run", PARALLEL, "--json").json["run_id"]
    first, *lines = cli("show", run).out.splitlines()
    assert re.fullmatch(rf"{run}  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC", first)
    assert [line for line in lines if not LINE.match(line)] == []
    seconds = [float(each["passed"]) for each in shown(cli, run)]
    assert (seconds[0], seconds) == (0.0, sorted(seconds))


def test_what_is_nested_stands_between_its_call_and_the_answer(cli: Cli) -> None:
    run = cli("run", NESTED, "--json").json["run_id"]
    places = [each["place"] for each in shown(cli, run)]
    nested = [place for place in places if place.startswith("flow/agent_core.1/")]
    at = places.index("flow/agent_core.1:4")
    assert places[at + 1 : at + 1 + len(nested)] == nested
    assert places[at + 1 + len(nested)] == "flow/agent_core.1:5"
    assert (places[0], places[-1]) == ("flow:0", "flow:1")


@pytest.mark.parametrize("flow", [NESTED, PARALLEL, APPROVAL], ids=["nested", "parallel", "approval"])
def test_records_of_a_strand_keep_their_order_and_none_is_left_out(cli: Cli, flow: str) -> None:
    cli("run", flow)
    (entry,) = SqliteRunStore(Path("data/agent-core/runs.db")).entries()
    tape = SqliteRunStore(Path("data/agent-core/runs.db")).journal.load(entry.run)
    timed = in_time(tape)
    for path, rows in tape.items():
        assert [each.n for each in timed if each.strand == path] == list(range(len(rows)))


def test_a_record_that_nothing_dates_stands_before_what_it_began(cli: Cli, write: Write) -> None:
    each = {"id": "each", "tool": "echo", "foreach": [1, 2], "config": {"text": "a {{item}}"}}
    cli("run", str(write("flow.json", {"id": "w", "nodes": [each]})))
    lines = shown(cli, "last")
    assert [line["place"] for line in lines][:2] == ["flow:0", "flow/each.1:0"]
    assert all(line["passed"] for line in lines)


def test_a_call_that_waited_comes_after_what_was_done_before_it(cli: Cli, write: Write) -> None:
    nodes = [
        {"id": "first", "tool": "echo", "config": {"text": "a"}},
        {"id": "then", "tool": "echo", "approval": "always", "config": {"text": "{{nodes.first}}"}},
    ]
    cli("run", str(write("flow.json", {"id": "w", "nodes": nodes})))
    cli("decide", "last", "approve")
    with closing(SqliteRunStore(Path("data/agent-core/runs.db"))) as store:
        tape = store.journal.load(store.entries()[0].run)
    places = [f"{each.strand}:{each.n}" for each in in_time(tape)]
    waited = places.index("flow/then.1:0")
    assert places[:waited] == ["flow:0", "flow/first.1:0", "flow/first.1:1"]
    assert in_time(tape)[waited].at is None


def test_a_clock_that_was_set_back_puts_nothing_before_the_beginning() -> None:
    times = {"flow": ["2026-12-01T10:00:00Z"], "flow/a.1": [None, "2026-11-30T10:00:00Z"]}
    tape = {
        path: [Row(path, n, b"", encode({"at": at} if at else {})) for n, at in enumerate(each)]
        for path, each in times.items()
    }
    assert [(each.strand, each.n) for each in in_time(tape)] == [("flow", 0), ("flow/a.1", 0), ("flow/a.1", 1)]


def test_a_strand_that_has_just_begun_comes_last(cli: Cli) -> None:
    run = cli("run", PARALLEL, "--json").json["run_id"]
    with closing(SqliteRunStore(Path("data/agent-core/runs.db"))) as store:
        tape = store.journal.load(run)
    begun = {path: rows[:1] for path, rows in tape.items()}  # as they stand when a process dies in its first calls
    places = [(each.strand, each.n) for each in in_time(begun)]
    assert places[0] == ("flow", 0)
    assert sorted(places) == sorted((path, 0) for path in tape)


def test_full_cuts_nothing_and_shows_what_the_model_read_first(cli: Cli) -> None:
    cli("run", APPROVAL)
    short, full = cli("show", "last").out, cli("show", "last", "--full").out
    assert "system: " not in short
    assert "          system: Every reply is exactly one JSON object" in full
    assert len(max(full.splitlines(), key=len)) > len(max(short.splitlines(), key=len))


def test_each_kind_of_record_has_a_line_that_reads(cli: Cli) -> None:
    run = cli("run", APPROVAL, "--json").json["run_id"]
    cli("decide", run, "deny", "--message", "Not\ntoday.")
    lines = {each["place"]: f"{each['kind']} {each['text']}" for each in shown(cli, run)}
    assert lines["flow:0"] == "run_started flow approval 1"
    agent = {n: lines[f"flow/agent_core.1:{n}"] for n in range(10)}
    assert agent[0].startswith("run_started agent, scripted:")
    assert agent[1].startswith("asked step 1: 2 messages to scripted:")
    assert agent[4].startswith("waiting awaiting_approval calculator {")
    assert re.fullmatch(r"resolved deny by \S+: Not today\.", agent[5])
    assert agent[9] == "run_finished final"


DECIDED = {
    "max_steps": ["run find", "run find, not run: max_steps"],
    "tolerant_parsing": ["run find, stripped think, fence", "run add, stripped trailing", "final"],
    "unreadable_then_repaired": ["unreadable: not_json: The reply holds no JSON object. ", "run find", "final"],
    "approval_edited": ["wait send awaiting_approval send needs a person's approval", "run send, edited", "final"],
    "workflows/cancelled": ["wait pay awaiting_approval pay needs a person's approval"],
}


@pytest.mark.parametrize(("recorded", "decided"), DECIDED.items(), ids=DECIDED)
def test_what_was_decided_is_told_in_words(cli: Cli, recorded: str, decided: list[str]) -> None:
    lines = shown(cli, str(FIXTURES.with_name("transcripts") / f"{recorded}.jsonl"))
    told = [each["text"] for each in lines if each["kind"] == "decided"]
    assert all(text.startswith(beginning) for text, beginning in zip(told, decided, strict=True)), told
    assert {each["text"] for each in lines if each["kind"] == "cancelled"} <= {""}


def test_decisions_on_parallel_calls_stand_after_their_question(cli: Cli, write: Write) -> None:
    calls = [{"name": "echo", "arguments": json.dumps({"text": text})} for text in "ab"]
    write("replies.json", [{"content": "", "calls": calls}, {"content": "Done."}])
    allowed = [{"tool": "echo", "approval": "always"}]
    config = {"model": "scripted:replies.json", "protocol": "tools", "max_steps": 4, "allowed_tools": allowed}
    write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": {**config, "prompt": "Go."}}]})
    run = cli("run", "w.json", "--json").json["run_id"]
    agent = "flow/agent_core.1"
    assert [each["place"] for each in shown(cli, run)][-2:] == [f"{agent}/4.0:0", f"{agent}/4.1:0"]
    for item in (f"{agent}/4.0:0", f"{agent}/4.1:0"):
        cli("decide", run, "approve", "--at", item)
    lines = {each["place"]: each["text"] for each in shown(cli, run)}
    assert list(lines).index(f"{agent}:5") == list(lines).index(f"{agent}/4.1:1") + 1
    assert lines[f"{agent}:5"] == "all 2 calls decided"
    assert lines[f"{agent}/4.1:1"].startswith("approve by ")


def test_styles_are_for_terminals_alone(cli: Cli) -> None:
    cli("run", PARALLEL)
    assert "\x1b" not in cli("show", "last").out


def test_a_damaged_run_is_shown_up_to_the_damage(cli: Cli) -> None:
    run = cli("run", NESTED, "--json").json["run_id"]
    with closing(sqlite3.connect("data/agent-core/runs.db")) as db, db:
        where = "strand = 'flow/agent_core.1' AND n = 3"
        changed = "CAST(replace(CAST(data AS TEXT), 'agent_core', 'agent_coro') AS BLOB)"
        db.execute(f"UPDATE rows SET data = {changed} WHERE {where}")
    ran = cli("show", run)
    assert ran.code == 5
    places = [match["place"] for line in ran.out.splitlines() if (match := LINE.match(line))]
    assert [place for place in places if place.startswith("flow/agent_core.1:")] == [
        f"flow/agent_core.1:{n}" for n in range(3)
    ]
    assert ran.err.startswith("agent-core: flow/agent_core.1:3: record 3 of strand 'flow/agent_core.1' is damaged")
    assert cli("show", run, "--json").json["error"]["where"] == "flow/agent_core.1:3"


# ── traces ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def agent(write: Write) -> None:
    write("replies.json", [action("echo", text="a\nb"), action("nope"), final("Done.")])
    config = {"model": "scripted:replies.json", "max_steps": 4, "allowed_tools": ["echo"], "prompt": "Go."}
    write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})


@pytest.mark.usefixtures("agent")
def test_a_trace_is_what_the_agent_emitted(cli: Cli) -> None:
    emitted = cli("run", "w.json", "--json").json["outputs"]["agent_core"]["trace"]
    told = cli("show", "last", "--trace", "--json").json
    assert (told["traces"], told["missing"]) == ({"flow/agent_core.1": emitted}, None)
    lines = cli("show", "last", "--trace").out.splitlines()
    assert lines[0] == "flow/agent_core.1"
    assert lines[1].split() == ["step", "ms", "tool", "arguments", "→", "observation"]
    assert re.fullmatch(r' +1 +\d+  echo  \{"text": "a\\nb"\} \(text ← the model\) → a b', lines[2])
    assert "error: " in lines[3]
    assert re.fullmatch(r" +3 +\d+ +final: Done\.", lines[4])


def test_a_trace_says_by_what_its_agent_ended_without_an_answer(cli: Cli, write: Write) -> None:
    write("no.json", [])
    config = {"model": "scripted:no.json", "max_steps": 4, "allowed_tools": [], "prompt": "Go."}
    write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})
    assert cli("run", "w.json").code == 1
    assert "  ended by model_error: the script has no reply 1" in cli("show", "last", "--trace").out


def test_a_waiting_agent_has_the_trace_so_far(cli: Cli) -> None:
    cli("run", APPROVAL)
    (steps,) = cli("show", "last", "--trace", "--json").json["traces"].values()
    assert len(steps) <= 1


def test_an_agent_whose_tape_ends_has_no_trace_yet(cli: Cli) -> None:
    cli("run", APPROVAL)
    with closing(sqlite3.connect("data/agent-core/runs.db")) as db, db:
        db.execute("DELETE FROM rows WHERE strand = 'flow/agent_core.1' AND n > 1")
    ran = cli("show", "last", "--trace")
    assert (ran.code, "flow/agent_core.1: no trace, since the replay ends there" in ran.out) == (0, True)
    assert cli("show", "last", "--trace", "--json").json["missing"] == "flow/agent_core.1"


def test_a_run_without_agents_has_no_trace(cli: Cli) -> None:
    cli("run", PARALLEL)
    ran = cli("show", "last", "--trace")
    assert (ran.code, ran.out) == (0, "no agent ran in this run\n")
    assert cli("show", "last", "--trace", "--json").json["traces"] == {}


def test_a_run_is_written_as_an_example_that_an_agent_can_have(cli: Cli, write: Write) -> None:
    write("replies.json", json.dumps([action("echo", text="A-17"), final("It says A-17.")]))
    config = {
        "model": "scripted:replies.json",
        "max_steps": 3,
        "allowed_tools": ["echo"],
        "prompt": "What does it say?",
    }
    flow = {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]}
    cli("run", str(write("flow.json", flow)))
    example = cli("show", "last", "--as-example", "--json").json
    call = {"tool": "echo", "args": {"text": "A-17"}, "output": example["calls"][0]["output"]}
    assert example == {"user": "What does it say?", "calls": [call], "answer": "It says A-17."}
    assert yaml.safe_load(cli("show", "last", "--as-example").out) == [example]
    config["examples"] = [example]
    assert "It says A-17." in cli("validate", str(write("flow.json", flow)), "--show-prompt").out
    write("replies.json", json.dumps(["nothing"] * 5))
    cli("run", "flow.json")
    refused = cli("show", "last", "--as-example")
    assert (refused.code, "an example shows how a task is done" in refused.err) == (3, True)


def test_an_example_is_made_of_the_run_of_one_agent(cli: Cli, write: Write) -> None:
    write("one.json", json.dumps([final("It says A-17.")]))
    config = {"model": "scripted:one.json", "max_steps": 3, "prompt": "What does it say?", "allowed_tools": []}
    nodes = [{"id": name, "tool": "agent_core", "config": config} for name in ("a", "b")]
    cli("run", str(write("flow.json", {"id": "w", "nodes": nodes, "edges": [{"from": "a", "to": "b"}]})))
    refused = cli("show", "last", "--as-example")
    assert (refused.code, "of one agent, and there are flow/a.1, flow/b.1" in refused.err) == (3, True)
    cli("run", PARALLEL)
    refused = cli("show", "last", "--as-example")
    assert (refused.code, "an example shows what one did" in refused.err) == (3, True)


def test_what_the_model_read_is_shown_word_for_word(cli: Cli, write: Write) -> None:
    write("r.json", [action("calculator", expression="1+1"), final("2")])
    config = {"model": "scripted:r.json", "max_steps": 3, "prompt": "How much?", "allowed_tools": ["calculator"]}
    write("flow.json", {"id": "w", "nodes": [{"id": "a", "tool": "agent_core", "config": config}]})
    cli("run", "flow.json")
    first, second = cli("show", "last", "--prompt", "1"), cli("show", "last", "--prompt", "flow/a.1:6")
    assert "\n── user ──\nHow much?\n" in first.out
    assert "The tool calculator returned" not in first.out
    assert "── assistant ──" in second.out
    assert "The tool calculator returned: 2" in second.out
    told = cli("show", "last", "--prompt", "2", "--json").json
    assert (told["strand"], told["n"], told["step"], told["model"]) == ("flow/a.1", 6, 2, "scripted:r.json")
    assert [each["role"] for each in told["messages"]] == ["system", "user", "assistant", "user"]
    refused = cli("show", "last", "--prompt", "3")
    assert refused.code == 2
    assert "there is no such question; there are flow/a.1:1 (step 1), flow/a.1:6 (step 2)" in refused.err


def test_step_that_several_agents_had_is_named_by_its_place(cli: Cli) -> None:
    run = cli("run", PARALLEL, "--json").json["run_id"]
    refused = cli("show", run, "--prompt", "1")
    assert refused.code == 2
    assert "--prompt 1: " in refused.err
