"""The command line as a user meets it: what it prints, what it says when something is wrong, how it exits."""

import errno
import io
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine_shim import SqliteRunStore
from engine_shim.cli import output
from engine_shim.cli.failures import report
from engine_shim.cli.runs.run import read_inputs
from engine_shim.definition.load import load_workflow
from engine_shim.errors import DefinitionError
from support.by_hand import action, final
from support.command import Cli, Ran, Write

COMMAND = str(Path(sys.executable).with_name("agent-core"))
FIXTURES = Path(__file__).parents[3] / "fixtures/workflows"
APPROVAL, PARALLEL = str(FIXTURES / "approval.yaml"), str(FIXTURES / "parallel.yaml")
ECHO = {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "{{external.text}}"}}]}
NODE = {"tool": "echo", "config": {"text": "x"}}
RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")


def run_id(ran: Ran) -> str:
    found = RUN_ID.search(ran.out)
    assert found, ran
    return found[0]


def agent(**config: Any) -> dict[str, Any]:
    usual = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["echo"], "prompt": "Go."}
    return {"id": "w", "nodes": [{"tool": "agent_core", "config": {**usual, **config}}]}


@pytest.fixture
def waiting(cli: Cli) -> str:
    """The id of a run that waits for approval."""
    return run_id(cli("run", APPROVAL))


# ── a run ────────────────────────────────────────────────────────────────────────────────────────


def test_run_shows_what_it_gave_then_what_became_of_it(cli: Cli) -> None:
    ran = cli("run", PARALLEL)
    assert ran.code == 0
    assert ran.out == f"told: sum 15, mean 5\nfirst: 3\n\ncompleted  sum → mean → report\nrun        {run_id(ran)}\n"


def test_live_view_has_one_line_for_each_plain_node(cli: Cli) -> None:
    assert cli("run", PARALLEL).err.splitlines() == ["✓ sum     15", "✓ mean    5", "✓ report  sum 15, mean 5", ""]


def test_live_view_shows_an_agents_steps_under_its_name(cli: Cli, write: Write) -> None:
    write("replies.json", [action("echo", txt=1), action("echo", text="long " * 100), final()])
    write("w.json", agent(max_repairs=1, observation_max_len=256))
    lines = cli("run", "w.json").err.splitlines()
    assert lines[0] == "● agent_core"
    assert lines[1].startswith("    1 invalid_action The arguments of echo were refused")
    assert lines[1].endswith("/text: expected a value, you sent nothing.")  # what to do stands at the end
    assert lines[2].startswith('    2 echo {"text": "long long')
    assert lines[3].endswith(" (cut from 500 to 256 characters)")
    assert lines[4:] == [
        "    ✓ final: done",
        "observation_max_len sets how much of an observation the model is shown",
        "",
    ]
    assert max(map(len, [*lines[:1], *lines[2:]])) <= 110


def test_live_view_shows_the_answer_of_each_agent(cli: Cli, write: Write) -> None:
    lines = cli("run", str(FIXTURES / "nested.yaml")).err.splitlines()
    assert [line.strip() for line in lines if "✓ final" in line] == ["✓ final: 5", "✓ final: The expert says 5."]
    write("replies.json", {f"flow/{name}.1": [final(f"I am {name}.")] for name in ("a", "b")})
    nodes = [{**agent()["nodes"][0], "id": name} for name in ("a", "b")]
    write("w.json", {"id": "w", "nodes": nodes})
    ran = cli("run", "w.json")
    assert all(f"✓ final: I am {name}." in ran.err for name in ("a", "b")), ran


def test_live_view_says_the_call_that_was_decided(cli: Cli, waiting: str) -> None:
    lines = cli("decide", waiting, "deny", "--message", "Not today.").err.splitlines()
    assert lines[0] == "● agent_core"
    assert re.fullmatch(r"    ! deny calculator \{.*\} Not today\.", lines[1])


@pytest.mark.parametrize(
    ("nodes", "edges", "told"),
    [
        ([{"on_error": "continue"}, {}], None, "without it"),
        ([{}, {}], [{"from": "fails", "to": "next", "on": "error"}], "by its error edge to next"),
    ],
    ids=["on_error", "error edge"],
)
def test_live_view_names_what_failed_and_was_continued(
    cli: Cli, write: Write, nodes: list[Any], edges: Any, told: str
) -> None:
    first = {"id": "fails", "tool": "read_file", "config": {"path": "nothing.txt"}, **nodes[0]}
    definition = {"id": "w", "nodes": [first, {**NODE, "id": "next"}]}
    write("w.json", definition if edges is None else {**definition, "edges": edges})
    ran = cli("run", "w.json")
    assert ran.code == 0, ran
    assert f"! fails  failed; the run went on {told}" in ran.err


EACH = {"id": "each", "tool": "read_file", "foreach": ["a.txt", "no.txt", "b.txt"], "config": {"path": "{{item}}"}}


@pytest.mark.parametrize(("keys", "told"), [({"on_item_error": "continue"}, 0), ({"on_error": "continue"}, 1)])
def test_live_view_names_the_item_of_a_list(cli: Cli, write: Write, keys: Any, told: int) -> None:
    write("a.txt", "A")
    write("b.txt", "B")
    write("w.json", {"id": "w", "nodes": [{**EACH, **keys}]})
    ran = cli("run", "w.json")
    lines = ran.err.splitlines()
    assert {line[:9] for line in lines if line[:1] in ("✓", "✗")} == {"✓ each[0]", "✗ each[1]", "✓ each[2]"}
    assert sum("each     failed; the run went on without it" in line for line in lines) == told


def test_live_view_names_the_item_of_an_agent(cli: Cli, write: Write) -> None:
    write("replies.json", [final("Hello.")])
    node = {**agent()["nodes"][0], "id": "each", "foreach": [1, 2], "max_parallel": 1}
    write("w.json", {"id": "w", "nodes": [node]})
    lines = cli("run", "w.json").err.splitlines()
    assert [line for line in lines if line.startswith("●")] == ["● each[0]", "● each[1]"]


def test_live_view_names_a_nested_agent_behind_its_parent(cli: Cli) -> None:
    lines = cli("run", str(FIXTURES / "nested.yaml")).err.splitlines()
    assert [line for line in lines if line.startswith("●")] == [
        "● agent_core",
        "● agent_core › agent_core",
        "● agent_core",
    ]


def test_json_is_one_document_with_the_whole_result(cli: Cli) -> None:
    ran = cli("run", PARALLEL, "--json")
    assert ran.json.keys() == {"run_id", "status", "outputs", "path", "waiting", "journal", "error"}
    assert ran.json["outputs"] == {
        "sum": 15,
        "mean": 5,
        "report": "sum 15, mean 5",
        "told": "sum 15, mean 5",
        "first": 3,
    }
    assert ran.json["journal"].keys() == {"head", "count"}


def test_output_that_nobody_chose_is_shortened_and_json_gives_all(cli: Cli, write: Write) -> None:
    write("w.json", ECHO)
    write("in.json", {"text": "x" * 100_000})
    assert "… (100,000 characters, --json gives all)" in cli("run", "w.json", "--inputs", "in.json").out
    assert len(cli("run", "w.json", "--inputs", "in.json", "--json").json["outputs"]["echo"]) == 100_000


def test_text_of_any_script_passes_through(cli: Cli, write: Write) -> None:
    write("w.json", ECHO)
    text = "Grüße 中文 🙂 [bold] {x}"
    ran = cli("run", "w.json", "--input", f"text={text}")
    assert f"echo: {text}\n" in ran.out
    assert text in ran.err


@pytest.mark.exhaustive
def test_relative_script_is_found_from_another_directory(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("flows/replies.json", [final("Found.")])
    flow = write("flows/w.json", agent())
    (flow.parent.parent / "elsewhere").mkdir()
    monkeypatch.chdir(flow.parent.parent / "elsewhere")
    ran = cli("run", "../flows/w.json")
    assert ran.out.startswith("agent_core: Found.\n")
    assert cli("resume", run_id(ran)).code == 0


def test_a_model_for_a_workflow_that_asks_none_is_told(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    ran = cli("run", "w.json", "--model", "openai:gpt-4o-mini")
    assert (ran.code, ran.out) == (2, "")
    assert "--model 'openai:gpt-4o-mini': no node of 'w' is an agent, so no model is asked" in ran.err
    write("a.json", agent())
    write("replies.json", [final("Hi.")])
    assert cli("validate", "w.json", "a.json", "--model", "scripted:replies.json").out == "ok\n"
    assert cli("validate", "w.json", "--model", "scripted:replies.json").code == 2


def test_other_model_can_be_asked_in_every_agent_node(cli: Cli, write: Write) -> None:
    write("other.json", [final("The other one.")])
    write("w.json", agent(model="scripted:nix.json"))
    assert "The other one." in cli("run", "w.json", "--model", "scripted:other.json").out


OF_THE_FILES_MODEL: dict[str, dict[str, Any]] = {
    "endpoint": {"base_url": "http://127.0.0.1:9/v1"},
    "key": {"api_key_env": "NOBODYS_KEY"},
    "fallbacks": {"fallback_models": ["scripted:nix.json"]},
}


@pytest.mark.parametrize("config", OF_THE_FILES_MODEL.values(), ids=OF_THE_FILES_MODEL)
def test_other_model_leaves_behind_what_was_meant_for_the_files_model(
    cli: Cli, write: Write, config: dict[str, Any]
) -> None:
    write("other.json", [final("The other one.")])
    write("w.json", agent(model="openai:gpt-4o-mini", **config))
    ran = cli("run", "w.json", "--model", "scripted:other.json", "--json").json
    records = cli("show", ran["run_id"], "--json").json["records"]
    (asked,) = [each["config"] for each in records if each.get("loop") == "agent"]
    assert {name: asked[name] or None for name in ("model", *config)} == {
        "model": "scripted:other.json",
        **dict.fromkeys(config),
    }


INPUTS = {
    "a text stays a text": (["--input", "s=5"], {"s": "5", "n": 1}),
    "a number is read where one is declared": (["--input", "n=7"], {"n": 7}),
    "an equals sign in the value": (["--input", "s=a=b"], {"s": "a=b", "n": 1}),
    "an empty text": (["--input", "s="], {"s": "", "n": 1}),
    "either type, JSON first": (["--input", "e=5"], {"e": 5, "n": 1}),
    "either type, else a text": (["--input", "e=five"], {"e": "five", "n": 1}),
    "an object": (["--input", 'o={"a":[1]}'], {"o": {"a": [1]}, "n": 1}),
    "a file": (["--inputs", "in.json"], {"s": "file", "n": 2}),
    "one by one wins over the file": (["--inputs", "in.json", "--input", "s=own"], {"s": "own", "n": 2}),
    "stdin": (["--inputs", "-"], {"s": "stdin", "n": 1}),
    "undeclared is a text": (["--input", "z=1"], {"z": "1", "n": 1}),
}
DECLARED = {
    "additionalProperties": True,
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "n": {"type": "integer", "default": 1},
        "e": {"type": ["string", "integer"]},
        "o": {"type": "object"},
    },
}


@pytest.mark.sampled
@pytest.mark.parametrize(("words", "expected"), INPUTS.values(), ids=INPUTS)
def test_inputs_come_as(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: dict[str, Any]
) -> None:
    write("in.json", {"s": "file", "n": 2})
    write("w.json", {"id": "w", "inputs": DECLARED, "nodes": [NODE]})
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"s": "stdin"}'))
    records = cli("show", cli("run", "w.json", *words, "--json").json["run_id"], "--json").json["records"]
    assert records[0]["external"] == expected


OPTIONAL = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
KINDS = {
    "a number or null, as pydantic writes it": (OPTIONAL, "5", 5),
    "null": (OPTIONAL, "null", None),
    "digits where a text or null is declared": ({"type": ["string", "null"]}, "17", "17"),
    "one of some numbers": ({"enum": [1, 2]}, "2", 2),
    "by a reference": ({"$ref": "#/$defs/Size"}, "[1, 2]", [1, 2]),
    "declared, and not told of what type": (True, "5", "5"),
}


@pytest.mark.parametrize(("rule", "text", "expected"), KINDS.values(), ids=KINDS)
def test_input_is_read_by_the_types_that_its_schema_allows(rule: Any, text: str, expected: object) -> None:
    declared = {"properties": {"x": rule}, "$defs": {"Size": {"type": "array"}}}
    workflow = load_workflow({"id": "w", "inputs": declared, "nodes": [NODE]})
    assert read_inputs(workflow, [f"x={text}"], None) == {"x": expected}


def test_inputs_that_are_no_schema_are_told_as_a_fault_of_the_definition(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "inputs": {"properties": ["text"]}, "nodes": [NODE]})
    ran = cli("run", "w.json", "--input", "text=Hi")
    assert (ran.code, "inputs" in ran.err) == (3, True)


def test_file_of_inputs_may_begin_with_the_mark_that_editors_write(cli: Cli, write: Write) -> None:
    write("in.json", '\ufeff{"text": "Hi"}')
    write("w.json", ECHO)
    assert cli("run", "w.json", "--inputs", "in.json").code == 0


def test_inputs_on_stdin_are_utf8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = load_workflow({"id": "w", "nodes": [NODE]})
    piped = io.TextIOWrapper(io.BytesIO('\ufeff{"x": "Zoë"}'.encode()), "ascii", "surrogateescape")
    monkeypatch.setattr(sys, "stdin", piped)
    assert read_inputs(workflow, [], "-") == {"x": "Zoë"}
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DefinitionError, match="stdin is closed"):
        read_inputs(workflow, [], "-")


# ── what is wrong with a definition ──────────────────────────────────────────────────────────────

REFUSED = {
    "missing input": (ECHO, "nodes/0/config/text: there is no 'text' in external; it is empty"),
    "unknown tool": ({"id": "w", "nodes": [{"tool": "ecko"}]}, "nodes/0/tool: no tool is called 'ecko'; did you mean"),
    "bad placeholder": (
        {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "{{x}}"}}]},
        "nodes/0/config/text: no placeholder: write {{external.NAME}}",
    ),
    "broken YAML": ("id: w\nnodes: [", "w.yaml:2:9: not valid YAML: expected the node content"),
    "bad config key": (agent(max_stepz=1), "nodes/0/config/max_stepz: is not a known property"),
    "unknown allowed tool": (agent(allowed_tools=["ecko"]), "nodes/0/config/allowed_tools/0: no tool is called 'ecko'"),
    "same id twice": ({"id": "w", "nodes": [{"tool": "echo"}, {"tool": "echo"}]}, "nodes/1/id: another node is called"),
    "edge to nowhere": (
        {"id": "w", "nodes": [NODE], "edges": [{"from": "echo", "to": "x"}]},
        "edges/0/to: there is no node 'x'; there are echo",
    ),
    "circle": (
        {"id": "w", "nodes": [NODE], "edges": [{"from": "echo", "to": "echo"}]},
        "entry: every node has an edge that leads to it; name here where a run starts",
    ),
    "script that is not there": (agent(), "nodes/0/config/model: the script cannot be read: No such file"),
    "no definition at all": ("", "w.yaml: a definition is an object with id and nodes"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("definition", "told"), REFUSED.values(), ids=REFUSED)
def test_definition_that_cannot_run_says_what_and_where_and_writes_nothing(
    cli: Cli, write: Write, home: Path, definition: Any, told: str
) -> None:
    write("w.yaml", definition)
    ran = cli("run", "w.yaml", "--store", "made/runs.db")
    assert (ran.code, ran.out) == (3, "")
    where, _, message = told.partition(": ")
    assert message in ran.err
    assert not (home / "made").exists()
    error = cli("run", "w.yaml", "--json").json["error"]
    assert (error["kind"], error["where"]) == ("definition", where)
    assert error["message"].startswith(message)


def test_validate_finds_the_same_and_more_at_once(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "nodes": [{"tool": "ecko"}, {"id": "b", "tool": "echo"}]})
    ran = cli("validate", "w.json")
    assert (ran.code, ran.out.splitlines()[-1]) == (3, "2 problems")
    told = cli("validate", "w.json", "--json").json
    assert [problem["where"] for problem in told["problems"]] == ["nodes/0/tool", "nodes/1/config/text"]
    assert cli("validate", PARALLEL).out == "ok\n"
    assert cli("validate", PARALLEL, "--json").json == {"ok": True, "problems": []}


def test_validate_tells_faults_of_form_in_the_same_shape(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "nodez": [], "nodes": [{"tool": "echo"}]})
    told = cli("validate", "w.json", "--json")
    assert (told.code, told.json["problems"][0]["where"]) == (3, "nodez")


# ── how runs end ─────────────────────────────────────────────────────────────────────────────────

ENDINGS: dict[str, tuple[list[Any], dict[str, Any], int, str]] = {
    "limit": ([action("echo", text="x")] * 2, {"max_steps": 1}, 4, "agent_core: max_steps: the model still asked"),
    "policy": ([action("calculator", expression="1")] * 2, {}, 3, "agent_core: policy_denied: "),
    "refused arguments": ([action("echo", txt=1)] * 2, {}, 3, "agent_core: invalid_action: "),
    "model": ([], {}, 1, "agent_core: model_error: the script has no reply 1"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("replies", "config", "code", "told"), ENDINGS.values(), ids=ENDINGS)
def test_run_that_failed_exits_by_its_reason_and_says_it_once(
    cli: Cli, write: Write, replies: list[Any], config: dict[str, Any], code: int, told: str
) -> None:
    write("replies.json", replies)
    write("w.json", agent(**config))
    ran = cli("run", "w.json")
    (line,) = [line for line in ran.out.splitlines() if line.startswith("error")]
    assert (ran.code, line.removeprefix("error").strip()[: len(told)]) == (code, told)
    result = cli("run", "w.json", "--json")
    assert (result.code, result.json["status"]) == (code, "failed")
    assert "trace" in result.json["outputs"]["agent_core"]


def test_tool_of_ones_own_that_raises_fails_the_run_and_is_quoted(cli: Cli, write: Write) -> None:
    write(
        "own.py",
        "from utools import tool\n@tool\ndef boom(x: int) -> int:\n    'Raise.'\n    raise ValueError(f'no {x}')\n",
    )
    write("agent-core.yaml", {"tools": ["own.py:boom"]})
    write("w.json", {"id": "w", "nodes": [{"tool": "boom", "config": {"x": 3}}]})
    ran = cli("run", "w.json")
    assert ran.code == 1
    assert "the tool boom failed: ValueError at " in ran.err
    assert "✗ boom  ValueError: no 3" in ran.err.splitlines()
    assert "error   boom: tool_error: ValueError: no 3" in ran.out


# ── waiting and deciding ─────────────────────────────────────────────────────────────────────────


def test_waiting_run_exits_6_and_gives_the_command_to_copy(cli: Cli) -> None:
    ran = cli("run", APPROVAL, "--store", "my runs.db")
    assert ran.code == 6
    assert 'waiting     calculator {"operation": "sum", "numbers": [2, 3]} needs your decision' in ran.out
    assert f"agent-core decide {run_id(ran)} approve --store 'my runs.db'   (or deny, edit)" in ran.out


DECISIONS = {
    "approve": (["approve"], "5"),
    "edit": (["edit", "--args", '{"operation": "sum", "numbers": [20, 30]}'], "50"),
    "deny": (["deny", "--message", "Not today."], "Not today."),
}


@pytest.mark.parametrize(
    "name", ["approve", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("edit", "deny"))]
)
def test_person_decides_from_another_process(home: Path, name: str) -> None:
    words, heard = DECISIONS[name]
    env = {**os.environ, "AGENT_CORE_STORE": "runs.db"}
    waits = subprocess.run([COMMAND, "run", APPROVAL, "--json"], capture_output=True, text=True, env=env)
    assert waits.returncode == 6
    decide = [COMMAND, "decide", json.loads(waits.stdout)["run_id"], *words, "--json"]
    done = subprocess.run(decide, capture_output=True, text=True, env=env)
    result = json.loads(done.stdout)
    assert (done.returncode, result["outputs"]["answer"]) == (0, "Done.")
    (step,) = [step for step in result["outputs"]["agent_core"]["trace"] if step["action"]]
    assert heard in f"{step['observation']} {step['error']}"


PAY = """
from utools import tool


@tool(effect="write")
def pay(pieces: int) -> str:
    "Pay."
    return f"paid {pieces}"
"""


@pytest.mark.parametrize("by_agent", [True, False], ids=["an agent's call", "a node's"])
def test_an_edit_of_an_integer_that_no_tool_can_have_is_refused(cli: Cli, write: Write, by_agent: bool) -> None:
    write("pay.py", PAY)
    write("agent-core.yaml", {"tools": ["pay.py"]})
    write("replies.json", [action("pay", pieces=1), final("Paid.")])
    node = {"tool": "pay", "approval": "always", "config": {"pieces": 1}}
    flow = agent(allowed_tools=[{"tool": "pay", "approval": "always"}]) if by_agent else {"id": "w", "nodes": [node]}
    assert cli("run", str(write("w.json", flow))).code == 6
    refused = cli("decide", "last", "edit", "--args", '{"pieces": 1e40}')
    assert (refused.code, "nothing was decided" in refused.err, "/pieces is an integer outside" in refused.err) == (
        *(2, True, True),
    )
    assert cli("decide", "last", "edit", "--args", '{"pieces": 2.0}').code == 0


def test_edited_arguments_are_judged_before_they_are_recorded(cli: Cli, waiting: str) -> None:
    before = cli("show", waiting).out
    refused = cli("decide", waiting, "edit", "--args", '{"operation": "add"}')
    assert refused.code == 2
    assert "nothing was decided. The arguments of calculator were refused" in refused.err
    assert 'expected one of ["mean", "max", "min", "sum", "count", "median"], you sent "add"' in refused.err
    assert "! edit" not in refused.err
    assert cli("show", waiting).out == before
    assert cli("decide", waiting, "approve").code == 0


MISUSES = {
    "unknown run": (["nope", "approve"], "there is no run 'nope' in this store; `agent-core runs` lists"),
    "unknown word": (
        ["RUN", "maybe"],
        "'maybe' is not a decision; there are approve, deny, edit, retry, skip, fail, done",
    ),
    "word that does not fit": (["RUN", "skip"], "flow/agent_core.1:4 waits for approve, deny or edit, not skip"),
    "done without a result": (["RUN", "done"], "done needs --output with what the write gave, as JSON"),
    "result of another decision": (["RUN", "approve", "--output", "1"], "done needs --output with what the write gave"),
    "result that is not JSON": (["RUN", "done", "--output", "{"], "--output is not JSON"),
    "edit without arguments": (["RUN", "edit"], "edit needs --args with a JSON object, and no other decision"),
    "approval with arguments": (["RUN", "approve", "--args", "{}"], "edit needs --args with a JSON object, and no"),
    "words of an approval": (["RUN", "approve", "--message", "go"], "--message goes with deny, and with no other"),
    "arguments that are not JSON": (["RUN", "edit", "--args", "{a}"], "--args: '{a}' is not JSON"),
    "arguments that are a list": (["RUN", "edit", "--args", "[]"], "--args: '[]' is not a JSON object"),
    "place of another form": (["RUN", "approve", "--at", "x"], "--at 'x': write STRAND:N"),
    "place where nothing waits": (
        ["RUN", "approve", "--at", "flow:0"],
        "nothing waits at flow:0; waiting: flow/agent_",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("words", "told"), MISUSES.values(), ids=MISUSES)
def test_decision_that_cannot_be_taken_says_why_and_changes_nothing(
    cli: Cli, waiting: str, words: list[str], told: str
) -> None:
    named = [waiting if word == "RUN" else word for word in words]
    ran = cli("decide", *named)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert told in cli("decide", *named, "--json").json["error"]["message"]
    assert cli("decide", waiting, "approve").code == 0


def test_run_that_does_not_wait_cannot_be_decided(cli: Cli) -> None:
    run = run_id(cli("run", PARALLEL))
    ran = cli("decide", run, "approve")
    assert ran.code == 2
    assert ran.err.startswith(f"agent-core: run {run} is completed: nothing waits in it any more")


def test_host_that_lacks_a_tool_refuses_the_decision_and_does_not_use_it_up(cli: Cli, write: Write) -> None:
    write("own.py", OWN)
    write("agent-core.yaml", {"tools": ["own.py:mine"]})
    write("replies.json", [action("mine", n=3), final()])
    write("w.json", agent(allowed_tools=[{"tool": "mine", "approval": "always"}]))
    run = run_id(cli("run", "w.json"))
    bare, denying = {}, {"tools": ["own.py:mine"], "deny_tools": ["mine"]}
    for config, why in ((denying, "deny_tools"), (bare, "was the run started with another configuration?")):
        write("bare.yaml", config)
        refused = cli("decide", run, "approve", "--config", "bare.yaml")
        assert (refused.code, "this host has no tool 'mine', which the run needs; " in refused.err) == (3, True)
        assert why in refused.err
    assert cli("decide", run, "approve").code == 0
    assert cli("resume", run, "--config", "bare.yaml").code == 0


def test_of_several_that_wait_one_must_be_chosen(cli: Cli, write: Write) -> None:
    write("replies.json", [action("echo", text="x"), final()])
    (one,) = agent(allowed_tools=[{"tool": "echo", "approval": "always"}])["nodes"]
    write("w.json", {"id": "w", "nodes": [{**one, "id": "one"}, {**one, "id": "two"}]})
    ran = cli("run", "w.json")
    run = run_id(ran)
    assert f"agent-core decide {run} approve --at flow/two.1:4   (or deny, edit)" in ran.out
    assert "choose one by --at: flow/one.1:4, flow/two.1:4" in cli("decide", run, "approve").err
    assert cli("decide", run, "approve", "--at", "flow/two.1:4").code == 6
    assert cli("decide", run, "approve").code == 0


# ── looking at runs ──────────────────────────────────────────────────────────────────────────────


def test_runs_are_listed_newest_first(cli: Cli, waiting: str) -> None:
    last = run_id(cli("run", PARALLEL))
    lines = cli("runs").out.splitlines()
    assert lines[0].startswith(f"{last}  completed  ")
    assert lines[0].endswith("s  parallel 1  [3, 4, 8]")
    assert lines[1].startswith(f"{waiting}  waiting    ")
    assert lines[1].endswith(" -  approval 1")
    assert [entry["run_id"] for entry in cli("runs", "--json").json] == [last, waiting]


def test_empty_store_lists_nothing_and_is_not_made(cli: Cli, home: Path) -> None:
    assert (cli("runs").out, cli("runs", "--json").json, list(home.iterdir())) == ("no runs\n", [], [])


@pytest.mark.exhaustive
def test_finished_run_verifies_and_replays(cli: Cli) -> None:
    run = cli("run", str(FIXTURES / "nested.yaml"), "--json").json
    told = cli("verify", run["run_id"], "--head", run["journal"]["head"], "--count", str(run["journal"]["count"]))
    whole = f"ok: {run['journal']['count']} records, head {run['journal']['head']}; not sealed\n"
    assert (told.code, told.out) == (0, whole)
    assert cli("verify", run["run_id"], "--head", "0" * 64).code == 5
    replayed = cli("replay", run["run_id"])
    assert (replayed.code, replayed.out.partition(":")[0]) == (0, "identical")
    assert cli("replay", run["run_id"], "--json").json["identical"] is True


def test_a_run_is_judged_under_another_policy(cli: Cli, write: Write) -> None:
    run = cli("run", str(FIXTURES / "nested.yaml"), "--json").json["run_id"]
    same = cli("replay", run, "--set", "max_steps=9")
    assert (same.code, same.out.splitlines()[-1]) == (0, "no decision changes")
    policy = write("policy.yaml", "approval: always\n")
    changed = cli("replay", run, "--policy", str(policy))
    assert (changed.code, " → wait" in changed.out) == (5, True)
    assert cli("replay", run, "--policy", str(policy), "--json").json["decisions"][0]["now"] == "wait"
    assert cli("replay", run, "--set", "model=x").code == 2
    assert cli("replay", run, "--set", "max_steps").code == 2


def test_a_host_with_a_key_seals_its_runs_and_asks_for_the_seal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cli("run", PARALLEL, "--json").json["run_id"]
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")
    sealed = cli("run", PARALLEL, "--json").json["run_id"]
    assert (cli("verify", sealed).code, cli("replay", sealed).code) == (0, 0)
    assert (cli("verify", before).code, "not sealed" in cli("verify", before).out) == (5, True)


def test_a_waiting_run_is_proven_by_its_seal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")
    waits = cli("run", APPROVAL, "--json").json["run_id"]
    verified = cli("verify", waits)
    assert (
        verified.code,
        verified.out.endswith("; it waits for a person, a time or a signal: not complete yet\n"),
    ) == (0, True)
    found = cli("verify", waits, "--json").json
    assert (found["ok"], found["complete"]) == (True, False)


@pytest.mark.sampled
@pytest.mark.parametrize("words", [["decide", "last", "approve"], ["resume", "last"], ["pause", "last"]])
def test_a_sealed_run_does_not_go_on_without_a_key(cli: Cli, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")
    cli("run", APPROVAL)
    monkeypatch.delenv("AGENT_CORE_JOURNAL_KEYS")
    ran = cli(*words)
    assert (ran.code, "AGENT_CORE_JOURNAL_KEYS: the run is sealed, and this process has no key" in ran.err) == (3, True)
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")
    assert cli("verify", "last").code == 0


def test_a_short_key_is_refused_before_anything_is_written(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:s")
    ran = cli("run", PARALLEL, "--store", "made/runs.db")
    assert (ran.code, ran.out) == (3, "")
    assert "AGENT_CORE_JOURNAL_KEYS: the key 'k1', which signs, has 1 character, and needs at least 16" in ran.err
    assert not (home / "made").exists()


def test_waiting_run_is_proven_by_the_head_that_it_gave(cli: Cli) -> None:
    waits = cli("run", APPROVAL, "--json").json
    assert (cli("verify", waits["run_id"]).code, cli("replay", waits["run_id"]).code) == (6, 0)
    assert cli("verify", waits["run_id"], "--head", waits["journal"]["head"]).code == 0


def damage(run: str, strand: str, n: int, old: bytes, new: bytes) -> None:
    """Change what one record of the run says, behind the journal's back."""
    place = (run, strand, n)
    with closing(sqlite3.connect(os.environ["AGENT_CORE_STORE"])) as db, db:
        (data,) = db.execute("SELECT data FROM rows WHERE run = ? AND strand = ? AND n = ?", place).fetchone()
        assert old in data
        changed = (data.replace(old, new), *place)
        db.execute("UPDATE rows SET data = ? WHERE run = ? AND strand = ? AND n = ?", changed)


DAMAGES = {
    "a word in a reply": ("flow/agent_core.1", 2, b"sum", b"min"),
    "a brace of the first record": ("flow", 0, b"{", b"["),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("strand", "n", "old", "new"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_record_is_named_and_nothing_goes_on_from_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, strand: str, n: int, old: bytes, new: bytes
) -> None:
    monkeypatch.setenv("AGENT_CORE_STORE", "runs.db")
    run = run_id(cli("run", APPROVAL))
    damage(run, strand, n, old, new)
    told = cli("verify", run)
    assert (told.code, told.out.partition(": ")[0]) == (5, f"NOT ok at {strand}:{n}")
    assert cli("verify", run, "--json").json["first_bad"] == {"strand": strand, "n": n, "line": None}
    for words in (["show", run], ["replay", run], ["resume", run], ["decide", run, "approve"]):
        refused = cli(*words)
        assert refused.code == 5, words
        assert f"record {n} of strand '{strand}' is damaged" in refused.err
    error = cli("replay", run, "--json").json["error"]
    assert (error["kind"], error["where"]) == ("damaged", f"{strand}:{n}")


@pytest.mark.parametrize("command", ["show", "verify", "replay", "resume"])
def test_run_that_is_not_there_is_a_mistake_in_usage(cli: Cli, home: Path, command: str) -> None:
    ran = cli(command, "nope")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no run 'nope' in this store; `agent-core runs` lists what it holds" in ran.err
    assert cli(command, "nope", "--json").json["error"]["kind"] == "run_not_found"
    assert list(home.iterdir()) == []


# ── usage ────────────────────────────────────────────────────────────────────────────────────────

USAGE = {
    "no command": [],
    "unknown command": ["rum"],
    "unknown option": ["run", "w.json", "--fast"],
    "no file": ["run"],
    "input without a value": ["run", "w.json", "--input", "text"],
    "input of another type": ["run", "w.json", "--input", "n=x"],
    "unknown agent node": ["schema", "w.json", "--node", "x"],
    "tools of another word": ["tools", "shoo", "x"],
    "unknown tool": ["tools", "show", "ecko"],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", USAGE.values(), ids=USAGE)
def test_mistake_in_usage_exits_2_in_a_sentence_or_a_document(cli: Cli, write: Write, words: list[str]) -> None:
    write("w.json", {"id": "w", "inputs": DECLARED, "nodes": [NODE]})
    ran = cli(*words)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == (1 if words else 0)
    if words:
        told = cli(*words, "--json")
        assert told.json["error"].keys() == {"kind", "message", "where"}
        assert (told.json["error"]["kind"], told.err) == ("usage", "")


def test_a_place_that_cannot_be_looked_at_is_told_in_a_sentence(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = cli("test", ".")
    assert (told.code, told.err) == (3, "agent-core: .: is a directory; name the file of a workflow, or of its tests\n")
    told = cli("validate", "a" * 300)
    assert (told.code, told.err) == (2, f"agent-core: FLOW: {'a' * 300}: File name too long\n")
    (home / "gone").mkdir()
    monkeypatch.chdir("gone")
    (home / "gone").rmdir()
    told = cli("runs")
    assert (told.code, "the working directory cannot be used: No such file" in told.err) == (2, True)


def test_a_file_that_may_not_be_reached_is_no_mistake_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    code = report(PermissionError(errno.EACCES, "Permission denied", "private/agents"), as_json=False)
    assert (code, capsys.readouterr().err) == (1, "agent-core: private/agents: Permission denied\n")


BAD_INPUTS = {
    "no file": (2, "nix.json", "--inputs: there is no file nix.json"),
    "not JSON": (3, "bad.json", "bad.json: the inputs are not JSON: Expecting"),
    "no object": (3, "list.json", "list.json: the inputs must be a JSON object"),
    "too deep": (3, "deep.json", "deep.json: the inputs are not JSON: it is nested too deeply"),
}


@pytest.mark.parametrize(("code", "name", "told"), BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_file_of_inputs_that_cannot_be_used_is_named(cli: Cli, write: Write, code: int, name: str, told: str) -> None:
    write("bad.json", '{"a": 1')
    write("list.json", [1])
    write("deep.json", "[" * 100_000)
    write("w.json", ECHO)
    ran = cli("run", "w.json", "--inputs", name)
    assert (ran.code, told in ran.err) == (code, True)


@pytest.mark.parametrize(
    "words",
    ["run nix.yaml", "validate nix.yaml", "graph nix.yaml", "schema nix.yaml --node a", "run w.json --config nix.yaml",
     "replay last --policy nix.yaml", "show nix.jsonl", "verify nix.jsonl", "export nix.jsonl"],
)  # fmt: skip
def test_file_that_is_not_there_is_a_mistake_in_usage_of_every_command(cli: Cli, write: Write, words: str) -> None:
    write("w.json", ECHO)
    ran = cli(*words.split())
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert re.search(r"there is no (journal )?file nix\.(yaml|jsonl)", ran.err)


BAD_STORES = {
    "a directory": (
        "folder",
        "folder cannot be used as a run store: it is a directory; name a file in it, such as folder/runs.db",
    ),
    "another file": ("w.json", "w.json cannot be used as a run store: file is not a database"),
    "below a file": ("w.json/runs.db", "w.json/runs.db cannot be used as a run store: "),
}


@pytest.mark.parametrize(("store", "told"), BAD_STORES.values(), ids=BAD_STORES)
def test_store_that_cannot_be_used_is_told_without_a_traceback(cli: Cli, write: Write, store: str, told: str) -> None:
    flow = write("w.json", {"id": "w", "nodes": [NODE]})
    (flow.parent / "folder").mkdir()
    ran = cli("run", "w.json", "--store", store)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert told in ran.err
    assert cli("run", "w.json", "--store", store, "--json").json["error"]["kind"] == "journal"


def test_store_in_a_missing_directory_is_made_for_its_owner_alone(cli: Cli, home: Path) -> None:
    assert cli("run", PARALLEL, "--store", "deep/er/runs.db").code == 0
    assert (home / "deep/er/runs.db").stat().st_mode & 0o077 == 0
    assert len(SqliteRunStore(home / "deep/er/runs.db").entries()) == 1


@pytest.mark.exhaustive
def test_two_workflows_share_a_store(cli: Cli) -> None:
    for flow in (PARALLEL, APPROVAL):
        cli("run", flow, "--store", "runs.db")
    assert [entry["workflow"] for entry in cli("runs", "--store", "runs.db", "--json").json] == ["approval", "parallel"]


@pytest.mark.exhaustive
def test_output_piped_to_head_ends_without_a_word() -> None:
    piped = f"{COMMAND} tools show agent_core | head -n 1"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("{\n", "")


# ── host configuration ───────────────────────────────────────────────────────────────────────────

HOSTS = {
    "unknown key": ({"toolz": []}, "agent-core.yaml:1: toolz: unknown key; did you mean tools?"),
    "another type": ({"tools": "x"}, "agent-core.yaml:1: tools: must be a list (got 'x')"),
    "no object": (["x"], "agent-core.yaml:1: must be an object"),
    "broken": ("tools: [", "agent-core.yaml:1:9: not valid YAML"),
    "no such root": ({"root": "nix"}, "agent-core.yaml:1: root: there is no such directory (got 'nix')"),
    "reference without a name": ({"tools": ["own"]}, "tools/0: must be module:name or file.py:name (got 'own')"),
    "no such file": ({"tools": ["nix.py:x"]}, "tools/0: cannot be loaded: FileNotFoundError: there is no file nix.py"),
    "no such module": ({"tools": ["nix:x"]}, "tools/0: cannot be loaded: ModuleNotFoundError: No module named 'nix'"),
    "no such name": ({"tools": ["own.py:nix"]}, "tools/0: there is no 'nix' in own.py"),
    "no tool": ({"tools": ["own.py:plain"]}, "a function becomes a Tool by @tool (got 'own.py:plain')"),
    "module that raises": (
        {"tools": ["raises.py:x"]},
        "/raises.py:1 (got 'raises.py:x')",
    ),
    "factory that raises": (
        {"tools": ["own.py:failing"]},
        "/own.py:13 (got 'own.py:failing')",
    ),
    "function that is no tool": (
        {"tools": ["untyped.py:f"]},
        "/untyped.py:2",
    ),
    "module that cannot be read": ({"tools": ["broken.py:f"]}, "cannot be loaded: SyntaxError: "),
    "tool with a bad schema": ({"tools": ["own.py:bad"]}, "tools/0: tools.bad.config_schema/type: not a valid JSON"),
    "tool twice": (
        {"tools": ["own.py:mine"] * 2},
        "tools/1: tools.mine: another tool already has this code, that of own.py:mine",
    ),
    "code of a built-in tool": (
        {"tools": ["own.py:echo"]},
        "tools.echo: another tool already has this code, a built-in one",
    ),
}
OWN = """
from utools import Tool, tool

@tool(effect="read")
def mine(n: int) -> int:
    "Double."
    return 2 * n

def several():
    return [Tool(code, "d", {}, lambda args, context: code) for code in ("one", "two")]

def failing():
    return {}["x"]

plain = 5
bad = Tool("bad", "d", {"type": "objekt"}, lambda args, context: None)

@tool(effect="read")
def echo(n: int) -> int:
    "Give back."
    return n
"""


@pytest.mark.sampled
@pytest.mark.parametrize(("config", "told"), HOSTS.values(), ids=HOSTS)
def test_host_configuration_that_cannot_be_used_says_where(cli: Cli, write: Write, config: Any, told: str) -> None:
    write("own.py", OWN)
    write("raises.py", "1 / 0")
    write("untyped.py", "from utools import tool\n@tool\ndef f(n): pass\n")
    write("broken.py", "def f(:")
    write("agent-core.yaml", config)
    ran = cli("tools")
    assert (ran.code, ran.out) == (3, "")
    assert told in ran.err


def test_host_offers_tools_from_files_and_modules_alone_or_several_at_once(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("own.py", OWN)
    write("package_of_mine.py", OWN.replace("mine", "theirs"))
    write("agent-core.yaml", {"tools": ["own.py:mine", "own.py:several", "package_of_mine:theirs"]})
    monkeypatch.syspath_prepend(".")
    codes = {tool["code"] for tool in cli("tools", "--json").json}
    assert {"mine", "one", "two", "theirs", "agent_core", "echo"} <= codes
    assert cli("tools", "show", "mine").json["config_schema"]["required"] == ["n"]


def test_a_tool_is_shown_with_its_effect_and_listed_by_its_first_sentence(cli: Cli, write: Write) -> None:
    words = " ".join(["word"] * 30)
    own = f"""
from utools import tool

@tool(effect="read", output_schema={{"type": "string"}})
def short() -> str:
    "Say it, e.g. so.  Then more."
    return ""

@tool
def long() -> str:
    "{words}"
    return ""
"""
    write("own.py", own)
    write("agent-core.yaml", {"tools": ["own.py:short", "own.py:long"]})
    listed = {line.split()[0]: re.split(r"\s{2,}", line) for line in cli("tools").out.splitlines()}
    assert listed["short"][1:] == ["read", "Say it, e.g. so."]
    assert (listed["long"][1], listed["long"][2][-6:]) == ("write", " word…")
    assert len(listed["long"][2]) <= 100
    assert [listed[code][1] for code in ("agent_core", "http_request")] == ["run", "read or write, by method"]
    shown = cli("tools", "show", "short").json
    assert [shown[key] for key in ("effect", "idempotent", "output_schema")] == ["read", False, {"type": "string"}]
    assert cli("tools", "show", "http_request").json["effect"]["argument"] == "method"


READ_BY_A_MODEL = """
from utools import tool

@tool(effect="write")
def pay(to: str, eur: float) -> str:
    \"\"\"Pay money, e.g. a refund. Never pay more than 500 EUR.

    Args:
        to: Who gets it. An account of ours, never another.
        eur: How much.
    \"\"\"
    return "paid"
"""
PAY_AS_READ = (
    "- pay({to (Who gets it. An account of ours, never another), eur: number (How much)}): "
    "Pay money, e.g. a refund. Never pay more than 500 EUR."
)


def test_what_a_model_reads_of_a_tool_and_of_a_workflow_is_shown(cli: Cli, write: Write) -> None:
    write("own.py", READ_BY_A_MODEL)
    write("agent-core.yaml", {"tools": ["own.py:pay"]})
    assert cli("tools", "show", "pay", "--as-read").out.strip() == PAY_AS_READ
    assert cli("tools", "show", "agent_core", "--as-read").out.startswith("- agent_core({prompt?")
    config = {"model": "m", "max_steps": 3, "allowed_tools": ["pay"], "system_prompt": "Be kind to {{external.who}}."}
    agents = [
        {"id": "one", "tool": "agent_core", "config": {**config, "prompt": "Pay {{external.who}}."}},
        {"id": "two", "tool": "agent_core", "config": {**config, "prompt": "x", "protocol": "tools"}},
    ]
    inputs = {"properties": {"who": {"type": "string"}}, "required": ["who"]}
    flow = str(write("flow.json", {"id": "w", "nodes": agents, "inputs": inputs}))
    told = cli("validate", flow, "--show-prompt")
    assert told.code == 0
    one, two = told.out.split("== two ==")
    assert PAY_AS_READ in one
    assert "Be kind to {{external.who}}." in one
    assert "-- user --\nPay {{external.who}}." in one
    assert '"name": "pay"' in two
    prompts = cli("validate", flow, "--show-prompt", "--json").json["prompts"]
    assert [each["node"] for each in prompts] == ["one", "two"]
    assert "prompts" not in cli("validate", flow, "--json").json


PAIRED = {"tools": ["asks.py:token"], "base_urls": {"https://gateway.example/v1": "GATEWAY_TOKEN"}}
ASKS = """
from utools import ToolContext, tool

@tool(effect="read")
def token(context: ToolContext) -> str:
    "The gateway's key."
    return context.secret("GATEWAY_TOKEN")
"""


@pytest.mark.parametrize(
    ("value", "told"), [("gateway-token-0123456789", "[redacted:GATEWAY_TOKEN]"), ("stand-in", "stand-in")]
)
def test_key_that_is_paired_with_an_endpoint_is_hidden_unless_it_is_a_stand_in(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", value)
    write("asks.py", ASKS)
    write("agent-core.yaml", PAIRED)
    write("replies.json", [final(f"The key is {value}.")])
    write("w.json", agent())
    ran = cli("run", "w.json", "--json")
    assert ran.json["outputs"]["agent_core"]["final_answer"] == f"The key is {told}."
    assert (value in ran.out + ran.err + cli("show", ran.json["run_id"], "--json").out) is (value == told)


def test_key_that_is_paired_with_an_endpoint_is_not_for_tools(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "gateway-token-0123456789")
    write("asks.py", ASKS)
    write("agent-core.yaml", PAIRED)
    write("w.json", {"id": "w", "nodes": [{"tool": "token", "config": {}}]})
    error = cli("run", "w.json", "--json").json["error"]
    assert "the secret GATEWAY_TOKEN is not allowed" in error["message"]


def test_root_of_the_host_bounds_what_file_tools_see(cli: Cli, write: Write) -> None:
    write("docs/a.txt", "inside")
    write("secret.txt", "outside")
    write("agent-core.yaml", {"root": "docs"})
    for path, code in (("a.txt", 0), ("../secret.txt", 1)):
        write("w.json", {"id": "w", "nodes": [{"tool": "read_file", "config": {"path": path}}]})
        assert cli("run", "w.json").code == code


def test_schema_of_a_node_tells_its_legal_next_step(cli: Cli) -> None:
    legal = json.dumps(cli("schema", APPROVAL).json)
    assert '"calculator"' in legal
    assert '"final"' in legal
    assert cli("schema", APPROVAL, "--node", "agent_core").code == 0


def test_an_argument_that_is_said_twice_is_refused(cli: Cli, waiting: str, write: Write) -> None:
    doubled = '{"numbers": [1], "numbers": [2]}'
    refused = cli("decide", waiting, "edit", "--args", doubled)
    assert (refused.code, "the key 'numbers' occurs twice" in refused.err) == (2, True)
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "{{external.n}}"}}]})
    twice = cli("run", "w.json", "--input", "n=1", "--input", "n=2")
    assert (twice.code, "--input n is given twice" in twice.err) == (2, True)
    write("inputs.json", '{"n": "1", "n": "2"}')
    assert "the key 'n' occurs twice" in cli("run", "w.json", "--inputs", "inputs.json").err


def test_a_key_where_a_name_belongs_is_masked(cli: Cli, write: Write) -> None:
    key = "sk-ant-api03-" + "Ab3_" * 23 + "AbCdEfGh-AA"
    config = {"model": "openai:x", "api_key_env": key, "max_steps": 1, "prompt": "Go.", "allowed_tools": []}
    write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})
    for words in (("validate", "w.json"), ("run", "w.json"), ("validate", "w.json", "--json")):
        told = cli(*words)
        assert told.code == 3
        assert key[:40] not in told.out + told.err


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("node", "is_offered"),
    [
        ({"tool": "read_file", "config": {"path": "none.txt"}}, True),
        ({"tool": "write_file", "config": {"path": "../x", "text": "x", "root": "."}}, False),
    ],
    ids=["a read", "a write"],
)
def test_run_that_failed_over_a_read_says_how_it_is_tried_again(
    cli: Cli, write: Write, node: dict[str, Any], is_offered: bool
) -> None:
    write("w.json", {"id": "w", "nodes": [node]})
    ran = cli("run", "w.json")
    run = cli("runs", "--json").json[0]["run_id"]
    assert (ran.code, f"agent-core resume {run} --retry-failed" in ran.out) == (1, is_offered)


def test_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path) -> None:
    kept, limit = tmp_path / "log.txt", resource.getrlimit(resource.RLIMIT_FSIZE)
    output.write_whole(kept, b"old")
    kept.chmod(0o600)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            output.write_whole(kept, bytes(200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("log.txt", b"old")]
    output.write_whole(kept, b"new")
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (b"new", 0o600)
