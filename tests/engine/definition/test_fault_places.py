"""Where a fault of a definition is: its file, line and node, in a sentence and in a document."""

from pathlib import Path

import pytest

from engine_shim import DefinitionError, load_workflow
from engine_shim.definition.validate import check
from engine_shim.definition.warnings import EVERY_HOST
from engine_shim.runs.prepare import with_runs
from support.command import Cli, Write
from utools import default_registry

FLOW = """id: w
nodes:
  - tool: echo
    config: {text: x}
  - id: fetch
    tool: http_request
    config:
      method: GET
      url: 5
edges:
  - {from: echo, to: fetch, when: "len(output)"}
"""
FAULT = "must be a string, got 5"


def test_fault_has_its_file_line_and_node(cli: Cli, write: Write) -> None:
    write("flow.yaml", FLOW)
    assert cli("validate", "flow.yaml").out.splitlines() == [
        f"flow.yaml:9: nodes/1 (fetch)/config/url: {FAULT}",
        "flow.yaml:11: edges/0/when: there is no function 'len'; did you mean length?",
        f"warning: flow.yaml:7: nodes/1 (fetch)/config/allowed_domains: {EVERY_HOST}",
        "2 problems",
    ]


def test_document_has_them_as_keys(cli: Cli, write: Write) -> None:
    write("flow.yaml", FLOW)
    first, second = cli("validate", "flow.yaml", "--json").json["problems"]
    told = {"where": "nodes/1/config/url", "message": FAULT, "file": "flow.yaml", "line": 9, "node": "fetch"}
    assert first == told
    assert (second["line"], "node" in second) == (11, False)


def test_run_says_the_same(cli: Cli, write: Write) -> None:
    write("flow.yaml", FLOW)
    assert cli("run", "flow.yaml").err.splitlines() == [
        f"agent-core: flow.yaml:9: nodes/1 (fetch)/config/url: {FAULT}",
        "flow.yaml:11: edges/0/when: there is no function 'len'; did you mean length?",
    ]
    error = cli("run", "flow.yaml", "--json").json["error"]
    assert error.pop("message").startswith(FAULT)
    place = {"where": "nodes/1/config/url", "file": "flow.yaml", "line": 9, "node": "fetch"}
    assert error == {"kind": "definition", **place}


def test_run_with_another_model_says_the_same(cli: Cli, write: Write) -> None:
    write("x.json", [])
    write("flow.yaml", FLOW + "model: scripted:y.json\n")
    told = cli("run", "flow.yaml", "--model", "scripted:x.json").err
    assert told.startswith("agent-core: flow.yaml:9: nodes/1 (fetch)/config/url: ")


def test_json_has_lines_too(cli: Cli, write: Write) -> None:
    write("flow.json", '{"id": "w", "nodes": [\n  {"tool": "echo",\n   "config": {"text":\n 5}}\n]}')
    assert cli("validate", "flow.json").out.startswith("flow.json:3: nodes/0 (echo)/config/text: must be a string")


FORM = {
    "unknown key": ("    confg: {}", "flow.yaml:5: nodes/0 (a)/confg: unknown key; did you mean config?"),
    "missing key": ("  - {id: b}", "flow.yaml:5: nodes/1 (b)/tool: this key is required"),
    "unknown key of retry": (
        "    retry: {attempts: 3, max_attempts: 2}",
        "flow.yaml:5: nodes/0 (a)/retry/attempts: unknown key; did you mean max_attempts?",
    ),
    "unknown key of retry, far from all": (
        "    retry: {max_attempts: 2, xyz: 3}",
        "flow.yaml:5: nodes/0 (a)/retry/xyz: unknown key; there are max_attempts, delay, backoff",
    ),
    "unknown key of a variable": ("env: [{nam: X}]", "flow.yaml:5: env/0/nam: unknown key; did you mean name?"),
}


@pytest.mark.parametrize(("line", "told"), FORM.values(), ids=FORM)
def test_fault_of_form_has_its_line_and_names_the_keys_there(cli: Cli, write: Write, line: str, told: str) -> None:
    write("flow.yaml", f"id: w\nnodes:\n  - id: a\n    tool: echo\n{line}\n")
    assert told in cli("validate", "flow.yaml").out.splitlines()


def test_fault_of_a_sub_workflow_has_both_places(cli: Cli, write: Write, home: Path) -> None:
    write("parts/below.yaml", "id: b\nnodes:\n  - tool: echo\n    config: {txt: x}\n")
    write("flow.yaml", "id: w\nnodes:\n  - {id: sub, tool: invoke_workflow, config: {workflow: parts/below.yaml}}\n")
    first = cli("validate", "flow.yaml").out.splitlines()[0]
    above, below = "flow.yaml:3: nodes/0 (sub)/config/workflow", "parts/below.yaml:4: nodes/0 (echo)/config/txt"
    assert first.startswith(f"{above}: {below}: is not a known property")
    write("parts/below.yaml", "id: b\nnodes:\n  - tool: echo\n    confg: {txt: x}\n")
    first = cli("validate", "flow.yaml").out.splitlines()[0]
    assert first.startswith(f"{above}: parts/below.yaml:4: nodes/0 (echo)/confg: unknown key")
    assert str(home) not in first


def test_program_gets_them_in_the_error(write: Write) -> None:
    workflow = load_workflow(write("flow.yaml", FLOW))
    with pytest.raises(DefinitionError) as refused:
        check(workflow, with_runs(default_registry(), None))
    assert str(refused.value).startswith(f"{write('flow.yaml', FLOW)}:9: nodes/1 (fetch)/config/url: {FAULT}")


def test_missing_input_is_told_where_it_is_read(cli: Cli, write: Write) -> None:
    write("flow.yaml", 'id: w\nnodes:\n  - tool: echo\n    config:\n      text: "{{external.x}}"\n')
    told = cli("run", "flow.yaml").err
    assert told.startswith("agent-core: flow.yaml:5: nodes/0 (echo)/config/text: there is no 'x' in external")


UNQUOTED = {
    "as a whole": "      text: {{external.x}}",
    "at the start": "      text: {{external.x}} and more",
    "in a flow mapping": "      {text: {{external.x}}}",
    "in a list": "      texts:\n        - {{external.x}}",
    "with blanks": "      text: {{ external.x }}",
}


@pytest.mark.parametrize("config", UNQUOTED.values(), ids=UNQUOTED)
def test_placeholder_without_quotes_is_told_to_have_some(cli: Cli, write: Write, config: str) -> None:
    write("flow.yaml", f"id: w\nnodes:\n  - tool: echo\n    config:\n{config}\n")
    ran = cli("validate", "flow.yaml")
    assert ran.code == 3
    line = 5 + config.count("\n")
    assert ran.out.startswith(f"flow.yaml:{line}:")
    assert 'a value that starts with {{ must be in quotes: "{{' in ran.out


def test_placeholder_without_quotes_in_json_too(cli: Cli, write: Write) -> None:
    write("flow.json", '{"id": "w", "nodes": [{"tool": "echo", "config": {"text": {{external.x}}}}]}')
    assert 'must be in quotes: "{{' in cli("validate", "flow.json").out


def test_name_that_is_half_as_long_is_not_what_was_meant(cli: Cli, write: Write) -> None:
    write("flow.yaml", "id: w\nnodes:\n  - kind: a\n    tool: echo\n    config: {text: hi}\n    toolname: echo\n")
    out = cli("validate", "flow.yaml").out
    assert "nodes/0 (echo)/kind: unknown key; there are " in out
    assert "nodes/0 (echo)/toolname: unknown key; did you mean tool?" in out


STRANGE = {
    "a wide colon": ("- id：a\n    tool: echo", "line 3 has the character U+FF1A for ':'"),
    "a no-break space": ("- id: a\n\u00a0\u00a0\u00a0 tool: echo", "line 4 has the character U+00A0 for a blank"),
    "a space of Chinese": ("- id:\u3000a\n    tool: echo", "line 3 has the character U+3000 for a blank"),
    "a wide comma": ('- {id: a，tool: "echo": 1}', "line 3 has the character U+FF0C for ','"),
    "a dash": ("– id: a\n    tool: echo", "line 3 has the character U+2013 for '-'"),
    "quotes of typesetting": ("- {id: “a, tool: b”: c}", "line 3 has the character U+201C for '\"'"),
}


@pytest.mark.parametrize(("node", "hint"), STRANGE.values(), ids=STRANGE)
def test_character_that_only_looks_like_one_of_yaml_is_named(cli: Cli, write: Write, node: str, hint: str) -> None:
    write("flow.yaml", f"id: w\nnodes:\n  {node}\n    config: {{text: hi}}\n")
    assert hint in cli("validate", "flow.yaml").out


def test_character_within_a_text_is_no_cause(cli: Cli, write: Write) -> None:
    write("flow.yaml", "id: w\nnodes:\n  - tool: echo\n    config: {text: 你好：“a”，b}\n  -\ttool: [\n")
    ran = cli("validate", "flow.yaml")
    assert ran.out.startswith("flow.yaml:5:4: not valid YAML")
    assert "U+" not in ran.out


def test_line_of_a_text_over_several_lines_is_no_cause(cli: Cli, write: Write) -> None:
    text = "|- # what it is asked\n        List:\n          问题：a"
    write("flow.yaml", f"id: w\nnodes:\n  - tool: echo\n    config:\n      text: {text}\n  -\ttool: [\n")
    ran = cli("validate", "flow.yaml")
    assert ran.out.startswith("flow.yaml:8:4: not valid YAML")
    assert "U+" not in ran.out


def test_a_host_that_bounds_a_tool_needs_no_bound_of_the_author(cli: Cli, write: Write) -> None:
    fetch = {"id": "fetch", "tool": "http_request", "config": {"method": "GET", "url": "{{external.url}}"}}
    config = {
        "model": "scripted:x.json",
        "max_steps": 1,
        "allowed_tools": ["http_request", "write_file"],
        "prompt": "x",
    }
    write("x.json", [])
    write("flow.json", {"id": "f", "nodes": [fetch, {"id": "ask", "tool": "agent_core", "config": config}]})
    presets = {"http_request": {"allowed_domains": ["example.com"]}, "write_file": {"root": "out"}}
    write("agent-core.yaml", {"presets": presets})
    assert "warning" not in cli("validate", "flow.json").out
    write("agent-core.yaml", {"presets": {**presets, "http_request": {"allowed_methods": ["GET"]}}})
    assert cli("validate", "flow.json").out.count(EVERY_HOST) == 2


def test_configuration_of_the_host_is_no_workflow_but_is_checked_beside_them(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", "default_provider: openai\n")
    write("flow.yaml", "id: w\nnodes: [{tool: echo, config: {text: x}}]\n")
    assert cli("validate", "agent-core.yaml", "flow.yaml").out == "ok\n"
    assert "agent-core.yaml: this is a host's configuration, not a workflow" in cli("run", "agent-core.yaml").err
    write("agent-core.yaml", "agents: {desk: no-such-file.yaml}\n")
    told = cli("validate", "agent-core.yaml")
    assert "agents" in told.out + told.err
    assert "nodes" not in told.out + told.err


def test_an_agent_of_the_host_is_checked_by_its_file(cli: Cli, write: Write) -> None:
    write("agents/desk.yaml", "name: desk\nmodel: scripted:x.json\nskill_policy: {allow: [echo]}\n")
    write("x.json", [])
    assert cli("validate", "agents/desk.yaml").out == "ok\n"
    write("agents/desk.yaml", "name: desk\nmodel: scripted:x.json\nskill_policy: {allows: [echo]}\n")
    assert "agents/desk.yaml:3: skill_policy/allows: unknown key" in cli("validate", "agents/desk.yaml").out


def test_what_is_no_agent_among_agents_is_checked_as_a_workflow(cli: Cli, write: Write) -> None:
    write("agents/flow.json", {"id": "w", "nodes": [{"tool": "nonesuch"}]})
    write("agents/notes.txt", "hello")
    assert "no tool is called 'nonesuch'" in cli("validate", "agents/flow.json").out
    assert cli("validate", "agents/notes.txt").code == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: desk\nmodel: openai:x\nsystem_prompt: You help.\n", "this is an agent, not a workflow"),
        ("workflow: report\ncron: 0 6 * * *\n", "this is a trigger, not a workflow"),
        ("openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\n", "this is an OpenAPI document, not a workflow"),
    ],
)
def test_files_that_lie_beside_workflows_are_told_as_what_they_are(
    cli: Cli, write: Write, text: str, told: str
) -> None:
    write("other.yaml", text)
    for command in ("validate", "run"):
        ran = cli(command, "other.yaml")
        assert f"other.yaml: {told}; " in ran.out + ran.err
        assert "unknown key" not in ran.out + ran.err


def test_cases_are_told_as_such(cli: Cli, write: Write) -> None:
    write("cases.yaml", "cases: [{message: hi, answer: {contains: [hi]}}]\n")
    told = cli("graph", "cases.yaml").err
    assert "these are cases, not a workflow; `agent-core eval`" in told
    assert "nodes" not in told
