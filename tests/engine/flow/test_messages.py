"""What a person reads who gave something wrong on the command line: our words, with the place and the value."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import Cli, Write

FLOW = {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "hello"}}]}
WORDS = {
    "too small": (["runs", "--limit", "0"], "--limit: must be 1 or more (got '0')"),
    "no number": (["runs", "--limit", "x"], "--limit: must be a whole number (got 'x')"),
    "too large": (["eval", "seed-scenarios", "--min-right", "3"], "--min-right: must be 1 or less (got '3')"),
    "no choice": (["eval", "c", "--protocol", "xml"], "--protocol: 'xml' is not one of 'json', 'tools'"),
    "missing": (["validate"], "Missing argument 'FLOW'. Usage: agent-core validate [OPTIONS] FLOW..."),
    "no text": (["show", os.fsdecode(b"\xff")], "argument 2 is not utf-8 text: \\xff; write it in utf-8"),
}
POLICIES = {
    "of a file": ("max_steps: many\n", [], "--policy p.yaml:1: max_steps: must be a whole number (got 'many')"),
    "by line": ("max_steps: 1\napproval: maybe\n", [], "--policy p.yaml:2: approval: must be 'never', 'always'"),
    "misspelt": ("max_stepz: 1\n", [], "--policy p.yaml:1: max_stepz: did you mean max_steps?"),
    "fixed": ("prompt: x\n", [], "--policy p.yaml:1: prompt: a replay cannot vary it, only "),
    "no object": ("[1]\n", [], '--policy p.yaml: a policy is an object, such as {"max_steps": 3}'),
    "of an option": ("{}", ["--set", "max_steps=x"], "--set max_steps: must be a whole number (got 'x')"),
}


@pytest.mark.parametrize(("words", "told"), WORDS.values(), ids=WORDS)
def test_a_wrong_word_is_told_in_one_line(cli: Cli, words: list[str], told: str) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out, ran.err) == (2, "", f"agent-core: {told}\n")


def test_directory_whose_name_is_no_text_is_named_before_a_run_begins(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = home / os.fsdecode(b"d\xe9sk")
    odd.mkdir()
    (odd / "mine.py").write_text("def say(text: str) -> str:\n    return text\n")
    (odd / "agent-core.yaml").write_text("functions: ['mine.py']\n")
    (odd / "w.json").write_text(json.dumps({"id": "w", "nodes": [{"tool": "say", "config": {"text": "hello"}}]}))
    monkeypatch.chdir(odd)
    ran = cli("run", "w.json")
    told = f"agent-core: the name of the directory is not utf-8 text: {home}/d\\xe9sk; rename it\n"
    assert (ran.code, ran.err) == (3, told)
    assert "holds no run yet" in cli("show", "last").err


@pytest.mark.sampled
@pytest.mark.parametrize(("policy", "more", "told"), POLICIES.values(), ids=POLICIES)
def test_a_wrong_policy_is_told_with_its_place(cli: Cli, write: Write, policy: str, more: list[str], told: str) -> None:
    write("w.json", FLOW)
    write("p.yaml", policy)
    assert cli("run", "w.json").code == 0
    ran = cli("replay", "last", "--policy", "p.yaml", *more)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"agent-core: {told}")


def test_every_fault_of_a_policy_is_told(cli: Cli, write: Write) -> None:
    write("w.json", FLOW)
    write("p.json", {"max_steps": "x", "model": "y", "approval": "z"})
    cli("run", "w.json")
    err = cli("replay", "last", "--policy", "p.json").err
    assert all(f"--policy p.json:1: {key}: " in err for key in ("max_steps", "model", "approval"))


def test_a_line_of_the_environment_file_that_is_none_is_told_by_its_number(
    cli: Cli, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("agent-core.yaml", "{}")
    write(".env", "this is none\nMESSAGES_A=kept\nTOKEN='hidden value\n").chmod(0o600)
    monkeypatch.setenv("MESSAGES_A", "")
    told = "this line is not read; write NAME=value, and close what is in quotes"
    assert cli("tools").err == "".join(f"agent-core: {home / '.env'}:{line}: {told}\n" for line in (1, 3))


HOST = """\
# What this host has.
root: .
tols: []
secret_env: TOKEN
mcp_servers:
  git: {comand: [git]}
"""


def test_every_fault_of_the_host_configuration_has_its_line(cli: Cli, write: Write, home: Path) -> None:
    write("agent-core.yaml", HOST)
    ran = cli("tools")
    assert (ran.code, ran.err.splitlines()) == (
        3,
        [
            "agent-core: agent-core.yaml:3: tols: unknown key; did you mean tools?",
            "agent-core.yaml:4: secret_env: must be a list (got 'TOKEN')",
            "agent-core.yaml:6: mcp_servers/git/comand: unknown key; did you mean command?",
        ],
    )


def test_an_entry_of_the_host_configuration_that_brings_no_tool_has_its_line(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", "root: .\ntools:\n  - nix.py:x\ndeny_tools: [calculatr]\n")
    err = cli("tools").err
    assert "agent-core.yaml:3: tools/0: cannot be loaded" in err
    assert "agent-core.yaml:4: deny_tools/0: no tool is called 'calculatr'; did you mean calculator?" in err


def test_a_line_that_is_no_journals_is_told_with_its_file(cli: Cli, write: Write) -> None:
    write("run.jsonl", "not a line\n")
    assert "run.jsonl is no journal: it holds neither the lines of one" in cli("show", "run.jsonl").err


READING = (
    *(["runs"], ["show", "last"], ["verify", "last"], ["replay", "last"], ["stats"], ["diff", "last", "last"]),
    *(["replay", "--all"], ["pause", "last"], ["retention", "--older-than", "1d"], ["eval", "add", "last"]),
)


@pytest.mark.sampled
@pytest.mark.parametrize("given", ["option", "variable"])
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_reads_makes_no_store(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], given: str
) -> None:
    if given == "variable":
        monkeypatch.setenv("AGENT_CORE_STORE", "no/such/runs.db")
    cli(*words, *(["--store", "no/such/runs.db"] if given == "option" else []))
    assert list(home.iterdir()) == []


# ── names of inputs ──────────────────────────────────────────────────────────────────────────────

INPUTS = {"type": "object", "properties": {"message": {"type": "string"}, "count": {"type": "integer"}}}
SAYS = {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "{{external.message}}"}}]}


def test_an_input_that_is_not_declared_is_refused(cli: Cli, write: Write) -> None:
    write("w.json", {**SAYS, "inputs": INPUTS})
    ran = cli("run", "w.json", "--input", "message=Hello", "--input", "cuont=3")
    assert (ran.code, ran.err) == (
        2,
        "agent-core: --input cuont: the workflow 'w' has no such input; did you mean count?\n",
    )


@pytest.mark.parametrize("inputs", [None, {"type": "object"}], ids=["none declared", "no names declared"])
def test_an_input_that_nothing_reads_is_warned_of(cli: Cli, write: Write, inputs: dict[str, str] | None) -> None:
    write("w.json", SAYS if inputs is None else {**SAYS, "inputs": inputs})
    ran = cli("run", "w.json", "--input", "message=Hello", "--input", "mesage=Hi", "--json")
    told = "agent-core: --input mesage: the workflow 'w' has no such input; did you mean message?\n"
    assert (ran.code, ran.json["status"], told in ran.err) == (0, "completed", True)


@pytest.mark.parametrize(
    "more",
    [
        {"inputs": {**INPUTS, "additionalProperties": True}},
        {"inputs": {**INPUTS, "patternProperties": {"^x": {}}}},
        {"outputs": {"x": "{{external.cuont?}}"}, "inputs": INPUTS},
    ],
    ids=["others are allowed", "others have a pattern", "a placeholder reads it"],
)
def test_an_input_that_the_author_allows_is_taken(cli: Cli, write: Write, more: dict[str, object]) -> None:
    write("w.json", {**SAYS, **more})
    assert cli("run", "w.json", "--input", "message=Hello", "--input", "cuont=3").code == 0


@pytest.mark.parametrize("when", ["external.mood == 'good'", "external.\"mood\" == 'good'", "contains(external, 'x')"])
def test_an_input_that_a_condition_reads_is_taken(cli: Cli, write: Write, when: str) -> None:
    nodes = [*({"id": name, "tool": "echo", "config": {"text": name}} for name in "ab")]
    write("w.json", {"id": "w", "nodes": nodes, "edges": [{"from": "a", "to": "b", "when": when}]})
    assert "no such input" not in cli("run", "w.json", "--input", "mood=good").err


def test_what_a_file_of_inputs_has_too_much_is_warned_of(cli: Cli, write: Write) -> None:
    write("w.json", {**SAYS, "inputs": INPUTS})
    write("in.json", {"message": "Hello", "cuont": 3})
    ran = cli("run", "w.json", "--inputs", "in.json")
    assert (ran.code, "the input cuont: the workflow 'w' has no such input" in ran.err) == (0, True)


# ── tools of one's own ───────────────────────────────────────────────────────────────────────────

SILENT = """
from utools import tool

@tool(effect="read")
def stock_of(article: str) -> int:
    return 12
"""


def test_a_tool_without_a_docstring_is_warned_of(cli: Cli, write: Write) -> None:
    write("shop.py", SILENT)
    write("agent-core.yaml", "tools: [shop.py:stock_of]")
    write("w.json", FLOW)
    told = "the tool stock_of has no description for the model: give its function a docstring"
    assert cli("tools").err == f"agent-core: {told}\n"
    ran = cli("validate", "w.json")
    assert (ran.code, ran.out) == (0, f"warning: tools: {told}\nok\n")
    write("other.py", SILENT.replace("    return", '    """How many pieces there are."""\n    return'))
    write("agent-core.yaml", "tools: [other.py:stock_of]")
    assert (cli("tools").err, cli("validate", "w.json").out) == ("", "ok\n")


def test_a_function_that_no_model_calls_needs_no_docstring(cli: Cli, write: Write) -> None:
    write("sums.py", "def add(a: int, b: int) -> int:\n    return a + b\n")
    write("agent-core.yaml", "functions: [sums.py]")
    write("w.json", FLOW)
    assert (cli("tools").err, cli("validate", "w.json").out) == ("", "ok\n")


@pytest.mark.exhaustive
def test_docstrings_that_python_leaves_out_are_not_asked_for(home: Path, write: Write) -> None:
    write("shop.py", SILENT.replace("    return", '    """How many pieces there are."""\n    return'))
    write("agent-core.yaml", "tools: [shop.py:stock_of]")
    write("w.json", FLOW)
    command = [sys.executable, "-OO", Path(sys.executable).with_name("agent-core"), "validate", "w.json"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "stock_of has no description for the model: Python leaves docstrings out with -OO" in ran.stdout


def test_a_misspelt_option_of_a_tool_is_told_with_its_line(cli: Cli, write: Write) -> None:
    write("mis.py", SILENT.replace("effect", "efect"))
    write("agent-core.yaml", "tools: [mis.py:stock_of]")
    assert "agent-core.yaml:1: tools/0: cannot be loaded: @tool has no option 'efect'; did you mean effect?" in (
        cli("tools").err
    )
