"""Faults that show without running: outputs that no node can have, expressions, the inputs of a sub-workflow."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core import Deny, replay
from agent_core.models import ScriptedModel
from engine_shim import DefinitionError, Engine, MemoryRunStore, load_workflow
from engine_shim.definition.inputs import doubtful_inputs, misspelt_keywords
from engine_shim.definition.validate import check, validate
from engine_shim.definition.warnings import find_warnings
from engine_shim.runs.loops import LOOPS
from engine_shim.runs.prepare import with_runs
from support.by_hand import action, final
from support.command import Cli, Write
from utools import Tool, default_registry
from utools.schema.value_shape import shape_of

FETCH = {"id": "fetch", "tool": "http_request", "config": {"method": "GET", "url": "https://example.com"}}
AGENT = {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "p"}
CLOSED = {"type": "object", "properties": {"total": {"type": "number"}}, "additionalProperties": False}


def say(text: Any, name: str = "say") -> dict[str, Any]:
    return {"id": name, "tool": "echo", "config": {"text": text}}


def agent(name: str = "writer", **config: Any) -> dict[str, Any]:
    return {"id": name, "tool": "agent_core", "config": {**AGENT, **config}}


def rows(where: str, output_schema: dict[str, Any]) -> Tool:
    return Tool(where, "Gives rows.", {"type": "object"}, lambda args, context: {}, output_schema=output_schema)


def problems(*nodes: Any, tools: tuple[Tool, ...] = (), base: Path | None = None, **keys: Any) -> list[str]:
    """What is found wrong with a definition, as lines."""
    registry = with_runs(default_registry(), None)
    for each in tools:
        registry.register(each)
    return [
        str(each) for each in validate(load_workflow({"id": "w", "nodes": list(nodes), **keys}, base=base), registry)
    ]


# ── outputs that a node cannot have ──────────────────────────────────────────────────────────────

NAMES_OF_AGENT = (
    "there are ended_at, error, final_answer, finish_reason, journal, messages_json, run_id, started_at, total_ms, "
    "trace, usage, used_tools, waiting"
)
ABSENT: dict[str, tuple[list[Any], str]] = {
    "mistyped key": ([FETCH, say("{{nodes.fetch.bdy}}")], "there is no 'bdy' in nodes.fetch; did you mean body?"),
    "mistyped key in a text": ([FETCH, say("got {{nodes.fetch.bdy.x}}")], "in nodes.fetch; did you mean body?"),
    "mistyped key that may be missing": ([FETCH, say("{{nodes.fetch.bdy?}}")], "there is no 'bdy' in nodes.fetch"),
    "below a text": ([say("x", "a"), say("{{nodes.a.text}}")], "there is no 'text' in nodes.a: it is a text"),
    "below a number": (
        [{"id": "sum", "tool": "calculator", "config": {"expression": "1+1"}}, say("{{nodes.sum.result}}")],
        "there is no 'result' in nodes.sum: it is a number",
    ),
    "of an agent": ([agent(), say("{{nodes.writer.text}}")], f"no 'text' in nodes.writer; {NAMES_OF_AGENT}"),
    "of an agent that plans": (
        [agent(mode="plan"), say("{{nodes.writer.tokens}}")],
        f"no 'tokens' in nodes.writer; {NAMES_OF_AGENT.replace('messages_json, ', 'messages_json, plan, ')}",
    ),
    "plan of an agent that makes none": ([agent(), say("{{nodes.writer.plan}}")], NAMES_OF_AGENT),
    "below an agent's text": (
        [agent(), say("{{nodes.writer.final_answer.total}}")],
        "there is no 'total' in nodes.writer.final_answer: it is a text or null",
    ),
    "below an agent's answer with a schema": (
        [agent(answer_schema=CLOSED), say("{{nodes.writer.final_answer.sum}}")],
        "there is no 'sum' in nodes.writer.final_answer; there are total",
    ),
    "of a list": (
        [
            {"id": "logs", "tool": "log_transform", "config": {"text": "x"}},
            say("{{nodes.logs.lines.first}}"),
        ],
        "there is no 'first' in nodes.logs.lines: it is a list, counted from 0",
    ),
    "error of a node whose failure ends the run": (
        [FETCH, say("{{nodes.fetch.error?}}")],
        "there is no 'error' in nodes.fetch; there are body, headers, status, truncated",
    ),
}


@pytest.mark.parametrize(("nodes", "message"), ABSENT.values(), ids=ABSENT)
def test_placeholder_to_an_output_that_a_node_cannot_have_is_a_problem(nodes: list[Any], message: str) -> None:
    (problem,) = problems(*nodes)
    assert problem.startswith("nodes/1/config/text: {{nodes.")
    assert message in problem


def test_outputs_of_the_workflow_are_read_in_the_same_way() -> None:
    (problem,) = problems(FETCH, outputs={"page": {"of": ["{{nodes.fetch.bdy}}"]}})
    assert problem.startswith(
        "outputs/page/of/0: {{nodes.fetch.bdy}}: there is no 'bdy' in nodes.fetch; did you mean body?"
    )


PRESENT: dict[str, list[Any]] = {
    "a key": [FETCH, say("{{nodes.fetch.body}}")],
    "below a key that may be anything": [FETCH, say("{{nodes.fetch.body.items.0.name}}")],
    "a header": [FETCH, say("{{nodes.fetch.headers.content-type}}")],
    "a key that is there at times": [FETCH, say("{{nodes.fetch.truncated?}}")],
    "a tool without an output schema": [
        {"id": "t", "tool": "json_transform", "config": {"data": {}, "expression": "a"}},
        say("{{nodes.t.any.thing}}"),
    ],
    "error of a node that goes on": [{**FETCH, "on_error": "continue"}, say("{{nodes.fetch.error.message?}}")],
    "an agent's outputs": [agent(), say("{{nodes.writer.usage.total_tokens}} {{nodes.writer.trace.0.action}}")],
    "below an agent's answer": [agent(answer_schema=CLOSED), say("{{nodes.writer.final_answer.total}}")],
    "below an open answer": [agent(answer_schema={"type": "object"}), say("{{nodes.writer.final_answer.sum}}")],
    "an answer whose schema is filled in later": [
        agent(answer_schema="{{external.schema}}"),
        say("{{nodes.writer.final_answer.sum}}"),
    ],
    "a conversation": [
        {"id": "ctx", "tool": "context_manager", "config": {"op": "load", "session_id": "s"}},
        say("{{nodes.ctx.0.content}}"),
    ],
}


@pytest.mark.parametrize("nodes", PRESENT.values(), ids=PRESENT)
def test_placeholder_to_an_output_that_may_be_there_is_none(nodes: list[Any]) -> None:
    assert problems(*nodes) == []


def test_a_failed_nodes_error_edge_reads_what_it_left() -> None:
    edges = [{"from": "fetch", "to": "say"}, {"from": "fetch", "to": "sorry", "on": "error"}]
    nodes = FETCH, say("{{nodes.fetch.status}}"), say("{{nodes.fetch.error.message}}", "sorry")
    assert problems(*nodes, edges=edges) == []
    assert "no 'eror' in nodes.fetch" in problems(*nodes[:2], say("{{nodes.fetch.eror}}", "sorry"), edges=edges)[0]


SCHEMAS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "open object": ({"type": "object", "properties": {"a": {}}}, "b", True),
    "closed object": ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, "b", False),
    "map": ({"type": "object", "additionalProperties": {"type": "string"}}, "b", True),
    "below a map's text": ({"type": "object", "additionalProperties": {"type": "string"}}, "b.c", False),
    "pattern": ({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False}, "x1", True),
    "one of several": ({"anyOf": [CLOSED, {"type": "string"}]}, "total", True),
    "none of several": ({"anyOf": [CLOSED, {"type": "string"}]}, "b", False),
    "reference": ({"$ref": "#/$defs/c", "$defs": {"c": CLOSED}}, "b", False),
    "reference to itself": ({"$ref": "#/$defs/c", "$defs": {"c": {"$ref": "#/$defs/c"}}}, "b", True),
    "items": ({"type": "array", "items": CLOSED}, "0.b", False),
    "first items": ({"type": "array", "prefixItems": [CLOSED, {}]}, "1.b", True),
    "joined schemas are not looked into": ({"allOf": [CLOSED]}, "b", True),
    "constant": ({"const": "x"}, "b", False),
    "any value": ({}, "b", True),
}


@pytest.mark.parametrize(("schema", "path", "possible"), SCHEMAS.values(), ids=SCHEMAS)
def test_output_schema_of_any_tool_says_what_its_node_can_have(schema: Any, path: str, possible: bool) -> None:
    found = problems({"tool": "rows"}, say(f"{{{{nodes.rows.{path}}}}}"), tools=(rows("rows", schema),))
    assert (found == []) is possible


def test_recursive_schema_is_followed_along_a_long_path() -> None:
    inner = {"$ref": "#/$defs/json"}
    kinds = [{"type": "object", "additionalProperties": inner}, {"type": "array", "items": inner}, {"type": "string"}]
    shape = shape_of({**inner, "$defs": {"json": {"anyOf": kinds}}})
    for _ in range(10):
        shape = shape.at("0")
        assert len(shape.alternatives) == len(kinds)


def test_schema_that_names_itself_twice_is_open() -> None:
    inner = {"$ref": "#/$defs/json"}
    assert shape_of({**inner, "$defs": {"json": {"anyOf": [inner, inner]}}}).is_open


# ── conditions and expressions ───────────────────────────────────────────────────────────────────


def forked(when: str, *nodes: Any, source: str = "fetch", **keys: Any) -> list[str]:
    edges = [{"from": source, "to": "say", "when": when}]
    return problems(*(nodes or (FETCH,)), say("x"), edges=edges, ends=[source, "say"], **keys)


CONDITIONS: dict[str, tuple[str, str]] = {
    "unknown function": ("lenght(output.body) > `0`", "there is no function 'lenght'; did you mean length?"),
    "too few arguments": ("contains(output.body)", "contains takes 2 arguments, not 1"),
    "too many arguments": ("length(output, output)", "length takes 1 argument, not 2"),
    "none for one that takes any number": ("merge()", "merge takes at least 1 argument, not 0"),
    "within a projection": ("output.body.items[?lenght(@) > `0`]", "there is no function 'lenght'"),
    "unknown root": ("outputs.status == `200`", "there is no 'outputs' here; did you mean output?"),
    "unknown output": ("output.stats == `200`", "there is no 'stats' in output; did you mean status?"),
    "within a function": ("contains(output.boddy, 'x')", "there is no 'boddy' in output"),
    "within or": ("output.status == `200` || output.stats", "there is no 'stats' in output"),
    "unknown node": ("nodes.fetsch.status", "there is no 'fetsch' in nodes; did you mean fetch?"),
    "unknown output of a node": ("nodes.fetch.stats", "there is no 'stats' in nodes.fetch"),
    "unknown input": ("external.tier == 'a'", "there is no 'tier' in external; there are n"),
    "a name behind the negation": ("!output.body", "!output.… gives nothing in any case, as ! takes output alone"),
    "a text in double quotes": ('output.body == "sold"', "there are external, nodes, output; a text is written 'sold'"),
    "true as a name": ("output.body == true", "there is no 'true' here: write the value in backticks, `true`"),
    "false as a name": ("false == output.body", "there is no 'false' here: write the value in backticks, `false`"),
}


@pytest.mark.parametrize(("when", "message"), CONDITIONS.values(), ids=CONDITIONS)
def test_condition_that_can_never_be_judged_is_a_problem(when: str, message: str) -> None:
    inputs = {"type": "object", "properties": {"n": {}}, "additionalProperties": False}
    (problem,) = forked(when, inputs=inputs)
    assert problem.startswith("edges/0/when: ")
    assert message in problem


SOUND = (
    "output.status == `200`",
    "output.body.items[?price > `3`].name | length(@) > `0`",
    "output.body.*.name",
    "output.headers.\"content-type\" == 'x'",
    "sort_by(output.body.rows, &price)[0].price > `3`",
    "[output.status, output.body] | [0] == `200`",
    "{a: output.status}.a == `200`",
    "keys(nodes.fetch)",
    "not_null(output.truncated, '') != ''",
    "map(&name, output.body)[0]",
    "output.body[] | [0:3]",
    "!(external.n) && (output.status || `1`)",
    "to_string(output) == ''",
    "output.truncated == null",
    "output.truncated != null && null == output.body",
)


@pytest.mark.parametrize("when", SOUND)
def test_condition_that_may_hold_is_none(when: str) -> None:
    assert forked(when) == []


def test_input_whose_name_fits_a_pattern_may_be_there() -> None:
    inputs = {"type": "object", "patternProperties": {"^x_": {}}, "additionalProperties": False}
    assert forked("external.x_1 == 'a'", say("{{external.x_2}}", "fetch"), inputs=inputs) == []


def test_error_edges_condition_reads_what_a_failed_node_left() -> None:
    edge = {"from": "fetch", "to": "say", "on": "error", "when": "output.error.kind == 'timeout'"}
    assert problems(FETCH, say("x"), edges=[edge]) == []
    mistyped = {**edge, "when": "output.eror.kind == 'timeout'"}
    assert "no 'eror' in output; did you mean error?" in problems(FETCH, say("x"), edges=[mistyped])[0]


def transform(expression: str, data: Any = None) -> dict[str, Any]:
    return {"id": "pick", "tool": "json_transform", "config": {"data": data, "expression": expression}}


EXPRESSIONS: dict[str, tuple[dict[str, Any], str]] = {
    "cannot be read": (transform("a.["), "expression: JMESPath: "),
    "unknown function": (transform("len(@)"), "expression: JMESPath: there is no function 'len'"),
    "arithmetic": ({"id": "sum", "tool": "calculator", "config": {"expression": "2 +"}}, "expression: "),
    "no time": (
        {"tool": "log_transform", "config": {"text": "x", "since": "yesterday"}},
        "since: since must be a time in ISO 8601",
    ),
    "a template": ({"tool": "formatter", "config": {"template": "{% if x %}"}}, "template: line 1: Unexpected end"),
    "no arithmetic": ({"id": "sum", "tool": "calculator", "config": {"expression": "foo(2)"}}, "expression: "),
}


@pytest.mark.parametrize(("node", "message"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_constant_expression_is_read_before_anything_runs(node: dict[str, Any], message: str) -> None:
    (problem,) = problems(node)
    assert problem.startswith(f"nodes/0/config/{message}")


def test_constant_expression_in_a_preset_is_read_too() -> None:
    entry = {"tool": "json_transform", "preset": {"expression": "len(@)"}}
    (problem,) = problems(agent(allowed_tools=[entry]))
    assert problem.startswith("nodes/0/config/allowed_tools/0/preset/expression: JMESPath: there is no function 'len'")


def test_constant_expression_may_fail_where_the_run_goes_on() -> None:
    node = {"id": "sum", "tool": "calculator", "config": {"expression": "1/0"}}
    assert problems({**node, "on_error": "continue"}) == []
    assert problems(node, say("x"), edges=[{"from": "sum", "to": "say", "on": "error"}]) == []
    assert len(problems(node)) == 1


def test_expression_that_is_filled_in_later_is_not_read() -> None:
    assert problems(
        transform("{{external.expression}}"), FETCH, transform("len(@)") | {"id": "b", "tool": "echo2"}
    ) == ["nodes/2/tool: no tool is called 'echo2'; did you mean echo?"]


def test_tool_that_is_near_to_no_other_is_told_with_where_own_tools_are_named() -> None:
    (found,) = problems({"id": "a", "tool": "zzzzzz", "config": {}})
    assert found.startswith("nodes/0/tool: no tool is called 'zzzzzz'; there are: ")
    assert found.endswith("; tools of your own are named in `tools` of agent-core.yaml")


# ── agents that are tools of another ─────────────────────────────────────────────────────────────

WORKER = {"model": "m", "max_steps": 4, "allowed_tools": []}
PRESET = "nodes/0/config/allowed_tools/0/preset"


def employing(**preset: Any) -> dict[str, Any]:
    return agent(allowed_tools=[{"tool": "agent_core", "preset": {**WORKER, **preset}}])


def test_agent_that_is_a_tool_is_prepared_too() -> None:
    assert problems(employing(allowed_tools=["echo"])) == []
    found = problems(employing(allowed_tools=["echo", "nosuch", "nor_this"]))
    assert [each.partition(": ")[0] for each in found] == [f"{PRESET}/allowed_tools/1", f"{PRESET}/allowed_tools/2"]
    deeper = {"tool": "agent_core", "preset": {**WORKER, "allowed_tools": ["nosuch"]}}
    (problem,) = problems(employing(allowed_tools=[deeper]))
    assert problem.startswith(f"{PRESET}/allowed_tools/0/preset/allowed_tools/0: ")


def test_preset_of_an_agent_that_is_filled_in_later_is_not_checked() -> None:
    assert problems(employing(allowed_tools="{{external.tools}}", prompt="{{external.task}}")) == []


def test_agent_that_is_a_tool_is_checked_where_its_employer_is_not_known() -> None:
    preset = {"model": "m", "max_steps": 4, "language": "en"}
    later = {"tool": "echo", "preset": {"text": "{{external.text}}"}}
    found = problems(agent(allowed_tools=[later, {"tool": "agent_core", "preset": preset}]))
    assert [each.partition(": ")[0] for each in found] == ["nodes/0/config/allowed_tools/1/preset/allowed_tools"]


def test_model_of_an_agent_that_is_a_tool_must_be_there(cli: Cli, write: Write) -> None:
    write("replies.json", ['{"type":"final","answer":"x"}'])
    node = employing(model="scripted:missing.json")
    node["config"]["model"] = "scripted:replies.json"
    ran = cli("validate", str(write("flow.json", {"id": "w", "nodes": [node]})), "--json")
    assert (ran.code, [each["where"] for each in ran.json["problems"]]) == (3, [f"{PRESET}/model"])


# ── sub-workflows ────────────────────────────────────────────────────────────────────────────────

BELOW = {
    "id": "below",
    "inputs": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "nodes": [say("{{external.city}}", "said"), {**FETCH, "id": "page"}],
    "outputs": {"answer": "{{nodes.said}}", "whole": "{{nodes.page}}", "both": "a {{nodes.said}}"},
}
INVOKED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "missing": ({}, ["inputs/city: is required but missing; the inputs are city, days"]),
    "unknown": ({"city": "Rome", "dys": 2}, ["inputs/dys: is not a known property (did you mean days?), got 2"]),
    "of another type": ({"city": 5}, ["inputs/city: must be a string, got 5"]),
    "right": ({"city": "Rome", "days": 2}, []),
    "filled in later": ({"city": "{{external.city}}", "days": "{{external.days}}"}, []),
    "unknown and filled in later": (
        {"city": "Rome", "dys": "{{external.days}}"},
        ['inputs/dys: is not a known property (did you mean days?), got "{{external.days}}"'],
    ),
}


@pytest.fixture
def below(write: Write) -> Path:
    write("open.json", {"id": "open", "nodes": [say("{{external.city}} {{external.land?}}")]})
    return write("below.json", BELOW).parent


@pytest.mark.parametrize(("inputs", "told"), INVOKED.values(), ids=INVOKED)
def test_inputs_of_a_sub_workflow_are_checked_before_anything_runs(below: Path, inputs: Any, told: list[str]) -> None:
    node = {"tool": "invoke_workflow", "config": {"workflow": "below.json", "inputs": inputs}}
    found = problems(node, base=below)
    assert [each.partition("; the inputs are")[0] for each in found] == [
        f"nodes/0/config/{each}".partition("; the inputs are")[0] for each in told
    ]


def test_input_that_a_sub_workflow_reads_and_does_not_declare_is_missed(below: Path) -> None:
    node = {"tool": "invoke_workflow", "config": {"workflow": "open.json", "inputs": {"town": "Rome"}}}
    (problem,) = problems(node, base=below)
    assert problem.startswith("nodes/0/config/inputs: open.json reads {{external.city}}, which is not among them")


def test_inputs_as_a_whole_from_a_placeholder_are_not_known(below: Path) -> None:
    node = {"tool": "invoke_workflow", "config": {"workflow": "below.json", "inputs": "{{external.all}}"}}
    assert problems(node, base=below) == []


def test_inputs_that_a_model_gives_are_not_known(below: Path) -> None:
    open_, fixed = ({"workflow": "below.json", **more} for more in ({}, {"inputs": {"dys": 1}}))
    assert problems(agent(allowed_tools=[{"tool": "invoke_workflow", "preset": open_}]), base=below) == []
    found = problems(agent(allowed_tools=[{"tool": "invoke_workflow", "preset": fixed}]), base=below)
    assert [each.partition(": ")[0] for each in found] == [
        "nodes/0/config/allowed_tools/0/preset/inputs/dys",
        "nodes/0/config/allowed_tools/0/preset/inputs/city",
    ]


OUTPUTS: dict[str, tuple[str, str]] = {
    "of a declared output": (
        "outputs.answr",
        "there is no 'answr' in nodes.sub.outputs; did you mean answer?",
    ),
    "below a declared text": ("outputs.answer.x", "there is no 'x' in nodes.sub.outputs.answer: it is a text"),
    "below a text with a placeholder": ("outputs.both.x", "there is no 'x' in nodes.sub.outputs.both: it is a text"),
    "of a node in it": ("outputs.page.body", "there is no 'page' in nodes.sub.outputs; there are answer, both, whole"),
    "below a declared output": ("outputs.whole.bdy", "no 'bdy' in nodes.sub.outputs.whole; did you mean body?"),
    "of the run": ("answer", "there is no 'answer' in nodes.sub; there are error, journal, outputs, path, run_id"),
}


@pytest.mark.parametrize(("path", "message"), OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_of_a_sub_workflow_are_known(below: Path, path: str, message: str) -> None:
    node = {"id": "sub", "tool": "invoke_workflow", "config": {"workflow": "below.json", "inputs": {"city": "Rome"}}}
    (problem,) = problems(node, say(f"{{{{nodes.sub.{path}}}}}"), base=below)
    assert message in problem
    assert problems(node, say("{{nodes.sub.outputs.answer}} {{nodes.sub.outputs.whole.body.x}}"), base=below) == []


def test_failed_sub_workflow_leaves_the_errors_of_its_nodes(write: Write) -> None:
    bad = {"id": "f", "tool": "calculator", "config": {"expression": "{{external.sum?}}"}}
    inner = {"id": "inner", "nodes": [bad]}
    base = write("inner.json", inner).parent
    sub = {"id": "sub", "tool": "invoke_workflow", "config": {"workflow": "inner.json", "inputs": {"sum": "1/0"}}}
    write("outer.json", {"id": "outer", "nodes": [sub]})
    goes_on = {**sub, "on_error": "continue"}
    told = say("{{nodes.sub.outputs.f.error.message?}}")
    assert problems(goes_on, told, base=base) == []
    assert "no 'error' in nodes.sub.outputs.f: it is a number" in problems(sub, told, base=base)[0]
    assert "no 'eror' in" in problems(goes_on, say("{{nodes.sub.outputs.f.eror?}}"), base=base)[0]
    edge = {"from": "sub", "to": "say", "on": "error", "when": "output.outputs.f.error.kind == 'error'"}
    assert problems(sub, say("x"), edges=[edge], base=base) == []
    outer = {**goes_on, "config": {"workflow": "outer.json"}}
    assert problems(outer, say("{{nodes.sub.outputs.sub.outputs.f.error.message?}}"), base=base) == []
    ran = Engine(store=MemoryRunStore()).run_sync(load_workflow({"id": "w", "nodes": [goes_on, told]}, base=base))
    assert (ran.status, "zero" in ran.outputs["say"]) == ("completed", True)


def test_failed_sub_workflow_that_declares_outputs_leaves_none(write: Write) -> None:
    bad = {"id": "f", "tool": "calculator", "config": {"expression": "{{external.sum?}}"}}
    base = write("inner.json", {"id": "inner", "nodes": [bad], "outputs": {"total": "{{nodes.f}}"}}).parent
    config = {"workflow": "inner.json", "inputs": {"sum": "1/0"}}
    goes_on = {"id": "sub", "tool": "invoke_workflow", "config": config, "on_error": "continue"}
    told = say("{{nodes.sub.error.message}} {{nodes.sub.outputs}} {{nodes.sub.outputs.total?}}")
    assert "there is no 'f' in nodes.sub.outputs" in problems(goes_on, say("{{nodes.sub.outputs.f?}}"), base=base)[0]
    ran = Engine(store=MemoryRunStore()).run_sync(load_workflow({"id": "w", "nodes": [goes_on, told]}, base=base))
    assert ran.status == "completed"
    assert "zero" in ran.outputs["say"]
    assert ran.outputs["say"].endswith(" {} ")
    assert ran.outputs["sub"]["outputs"] == {}


def test_faults_of_a_sub_workflow_are_told_beside_those_of_its_outputs(write: Write) -> None:
    base = write("below.json", {"id": "b", "nodes": [say("x")], "outputs": {"o": "{{nodes say}}"}}).parent
    node = {"id": "sub", "tool": "invoke_workflow", "config": {"workflow": "below.json"}}
    found = problems(node, say("{{nodes.sub.outputs.o.x}} {{nodes.sub.out}}"), base=base)
    assert [each.partition(": ")[0] for each in found] == ["nodes/0/config/workflow", "nodes/1/config/text"]


def test_fault_within_a_sub_workflow_is_not_one_of_its_reader(write: Write) -> None:
    base = write("below.json", {"id": "b", "nodes": [say("x")], "outputs": {"o": "{{nodes.say.text}}"}}).parent
    node = {"id": "sub", "tool": "invoke_workflow", "config": {"workflow": "below.json"}}
    (problem,) = problems(node, say("{{nodes.sub.outputs.o}}"), base=base)
    assert "below.json:1: outputs/o: {{nodes.say.text}}" in problem


def test_schema_that_is_none_is_told_once() -> None:
    (problem,) = problems(agent(answer_schema={"anyOf": 5}), say("{{nodes.writer.final_answer.x}}"))
    assert problem.startswith("nodes/0/config/answer_schema")


@pytest.mark.parametrize("when", ["|".join(["@"] * 5000), "||".join(["output.body"] * 5000)], ids=["pipe", "or"])
def test_long_condition_is_read(when: str) -> None:
    assert forked(when) == []


# ── the output that counts ───────────────────────────────────────────────────────────────────────


def test_mistyped_primary_output_is_a_problem() -> None:
    wrong = "there is no output 'final_anwser'; did you mean final_answer?"
    assert problems(agent(primary_output="final_anwser")) == [f"nodes/0/config/primary_output: {wrong}"]
    entry = {"tool": "agent_core", "preset": {**AGENT, "primary_output": "final_anwser"}}
    assert problems(agent(allowed_tools=[entry])) == [f"nodes/0/config/allowed_tools/0/preset/primary_output: {wrong}"]
    assert problems(agent(primary_output="usage")) == []


def test_run_shows_the_primary_output(cli: Cli, write: Write) -> None:
    write("replies.json", ['{"type":"final","answer":"secret plan"}'])
    node = agent(model="scripted:replies.json", primary_output="finish_reason")
    ran = cli("run", str(write("flow.json", {"id": "w", "nodes": [node]})))
    assert ran.out.splitlines()[0] == "writer: final"


def test_run_shows_the_answer_of_each_item_of_an_agent(cli: Cli, write: Write) -> None:
    write("replies.json", {"flow/writer.1/0.0": ['{"type":"final","answer":"fine"}'], "flow/writer.1/0.1": []})
    node = {**agent(model="scripted:replies.json"), "foreach": ["a", "b"], "on_item_error": "continue"}
    ran = cli("run", str(write("flow.json", {"id": "w", "nodes": [node]})))
    assert ran.out.splitlines()[0] == 'writer: ["fine", null]'
    assert "writer     1 item, 1 step, 0 tool calls, about " in ran.out


# ── runs that began earlier ──────────────────────────────────────────────────────────────────────


def test_a_run_is_refused_for_these_faults_before_anything_is_written() -> None:
    host = Engine(store=MemoryRunStore())
    with pytest.raises(DefinitionError, match=r"there is no 'bdy' in nodes\.fetch"):
        host.run_sync(load_workflow({"id": "w", "nodes": [FETCH, say("{{nodes.fetch.bdy}}")]}))
    assert host.store.journal.runs() == []


def test_check_of_a_run_that_began_earlier_refuses_only_what_cannot_run() -> None:
    workflow = load_workflow({"id": "w", "nodes": [FETCH, say("{{nodes.fetch.bdy}}")]})
    registry = with_runs(default_registry(), None)
    assert check(workflow, registry, begun=True).definition is workflow.definition
    with pytest.raises(DefinitionError):
        check(workflow, registry)
    with pytest.raises(DefinitionError, match="no tool is called"):
        check(load_workflow({"id": "w", "nodes": [{"tool": "ecko"}]}), registry, begun=True)


DEAD = {"from": "last", "to": "never", "when": "lenght(output) == `0`", "on": "error"}
"""An edge that is not taken, with a condition that cannot be evaluated."""


async def began_earlier(base: Path) -> tuple[Engine, Any, Any]:
    """A run that waits, of a definition that could be begun under an older version; its engine and its result."""
    inner = {"id": "inner", "nodes": [say("x", "last"), say("x", "never")], "edges": [DEAD]}
    (base / "inner.json").write_text(json.dumps(inner))
    ask = agent("ask", allowed_tools=["echo"], max_steps=2, approval="always")
    after = {"id": "last", "tool": "invoke_workflow", "config": {"workflow": "inner.json"}}
    edges = [{"from": "ask", "to": "last"}, DEAD]
    data = {"id": "w", "nodes": [ask, after, say("x", "never")], "edges": edges}
    replies = [action("echo", text="x"), final("done")]
    engine = Engine(store=MemoryRunStore(), model=ScriptedModel(replies))
    workflow = load_workflow(data, base=base)
    result = await engine.run(check(workflow, engine.registry, begun=True), run_id="r")
    assert result.status == "waiting"
    return engine, workflow, result


async def test_run_that_began_earlier_goes_on(tmp_path: Path) -> None:
    engine, workflow, result = await began_earlier(tmp_path)
    with pytest.raises(DefinitionError, match="no function 'lenght'"):
        await engine.run(workflow, run_id="another")
    assert (await engine.run(workflow, run_id="r")).status == "waiting"
    place = result.waiting[0]["strand"], result.waiting[0]["n"]
    ended = await engine.resume("r", decisions={place: Deny("no")})
    assert (ended.status, ended.error) == ("completed", None)
    assert replay(engine.store.journal, run_id="r", loops=LOOPS).identical


@pytest.mark.parametrize("model", [{"a": 1}, ["m"], 3, None, True])
def test_model_that_is_no_text_is_a_fault_like_any_other(cli: Cli, tmp_path: Path, model: object) -> None:
    config = {"model": model, "fallback_models": [model], "max_steps": 2, "allowed_tools": [], "prompt": "x"}
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"id": "f", "nodes": [{"tool": "agent_core", "config": config}]}))
    told = cli("validate", str(path))
    assert (told.code, "config/model" in told.out + told.err) == (3, True)


def test_a_pattern_that_may_be_meant_for_a_part_of_the_text_is_explained(cli: Cli, write: Write) -> None:
    def told(args: Any) -> str:
        entry = {"tool": "echo", "args": args}
        config = {"model": "scripted:r.json", "max_steps": 3, "allowed_tools": [entry], "prompt": "x"}
        flow = {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]}
        return cli("validate", str(write("flow.json", flow))).out

    write("r.json", [])
    warned = told({"properties": {"text": {"pattern": "^www"}}})
    assert "args/properties/text/pattern: '^www' must match the whole text" in warned
    assert "'^www$'" in warned
    assert "under not" in warned
    assert told({"properties": {"text": {"not": {"pattern": "www"}}}}) == "ok\n"
    assert "not a valid JSON Schema" in told({"properties": {"text": {"pattern": ["www"]}}})
    assert "not a valid JSON Schema" in told({"properties": [1]})


INPUTS = {
    "type": "object",
    "properties": {"message": {"type": "string"}, "rows": {"type": "array", "items": {"type": "object"}}, "any": {}},
    "required": ["message", "rows", "any"],
}


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (say("{{external.mesage}}"), "there is no 'mesage' in external; did you mean message?"),
        (say("{{external.message.text}}"), "there is no 'text' in external.message: it is a text"),
        ({**say("{{item}}"), "foreach": "{{external.message}}"}, "{{external.message}} gives no list: it is a text"),
        (say("{{external.message}}"), None),
        (say("{{external.any.text}}"), None),
        (say("{{external.mesage?}}"), None),
        ({**say("{{item}}"), "foreach": "{{external.rows}}"}, None),
        ({**say("{{item}}"), "foreach": "{{external.any}}"}, None),
    ],
    ids=["misspelled", "below a text", "each of a text", "listed", "below anything", "optional", "list", "anything"],
)
def test_what_the_inputs_do_not_have_is_found(node: dict[str, Any], told: str | None) -> None:
    found = problems(node, inputs=INPUTS)
    assert [told in each for each in found] == ([True] if told else [])
    assert problems(node, inputs={**INPUTS, "additionalProperties": True}) == ([] if "mesage" in str(node) else found)


LOOPBACK = "is this machine, and only public hosts are reached; to allow it, write allow_cidrs: [127.0.0.1/32]"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"url": "http://127.0.0.1:8000/orders"}, f"127.0.0.1 {LOOPBACK}"),
        ({"url": "http://localhost/{{external.id}}"}, f"localhost {LOOPBACK}"),
        ({"url": "http://10.1.2.3/"}, "write allow_cidrs: [10.1.2.3/32]"),
        ({"url": "http://[::1]/"}, "write allow_cidrs: [::1/128]"),
        ({"url": "http://127.0.0.1/", "allow_cidrs": ["10.0.0.0/8"]}, LOOPBACK),
        ({"url": "http://127.0.0.1/", "allow_cidrs": ["127.0.0.0/8"]}, None),
        ({"url": "http://10.1.2.3/", "allow_cidrs": ["10.0.0.0/8"]}, None),
        ({"url": "https://example.com/"}, None),
        ({"url": "{{external.url}}"}, None),
    ],
    ids=str,
)
def test_a_fixed_url_that_may_not_be_reached_is_found_with_what_to_write(config: Any, told: str | None) -> None:
    found = problems({"id": "a", "tool": "http_request", "config": config})
    assert [told in each for each in found] == ([True] if told else [])
    preset = {"tool": "http_request", "preset": config}
    of_agent = problems(agent(allowed_tools=[preset]))
    assert [told in each for each in of_agent] == ([True] if told else [])


# ── the item of a list ───────────────────────────────────────────────────────────────────────────


def each_of(text: str, foreach: Any = "{{nodes.files.results}}") -> list[dict[str, Any]]:
    files = {"id": "files", "tool": "read_file", "foreach": ["a.txt"], "config": {"path": "{{item}}"}}
    return [files, {**say(text), "foreach": foreach}]


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        (each_of("{{item.text}}"), None),
        (each_of("{{item.txt}}"), "{{item.txt}}: there is no 'txt' in item; did you mean text?"),
        (each_of("{{item.txt?}}"), "there is no 'txt' in item"),
        (each_of("{{item.text.first}}"), "there is no 'first' in item.text: it is a text"),
        (each_of("{{item.any}}", [{"any": 1}]), None),
        (each_of("{{item.x}}", "{{external.list}}"), None),
        (each_of("{{item.x}}", "{{nodes.files.errors}}"), "there is no 'x' in item; there are index, kind, message"),
    ],
    ids=["known", "mistyped", "mistyped and optional", "below a text", "a list as it is", "an input", "of a schema"],
)
def test_what_an_item_does_not_have_is_found(nodes: list[Any], told: str | None) -> None:
    found = problems(*nodes)
    assert [told in each for each in found] == ([True] if told else [])


def test_item_of_what_is_no_list_is_told_once() -> None:
    (told,) = problems(say("x", "a"), {**say("{{item.x}}"), "foreach": "{{nodes.a}}"})
    assert "gives no list" in told


# ── what an author may not mean ──────────────────────────────────────────────────────────────────


def test_a_placeholder_in_single_braces_is_told_to_stay_as_it_is() -> None:
    texts = ["{external.name}, ${nodes.a.x}", "{{external.name}}", "{name} {external.}"]
    flow = load_workflow({"id": "w", "nodes": [{"id": "a", "tool": "echo", "config": {"text": texts}}]})
    assert [str(each) for each in find_warnings(flow.definition, lambda *_: True, {}, lambda _: True)] == [
        "nodes/0/config/text/0: {external.name} stays as it is: a placeholder has two braces, {{external.name}}",
        "nodes/0/config/text/0: ${nodes.a.x} stays as it is: a placeholder has two braces, {{nodes.a.x}}",
    ]


def test_a_placeholder_in_a_key_is_told_to_stay_as_it_is() -> None:
    config = {"headers": {"{{external.name}}": 1}, "template": "{{ x }}"}
    flow = load_workflow({"id": "w", "nodes": [{"id": "a", "tool": "set", "config": config}]})
    (told,) = map(str, find_warnings(flow.definition, lambda *_: True, {}, lambda _: True))
    assert told == (
        "nodes/0/config/headers: the key '{{external.name}}' stays as it is: placeholders are filled in values alone"
    )


def test_inputs_that_no_run_can_have_are_told() -> None:
    say_it = {"id": "a", "tool": "echo", "config": {"text": "x"}}
    other = load_workflow({"id": "w", "inputs": {"type": ["array", "null"]}, "nodes": [say_it]})
    assert ["inputs/type: " in each for each in map(str, doubtful_inputs(other.definition, {"a"}))] == [True]
    inputs = {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}
    unlisted = load_workflow({"id": "w", "inputs": inputs, "nodes": [say_it]})
    assert list(map(str, doubtful_inputs(unlisted.definition, {"a"}))) == [
        "inputs/required/1: b is none of the properties: servers and commands refuse it, and every run without it"
    ]


def test_a_model_that_no_edge_asks_is_told() -> None:
    nodes, edge = [say("x", "a"), say("y", "b")], {"from": "a", "to": "b", "ask": "It is an order."}
    idle = load_workflow({"id": "w", "model": "m", "nodes": nodes, "edges": [{**edge, "model": "n"}]})
    (told,) = map(str, find_warnings(idle.definition, lambda *_: True, {}, lambda _: True))
    assert told.startswith("model: no edge asks it")
    asked = load_workflow({"id": "w", "model": "m", "nodes": nodes, "edges": [edge]})
    assert list(find_warnings(asked.definition, lambda *_: True, {}, lambda _: True)) == []


def test_a_variable_is_secret_or_plain_and_not_both() -> None:
    told = problems(say("x"), env=["A", {"name": "B", "plain": True}, {"name": "A", "plain": True}])
    assert told == ["env/2: A is listed as secret as well; leave one of both out"]


@pytest.mark.parametrize("keys", [{"timeout": True}, {"max_iterations": True}, {"max_visits": False}], ids=str)
def test_true_is_no_number(keys: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="must be a number"):
        problems(say("x"), **keys)


def test_the_place_of_a_fault_has_no_word_of_pydantic() -> None:
    with pytest.raises(DefinitionError, match=r"^nodes/0/foreach: must be a list"):
        problems({**say("x"), "foreach": {"a": 1}})


def test_a_misspelt_keyword_of_the_inputs_is_told() -> None:
    inputs = {"properties": {"a": {"type": "string", "minlength": 1, "x-own": 1, "ui": {}}}, "requierd": ["a"]}
    flow = load_workflow({"id": "w", "inputs": inputs, "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]})
    assert sorted(map(str, doubtful_inputs(flow.definition, {"a"}))) == [
        "inputs/properties/a/minlength: is no keyword of JSON Schema, and checks nothing; did you mean minLength?",
        "inputs/requierd: is no keyword of JSON Schema, and checks nothing; did you mean required?",
    ]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *(("maxlenght", "maxLength"), ("min", "minimum"), ("property", "properties"), ("one_of", "oneOf")),
        *(("tpye", "type"), ("patternProperty", "patternProperties")),
        *((each, None) for each in ("enumNames", "propertyOrder", "descriptionKind", "units", "notes", "xml")),
        *(("minLengthMessage", None), ("menu", None)),
    ],
)
def test_a_word_of_another_program_is_no_keyword_misspelt(key: str, meant: str | None) -> None:
    found = list(misspelt_keywords({"type": "object", key: 1}, "inputs"))
    assert [each.message.partition("did you mean ")[2] for each in found] == ([f"{meant}?"] if meant else [])


def test_a_misspelt_keyword_of_an_answers_type_is_told() -> None:
    config = {"model": "m", "answer_schema": {"type": "object", "propertys": {"a": {}}}}
    flow = load_workflow({"id": "w", "nodes": [{"id": "a", "tool": "agent_core", "config": config}]})
    assert [str(each) for each in find_warnings(flow.definition, lambda *_: True, {}, lambda _: True)] == [
        "nodes/0/config/answer_schema/propertys: is no keyword of JSON Schema, and checks nothing; "
        "did you mean properties?"
    ]


def test_a_default_that_its_own_schema_refuses_is_told() -> None:
    declared = {
        "a": {"type": "integer", "default": "0"},
        "b": {"type": "array", "items": {"type": "string"}, "default": [1]},
    }
    inputs = {"type": "object", "properties": {**declared, "c": {"type": "string"}}, "required": ["c"]}
    flow = load_workflow({"id": "w", "inputs": inputs, "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]})
    assert [str(each) for each in doubtful_inputs(flow.definition, {"a"})] == [
        "inputs/properties/a/default: must be an integer, got \"0\": a run without the input 'a' is refused",
        "inputs/properties/b/default/0: must be a string, got 1: a run without the input 'b' is refused",
    ]


def test_an_input_that_is_not_below_properties_is_told_where_it_belongs() -> None:
    nodes = [{"id": "a", "tool": "echo", "config": {"text": "{{external.message}}"}}]
    flow = load_workflow({"id": "w", "inputs": {"message": {"type": "string"}}, "nodes": nodes})
    told = [str(each) for each in doubtful_inputs(flow.definition, {"a"})]
    assert told[0] == (
        "inputs/message: declares no input: `inputs` is a JSON Schema, and inputs are below properties: {message: …}"
    )
