"""Definitions: what is read from a file, what is refused, and what the published schema says."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_core.models import ScriptedModel
from engine_shim import DefinitionError, Engine, MemoryRunStore, load_workflow
from engine_shim.definition.model import Definition, read_definition
from engine_shim.definition.validate import check, examine, validate
from engine_shim.runs.prepare import with_runs
from support.command import Cli, Write
from utools import default_registry

ROOT = Path(__file__).parents[3]
DEFINITIONS = {
    path.name: path
    for path in [*(ROOT / "fixtures/workflows").iterdir(), ROOT / "engine_shim/cli/host/demo_files/workflow.yaml"]
    if path.suffix in (".yaml", ".json") and not path.name.endswith(".replies.json")
}
ECHO = {"tool": "echo", "config": {"text": "x"}}


def agent(**config: Any) -> dict[str, Any]:
    usual = {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "p"}
    return {"tool": "agent_core", "config": {**usual, **config}}


def echoes(*texts: str) -> list[dict[str, Any]]:
    """Echo nodes with the ids a, b, c, …"""
    return [{"id": chr(97 + i), "tool": "echo", "config": {"text": text}} for i, text in enumerate(texts)]


def problems(**definition: Any) -> list[str]:
    """What is found wrong with a definition, as lines."""
    data = {"id": "w", "nodes": [ECHO], **definition}
    registry = with_runs(default_registry(), None)
    try:
        return [str(problem) for problem in validate(load_workflow(data), registry)]
    except DefinitionError as error:
        return str(error).splitlines()


FORM = {
    "unknown key": ({"nodez": []}, "nodez: unknown key; did you mean nodes?"),
    "unknown key far from all": ({"zzz": 1}, "zzz: unknown key; there are id, version, name"),
    "unknown key of a node": ({"nodes": [{**ECHO, "confg": {}}]}, "nodes/0/confg: unknown key; did you mean config?"),
    "unknown key of an edge": (
        {"edges": [{"from": "echo", "too": "echo"}]},
        "edges/0/too: unknown key; did you mean to?",
    ),
    "missing key": ({"nodes": [{"id": "a"}]}, "nodes/0/tool: this key is required"),
    "id of another form": ({"id": "a b"}, "id: must be letters, digits, _ and -, not starting with - (got 'a b')"),
    "node id with a dot": ({"nodes": [{**ECHO, "id": "a.b"}]}, "nodes/0/id: must be letters"),
    "number for a text": ({"version": 1.2}, "version: must be a text; put it in quotes (got 1.2)"),
    "no nodes": ({"nodes": []}, "nodes: must not be empty"),
    "nodes of another type": ({"nodes": {"a": 1}}, "nodes: must be a list"),
    "same id twice": ({"nodes": [ECHO, ECHO]}, "nodes/1/id: another node is called 'echo' already"),
    "edge to nowhere": ({"edges": [{"from": "echo", "to": "eco"}]}, "edges/0/to: there is no node 'eco'; did you mean"),
    "edge from nowhere": (
        {"edges": [{"from": "x", "to": "echo"}]},
        "edges/0/from: there is no node 'x'; there are echo",
    ),
    "variable of another form": ({"env": [{"nam": "A"}]}, "env/0/nam: unknown key; did you mean name?"),
    "ask without a model": (
        {"edges": [{"from": "echo", "to": "echo", "ask": "x"}]},
        "model: name the model that judges what edges/0 asks",
    ),
    "ask and when": (
        {"model": "m", "edges": [{"from": "echo", "to": "echo", "ask": "x", "when": "y"}]},
        "edges/0: takes `when` or `ask`, not both",
    ),
    "when that cannot be read": (
        {"edges": [{"from": "echo", "to": "echo", "when": "output.["}]},
        "edges/0/when: not a JMESPath: ",
    ),
    "edge twice": (
        {"edges": [{"from": "echo", "to": "echo"}] * 2},
        "edges/1: this edge from 'echo' to 'echo' is given twice",
    ),
    "on anything but error": (
        {"edges": [{"from": "echo", "to": "echo", "on": "success"}]},
        "edges/0/on: must be 'error' (got 'success')",
    ),
    "retry without a number": ({"nodes": [{**ECHO, "retry": {}}]}, "nodes/0/retry/max_attempts: this key is required"),
    "retry with none": (
        {"nodes": [{**ECHO, "retry": {"max_attempts": 0}}]},
        "nodes/0/retry/max_attempts: must be 1 or more (got 0)",
    ),
    "unknown on_error": (
        {"nodes": [{**ECHO, "on_error": "ignore"}]},
        "nodes/0/on_error: must be 'fail', 'continue' or 'fail_at_end' (got 'ignore')",
    ),
    "unknown entry": ({"entry": ["ecko"]}, "entry/0: there is no node 'ecko'; did you mean echo?"),
    "no entry": ({"entry": []}, "entry: must not be empty"),
    "unknown end": ({"ends": "ecko"}, "ends/0: there is no node 'ecko'; did you mean echo?"),
    "negative timeout": ({"timeout": -5}, "timeout: must be 0 or more (got -5)"),
    "node's timeout as text": (
        {"nodes": [{**ECHO, "timeout": "1m"}]},
        "nodes/0/timeout: must be a number",
    ),
    "not JSON": ({"name": {1, 2}}, "a value is not JSON: /name is of type set"),
}

MEANING = {
    "unknown tool": ({"nodes": [{"tool": "ecko"}]}, ["nodes/0/tool: no tool is called 'ecko'; did you mean echo?"]),
    "missing config": ({"nodes": [{"tool": "echo"}]}, ["nodes/0/config/text: is required but missing"]),
    "unknown config key": (
        {"nodes": [{"tool": "echo", "config": {"text": "x", "txt": "y"}}]},
        ['nodes/0/config/txt: is not a known property (did you mean text?), got "y"'],
    ),
    "unknown config key with a placeholder": (
        {"nodes": [{"tool": "echo", "config": {"text": "x", "txt": "{{external.y}}"}}]},
        ['nodes/0/config/txt: is not a known property (did you mean text?), got "{{external.y}}"'],
    ),
    "config of another type": (
        {"nodes": [{"tool": "echo", "config": {"text": 5}}]},
        ["nodes/0/config/text: must be a string, got 5"],
    ),
    "a placeholder may become any type": (
        {"nodes": [{"tool": "calculator", "config": {"operation": "sum", "numbers": "{{external.n}}"}}]},
        [],
    ),
    "unreadable placeholder is told once": (
        {"nodes": echoes("{{inputs.message}}")},
        ["nodes/0/config/text: a placeholder starts with one of external, env, nodes, run (got '{{inputs.message}}')"],
    ),
    "a value within a Jinja template": (
        {"nodes": [{"tool": "formatter", "config": {"template": "Hi {{external.name}}!"}}]},
        [
            "nodes/0/config/template: {{external.name}}: placeholders are not filled in inside a template; "
            "give the value in data, and use its name"
        ],
    ),
    "placeholder to no node": (
        {"nodes": echoes("x", "{{nodes.z}}")},
        ["nodes/1/config/text: {{nodes.z}}: there is no 'z' in nodes here; there are a"],
    ),
    "placeholder to itself": (
        {"nodes": echoes("x", "{{nodes.b}}")},
        ["nodes/1/config/text: {{nodes.b}}: there is no 'b' in nodes here; there are a"],
    ),
    "placeholder in outputs to no node": (
        {"outputs": {"o": "{{nodes.z}}"}},
        ["outputs/o: {{nodes.z}}: there is no 'z' in nodes here; there are echo"],
    ),
    "variable that is not listed": (
        {"nodes": echoes("{{env.HOME}}")},
        ["nodes/0/config/text: {{env.HOME}}: there is no 'HOME' in env here; there are none"],
    ),
    "input that a closed schema lacks": (
        {"inputs": {"properties": {"n": {}}, "additionalProperties": False}, "nodes": echoes("{{external.m}}")},
        ["nodes/0/config/text: {{external.m}}: there is no 'm' in external here; there are n"],
    ),
    "run has an id and messages": (
        {"nodes": echoes("{{run.at}}")},
        ["nodes/0/config/text: {{run.at}}: there is no 'at' in run here; there are id, messages"],
    ),
    "inputs that are no schema": (
        {"inputs": {"type": "objekt"}},
        [
            "inputs/type: not a valid JSON Schema: must be one of "
            '["array", "boolean", "integer", "null", "number", "object", "string"] or an array, got "objekt"'
        ],
    ),
    "inputs that require a list": (
        {"inputs": {"required": [["a"]]}, "nodes": echoes("{{external.a}}")},
        ["inputs/required/0: not a valid JSON Schema: ['a'] is not of type 'string'"],
    ),
    "an entry that leads nowhere": (
        {"entry": "a", "nodes": echoes("x", "x", "{{nodes.b}}")},
        [f"nodes/{index}: no path of edges leads from an entry to {name!r}" for index, name in ((1, "b"), (2, "c"))],
    ),
    "a circle": (
        {"nodes": echoes("{{nodes.b}}", "{{nodes.a}}")},
        ["nodes: these nodes wait for one another: a → b → a; a loop needs edges and an entry"],
    ),
    "agent with a fault in each tool": (
        {"nodes": [agent(allowed_tools=["none.*", {"tool": "echo", "preset": {"txt": 1}}, "ecko"])]},
        [
            "nodes/0/config/allowed_tools/0: no tool fits this pattern (got 'none.*')",
            "nodes/0/config/allowed_tools/1/preset/txt: /txt is not a known property (did you mean text?), got 1.",
            "nodes/0/config/allowed_tools/2: no tool is called 'ecko'; did you mean echo?",
        ],
    ),
    "agent with an unknown tool": (
        {"nodes": [agent(allowed_tools=["ecko"])]},
        ["nodes/0/config/allowed_tools/0: no tool is called 'ecko'; did you mean echo?"],
    ),
    "agent that a tool's preset does not fit": (
        {"nodes": [agent(allowed_tools=[{"tool": "echo", "preset": {"text": 5}}])]},
        ["nodes/0/config/allowed_tools/0/preset/text: /text must be a string, got 5."],
    ),
    "agent without a prompt": (
        {"nodes": [{"tool": "agent_core", "config": {"model": "m", "max_steps": 1, "allowed_tools": []}}]},
        ["nodes/0/config: give messages_json or prompt: the agent has nothing to answer"],
    ),
    "agent whose conversation a node prepares": (
        {"nodes": [*echoes("x"), agent(prompt="{{nodes.a}}")]},
        [],
    ),
    "provenance resting on a node's output": (
        {
            "nodes": [
                *echoes("x"),
                agent(prompt="{{nodes.a}}", allowed_tools=[{"tool": "echo", "provenance": {"text": "trusted"}}]),
            ]
        },
        ["nodes/1/config/prompt: takes the output of 'a', so list in trusted_text what provenance may trust"],
    ),
    "several at once": (
        {"nodes": [{"tool": "ecko"}, {"id": "b", "tool": "echo"}], "outputs": {"o": "{{nodes.z}}"}},
        [
            "nodes/0/tool: no tool is called 'ecko'; did you mean echo?",
            "nodes/1/config/text: is required but missing",
            "outputs/o: {{nodes.z}}: there is no 'z' in nodes here; there are b, ecko",
        ],
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("definition", "told"), FORM.values(), ids=FORM)
def test_fault_of_form_names_its_path_and_the_way_out(definition: dict[str, Any], told: str) -> None:
    assert [line for line in problems(**definition) if line.startswith(told)]


@pytest.mark.sampled
@pytest.mark.parametrize(("definition", "told"), MEANING.values(), ids=MEANING)
def test_fault_of_meaning_names_its_path_and_the_way_out(definition: dict[str, Any], told: list[str]) -> None:
    assert problems(**definition) == told


TEXTS = {
    "broken YAML": ("w.yaml", "id: w\nnodes:\n  - tool: echo\n   config: {}", "w.yaml:4:4: not valid YAML:"),
    "broken JSON": (
        "w.json",
        '{"id": "w",\n "nodes": [{} {}]}',
        "w.json:2:15: not valid JSON: Expecting ',' delimiter",
    ),
    "tab in YAML": (
        "w.yaml",
        "id: w\n\tnodes: []",
        "w.yaml:2:1: not valid YAML: found character '\\t' that cannot start any token; a tab: write",
    ),
    "a character that no text may have": (
        "w.yaml",
        "id: w\nname: Größe\ndescription: a\x07b\n",
        "w.yaml:3: not valid YAML: the character U+0007 may only be written as an escape",
    ),
    "one in a long file": (
        "w.yaml",
        "# é\n" * 50_000 + "id: a\x00b\n",
        "w.yaml:50001: not valid YAML: the character U+0000 may only be written as an escape",
    ),
    "two documents": (
        "w.yaml",
        "id: w\n---\nid: v\n",
        "w.yaml:2:1: not valid YAML: but found another document; a file holds one document",
    ),
    "a quote that is open": (
        "w.yaml",
        'id: "w\nnodes: []\n',
        "w.yaml:3:1: not valid YAML: found unexpected end of stream; what begins at line 1, column 5 is not closed",
    ),
    "another indentation": (
        "w.yaml",
        "nodes:\n  - id: a\n   tool: echo",
        "w.yaml:3:4: not valid YAML: expected <block end>, but found '<block mapping start>'; its indentation differs",
    ),
    "a colon in a text": ("w.yaml", "id: w: x", "w.yaml:1:6: not valid YAML: mapping values are not allowed here; a"),
    "empty": ("w.yaml", "", "w.yaml: a definition is an object with id and nodes (got None)"),
    "a list": ("w.yaml", "- a", "w.yaml: a definition is an object with id and nodes"),
    "a key twice": ("w.yaml", "id: w\nid: v", "w.yaml:2:1: not valid YAML: the key 'id' occurs twice"),
    "a key twice in JSON": ("w.json", '{"id": "w", "id": "v"}', "w.json: not valid JSON: the key 'id' occurs twice"),
    "a key that is no text": ("w.yaml", "id: w\n? [a]\n: x", "w.yaml:2:3: not valid YAML: found unhashable key"),
    "a key as it is written": ("w.yaml", "id: w\n010: x\nnodes: []", "w.yaml:2: 010: unknown key"),
    "half an emoji": ("w.json", '{"id": "\\ud83d"}', "w.json: a value is not JSON: /id holds a lone surrogate"),
    "no number": ("w.json", '{"id": NaN}', "w.json: a value is not JSON: /id is not a finite number"),
    "an endless alias": ("w.yaml", "id: w\nnodes: &a [*a]", "w.yaml: its aliases stand for more than 100000 values"),
    "an endless number": ("w.yaml", f"id: w\nx: {'1' * 5000}", "w.yaml: not valid YAML: Exceeds the limit"),
    "a name of no file": ("w\0.yaml", "", "w\0.yaml: the definition cannot be read: no file has such a name"),
    "a Python object": ("w.yaml", "id: !!python/object:os.system x", "w.yaml:1:5: not valid YAML:"),
    "nested without end": ("w.yaml", "[" * 5000, "w.yaml: nested too deeply"),
    "nested without end in JSON": ("w.json", "[" * 100_000, "w.json: not valid JSON: it is nested too deeply"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "text", "told"), TEXTS.values(), ids=TEXTS)
def test_text_that_cannot_be_read_is_told_with_its_line(write: Write, name: str, text: str, told: str) -> None:
    if "\0" not in name:
        write(name, text)
    with pytest.raises(DefinitionError) as refused:
        load_workflow(name)
    assert str(refused.value).startswith(told)


def test_aliases_that_multiply_are_refused_before_they_are_written_out(write: Write) -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 12))
    write("bomb.yaml", f"id: w\nl0: &l0 x\n{levels}")
    with pytest.raises(DefinitionError, match="more than 100000 values"):
        load_workflow("bomb.yaml")


def test_yaml_means_what_the_same_json_means(write: Write) -> None:
    write("w.yaml", "id: w\nname: no\nversion: 2024-01-01\nnodes: [{tool: echo, config: {a: 12:30, b: 010, c: on}}]\n")
    definition = load_workflow("w.yaml").definition
    assert (definition.name, definition.version) == ("no", "2024-01-01")
    assert definition.nodes[0].config == {"a": "12:30", "b": "010", "c": "on"}


def test_yaml_keeps_numbers_booleans_null_aliases_and_merges(write: Write) -> None:
    write("w.yaml", "id: w\nnodes: [{tool: t, config: {a: &a {n: -1, f: 1.5e3}, b: {<<: *a, t: true, z: ~, e: }}}]\n")
    config = load_workflow("w.yaml").definition.nodes[0].config
    assert config["b"] == {"n": -1, "f": 1500.0, "t": True, "z": None, "e": None}


def test_byte_order_mark_and_escaped_emoji_are_read(write: Write) -> None:
    write("w.json", '\ufeff{"id": "w", "name": "\\ud83d\\ude00", "nodes": [{"tool": "echo"}]}')
    assert load_workflow("w.json").definition.name == "😀"


def test_file_that_is_not_there_is_named(home: Path) -> None:
    with pytest.raises(DefinitionError, match=r"nix\.yaml: the definition cannot be read: No such file"):
        load_workflow("nix.yaml")


def test_node_takes_its_tools_code_as_id() -> None:
    nodes = [{"tool": "echo"}, {"tool": "mcp.files.read"}, {"id": "mine", "tool": "echo"}]
    assert list(load_workflow({"id": "w", "nodes": nodes}).nodes) == ["echo", "mcp_files_read", "mine"]


def test_all_problems_are_raised_together() -> None:
    workflow = load_workflow({"id": "w", "nodes": [{"tool": "ecko"}, {"id": "b", "tool": "echo"}]})
    with pytest.raises(DefinitionError) as refused:
        check(workflow, default_registry())
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == [
        "nodes/0/tool",
        "nodes/1/config/text",
    ]


# ── the published schema ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def published(cli: Cli) -> dict[str, Any]:
    schema: dict[str, Any] = cli("schema").json
    return schema


def test_published_schema_is_valid(published: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(published)


@pytest.mark.parametrize("path", DEFINITIONS.values(), ids=DEFINITIONS)
def test_shipped_definition_fits_the_published_schema_and_has_no_fault(path: Path, published: dict[str, Any]) -> None:
    workflow = load_workflow(path)
    Draft202012Validator(published).validate(workflow.as_json())
    assert validate(workflow, with_runs(default_registry(), None)) == []


@pytest.mark.parametrize(
    ("definition", "fits"),
    {
        "smallest": ({"id": "w", "nodes": [ECHO]}, True),
        "variables in both forms": ({"id": "w", "nodes": [ECHO], "env": ["A", {"name": "B", "plain": True}]}, True),
        "unknown key": ({"id": "w", "nodes": [ECHO], "nodez": 1}, False),
        "no id": ({"nodes": [ECHO]}, False),
        "node without a tool": ({"id": "w", "nodes": [{"id": "a"}]}, False),
        "edge without an end": ({"id": "w", "nodes": [ECHO], "edges": [{"from": "echo"}]}, False),
    }.values(),
)
def test_published_schema_tells_right_from_wrong(
    published: dict[str, Any], definition: dict[str, Any], fits: bool
) -> None:
    assert Draft202012Validator(published).is_valid(definition) is fits


# ── inputs ───────────────────────────────────────────────────────────────────────────────────────

SUM = {
    "id": "w",
    "inputs": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "tail": {"type": "string", "default": "!"}},
        "required": ["text", "tail"],
        "additionalProperties": False,
    },
    "nodes": [{"tool": "echo", "config": {"text": "{{external.text}}{{external.tail}}"}}],
}
NO_INPUT = {
    "missing": ({}, "external/text: is required but missing; the inputs are tail, text"),
    "of another type": ({"text": 5}, "external/text: must be a string, got 5"),
    "unknown": ({"text": "a", "txt": "b"}, "external/txt: is not a known property"),
    "not JSON": ({"text": {"a": object()}}, "external: an input is not JSON: /text/a is of type object"),
    "not a number": ({"text": float("nan")}, "external: an input is not JSON: /text is not a finite number"),
}


def engine() -> Engine:
    return Engine(store=MemoryRunStore(), model=ScriptedModel([]))


def test_declared_defaults_stand_in_for_missing_inputs() -> None:
    assert engine().run_sync(load_workflow(SUM), external={"text": "a"}).outputs == {"echo": "a!"}
    assert engine().run_sync(load_workflow(SUM), external={"text": "a", "tail": "?"}).outputs == {"echo": "a?"}


@pytest.mark.parametrize(("external", "told"), NO_INPUT.values(), ids=NO_INPUT)
def test_bad_input_is_refused_with_nothing_written(external: dict[str, Any], told: str) -> None:
    host = engine()
    with pytest.raises(DefinitionError) as refused:
        host.run_sync(load_workflow(SUM), external=external)
    assert str(refused.value).startswith(told)
    assert (host.store.entries(), host.store.journal.runs()) == ([], [])


def test_input_that_a_placeholder_takes_is_missed_before_the_run_starts() -> None:
    host = engine()
    with pytest.raises(DefinitionError, match=r"nodes/0/config/text: there is no 'x' in external; it is empty"):
        host.run_sync(load_workflow({"id": "w", "nodes": echoes("{{external.x}}")}))
    assert host.store.entries() == []


def test_missing_input_is_told_with_what_to_do() -> None:
    with pytest.raises(DefinitionError) as refused:
        engine().run_sync(load_workflow({"id": "w", "nodes": echoes("{{external.x.y}}")}), external={"a": 1})
    assert refused.value.message == (
        "there is no 'x' in external; there are a; give it (--input x=…), set its default in inputs, "
        "or write {{external.x.y?}} to get null (got '{{external.x.y}}')"
    )
    with pytest.raises(DefinitionError, match=r"there is no 'y' in external\.x; it is empty \(got"):
        engine().run_sync(load_workflow({"id": "w", "nodes": echoes("{{external.x.y}}")}), external={"x": {}})


DECLARED = {"a": {"type": "string"}, "b": {"default": 1}}
READS: dict[str, tuple[str, dict[str, Any] | None, list[str]]] = {
    "neither required nor with a default": ("{{external.a}}", {"properties": DECLARED}, ["nodes/0/config/text"]),
    "not declared": ("{{external.c.d}}", {"properties": DECLARED}, ["nodes/0/config/text"]),
    "required": ("{{external.a}}", {"properties": DECLARED, "required": ["a"]}, []),
    "with a default": ("{{external.b}}", {"properties": DECLARED}, []),
    "null where it is missing": ("{{external.a?}}", {"properties": DECLARED}, []),
    "of any inputs": ("{{external.a}}", None, []),
    "unreadable": ("{{external}} {{external.a}}", {"properties": DECLARED}, []),
}


@pytest.mark.parametrize(("text", "inputs", "warned"), READS.values(), ids=READS)
def test_input_that_a_run_may_lack_is_warned_of(text: str, inputs: dict[str, Any] | None, warned: list[str]) -> None:
    definition = {"id": "w", "nodes": echoes(text), **({"inputs": inputs} if inputs else {})}
    found = examine(load_workflow(definition), default_registry())
    assert [each.where for each in found.warnings] == warned
    assert all("add it to required, set its default, or write" in each.message for each in found.warnings)


def test_input_that_only_a_branch_reads_is_not_warned_of() -> None:
    nodes = [*echoes("x", "{{external.a}}")]
    edges = [{"from": nodes[0]["id"], "to": nodes[1]["id"], "when": "external.a"}]
    definition = {"id": "w", "inputs": {"properties": DECLARED}, "nodes": nodes, "edges": edges}
    found = examine(load_workflow({**definition, "ends": [each["id"] for each in nodes]}), default_registry())
    assert (found.problems, found.warnings) == ((), ())


def test_plain_variable_is_filled_in_and_an_absent_one_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = {"id": "w", "env": [{"name": "STAGE", "plain": True}], "nodes": echoes("{{env.STAGE}}")}
    monkeypatch.setenv("STAGE", "test")
    assert engine().run_sync(load_workflow(definition)).outputs == {"a": "test"}
    monkeypatch.delenv("STAGE")
    with pytest.raises(DefinitionError, match=r"env/0: this variable is not set \(got 'STAGE'\)"):
        engine().run_sync(load_workflow(definition))


def test_secret_variable_that_the_operator_does_not_allow_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"env/0: the secret HOME is not allowed; .* in secret_env of"):
        engine().run_sync(load_workflow({"id": "w", "env": ["HOME"], "nodes": echoes("x")}))


def test_definition_goes_through_json_unchanged() -> None:
    data = {"id": "w", "nodes": echoes("{{external.a}}"), "edges": [], "outputs": {"o": [1, {"p": None}]}}
    assert load_workflow(json.loads(json.dumps(load_workflow(data).as_json()))).as_json() == data


def test_a_copy_with_other_nodes_has_placeholders_of_its_own() -> None:
    def reading(name: str) -> Definition:
        node = {"id": "a", "tool": "echo", "config": {"text": f"{{{{{name}}}}}"}}
        return read_definition({"id": "w", "nodes": [node]})

    first, other = reading("external.one"), reading("external.two")
    assert [str(each.read) for each in first.placeholders] == ["{{external.one}}"]
    copied = first.model_copy(update={"nodes": other.nodes})
    assert [str(each.read) for each in copied.placeholders] == ["{{external.two}}"]
    assert [str(each.read) for each in copied.placeholders_by_value["nodes/0/config"]] == ["{{external.two}}"]
