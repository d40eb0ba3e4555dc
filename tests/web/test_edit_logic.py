"""The editor's own reckoning: texts change where they are edited and nowhere else, and what names a node follows it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine_shim.web.bundle import STATIC
from support.optional import NODE, needs_node
from utools.document import read_document

pytestmark = [needs_node, pytest.mark.exhaustive]
ROOT = Path(__file__).parents[2]
FLOWS = [
    path
    for path in sorted((ROOT / "engine_shim").rglob("*.yaml"))
    if isinstance(data := read_document(path, "it").data, dict) and "nodes" in data
]
WRITTEN = """\
# Writes slogans.
id:   slogan   # its name
entry: write
nodes:
  - id: write
    tool:   agent_core
    config:
      prompt: >-
        folded text
        goes on
      temperature: 0.50
  # between the two
  - {id: done,   tool: echo, config: {text: "{{nodes.write.final_answer}}"}} # the end

edges:
  - {from: write, to: done, when: "nodes.write.steps > `1`"}
"""


def reckon(script: str, given: Any = None) -> Any:
    """What a script of the editor's modules prints; `given` is what it is given."""
    assert NODE is not None
    names = (
        "source",
        "lines",
        "flow",
        "flow_edits",
        "placeholders",
        "schema",
        "versions",
        "history",
        "whitelist_edits",
    )
    imports = "".join(
        f'import * as {name} from "{STATIC}/edit/{name}.js";\n' for name in (*names, "faults", "variables")
    )
    head = 'import { readFileSync } from "fs";\nconst given = JSON.parse(readFileSync(0, "utf8"));\n'
    command = [NODE, "--input-type=module", "-e", imports + head + f"console.log(JSON.stringify(({script})(given)));"]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def change(edit: str, text: str = WRITTEN, kind: str = "yaml") -> tuple[str, list[str], list[str]]:
    """A text after an edit, with the lines that are new and gone."""
    script = f"""(text) => {{
      const after = source.changeText(text, "{kind}", (target) => {{ {edit} }});
      const rows = lines.compareLines(lines.splitLines(text), lines.splitLines(after));
      const of = (kind) => rows.filter((row) => row.kind === kind).map((row) => row.text.trim());
      return [after, of("new"), of("gone")];
    }}"""
    after, new, gone = reckon(script, text)
    return after, new, gone


@pytest.mark.parametrize(
    ("edit", "new", "gone"),
    [
        ('target.set(["nodes", 0, "config", "max_steps"], 5)', ["max_steps: 5"], []),
        ('target.set(["nodes", 0, "retry", "max_attempts"], 5)', ["retry:", "max_attempts: 5"], []),
        (
            'target.set(["nodes", 1, "config", "text"], "so: it is")',
            ['- {id: done, tool: echo, config: {text: "so: it is"}} # the end'],
            ['- {id: done,   tool: echo, config: {text: "{{nodes.write.final_answer}}"}} # the end'],
        ),
        ('target.insert(["nodes", 1], {id: "x", tool: "y"})', ["- {id: x, tool: y}"], []),
        ('flow_edits.connect(target, "done", "write")', ["- {from: done, to: write}"], []),
        ('target.setAfter("id", "version", "2")', ['version: "2"'], []),
        ('flow_edits.writeAt(target, ["entry"], undefined)', [], ["entry: write"]),
    ],
    ids=["key", "nested", "scalar", "insert", "edge", "version", "remove"],
)
def test_an_edit_changes_its_own_lines_alone(edit: str, new: list[str], gone: list[str]) -> None:
    _, added, removed = change(edit)
    assert (added, removed) == (new, gone)


def test_every_value_of_every_flow_can_be_changed_by_itself() -> None:
    script = """(texts) => texts.map((text) => {
      const { data } = source.readText(text, "yaml");
      const isLeaf = (value) => value === null || typeof value !== "object";
      const keysOf = (value) => (Array.isArray(value) ? value.map((_, at) => at) : Object.keys(value));
      const places = (value, path) =>
        isLeaf(value) ? [path] : keysOf(value).flatMap((key) => places(value[key], [...path, key]));
      const wanted = (path) => {
        const copy = structuredClone(data);
        path.slice(0, -1).reduce((at, key) => at[key], copy)[path.at(-1)] = "an other: #1";
        return JSON.stringify(copy);
      };
      return places(data, []).map((path) => {
        const after = source.changeText(text, "yaml", (target) => target.set(path, "an other: #1"));
        const rows = lines.compareLines(lines.splitLines(text), lines.splitLines(after));
        return [JSON.stringify(source.readText(after, "yaml").data) === wanted(path), lines.countChanges(rows).added];
      });
    })"""
    found = [each for flow in reckon(script, [path.read_text("utf-8") for path in FLOWS]) for each in flow]
    assert len(found) > 200
    assert all(is_right for is_right, _ in found)
    assert all(added <= 2 for _, added in found)


def test_a_definition_becomes_any_other_by_its_differences() -> None:
    script = """(texts) => texts.flatMap((text) => texts.map((other) => {
      const wanted = source.readText(other, "yaml").data;
      const after = source.changeText(text, "yaml", (target) => source.writeDifferences(target, wanted));
      const isMap = (each) => each && typeof each === "object" && !Array.isArray(each);
      const sort = (each) => Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)));
      const sorted = (value) => JSON.stringify(value, (_, each) => (isMap(each) ? sort(each) : each));
      return sorted(source.readText(after, "yaml").data) === sorted(wanted);
    }))"""
    assert all(reckon(script, [path.read_text("utf-8") for path in FLOWS[:12]]))


def test_differences_leave_comments_where_they_are() -> None:
    script = """(text) => {
      const { data } = source.readText(text, "yaml");
      data.nodes[0].config.seed = 1;
      data.nodes.splice(1, 0, { id: "more", tool: "echo" });
      delete data.edges[0].when;
      return source.changeText(text, "yaml", (target) => source.writeDifferences(target, data));
    }"""
    after = reckon(script, WRITTEN)
    assert all(comment in after for comment in ("# Writes slogans.", "# its name", "# between the two", "# the end"))
    assert "seed: 1" in after
    assert "{id: more, tool: echo}" in after
    assert "when" not in after


def test_a_renamed_node_is_followed() -> None:
    after, _, _ = change('flow_edits.renameNode(target, 0, "author")')
    data = reckon('(text) => source.readText(text, "yaml").data', after)
    assert data["entry"] == "author"
    assert data["nodes"][1]["config"]["text"] == "{{nodes.author.final_answer}}"
    assert data["edges"] == [{"from": "author", "to": "done", "when": "nodes.author.steps > `1`"}]
    told = reckon(
        '(texts) => texts.map((text) => placeholders.renameInText(text, "a", "b-2"))',
        ['{{nodes.a}} {{nodes["a"].x}} {{nodes.a-b}} {{nodes.ab}} nodes.a {{ external.a }} {{nodes.a?}}'],
    )
    assert told == [
        '{{nodes.b-2}} {{nodes["b-2"].x}} {{nodes.a-b}} {{nodes.ab}} nodes.a {{ external.a }} {{nodes.b-2?}}'
    ]


def test_a_removed_node_takes_its_edges_along() -> None:
    after, _, _ = change("flow_edits.removeNode(target, 0)")
    data = reckon('(text) => source.readText(text, "yaml").data', after)
    assert [node["id"] for node in data["nodes"]] == ["done"]
    assert data["edges"] == []
    assert "entry" not in data


def test_an_edge_writes_down_those_that_were_implied() -> None:
    implied = json.dumps(
        {
            "id": "two",
            "nodes": [
                {"id": "a", "tool": "echo", "config": {"text": "x"}},
                {"id": "b", "tool": "echo", "config": {"text": "{{nodes.a}}"}},
            ],
        }
    )
    after, _, _ = change('flow_edits.connect(target, "b", "a")', implied, "json")
    assert json.loads(after)["edges"] == [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    assert json.loads(after)["entry"] == "a"


def test_comparison_leads_from_one_text_to_the_other() -> None:
    script = """(given) => {
      let seed = 7;
      const next = (most) => (seed = (seed * 48271) % 2147483647) % most;
      const text = () => Array.from({ length: next(30) }, () => "abcde"[next(5)]);
      return Array.from({ length: 400 }, () => {
        const [a, b] = [text(), text()];
        const rows = lines.compareLines(a, b);
        const side = (gone) => rows.filter(({ kind }) => kind !== gone).map((row) => row.text).join();
        const isNumbered = rows.every(({ kind, text, a: x, b: y }) =>
          (kind === "new" || a[x] === text) && (kind === "gone" || b[y] === text));
        return side("new") === a.join() && side("gone") === b.join() && isNumbered;
      });
    }"""
    assert all(reckon(script))


def test_lines_far_from_a_changedare_folded() -> None:
    script = """() => {
      const a = Array.from({ length: 30 }, (_, at) => `line ${at}`);
      const b = a.map((line, at) => (at === 4 || at === 20 ? "other" : line));
      return lines.foldSame(lines.compareLines(a, b)).map(({ kind, count }) => (kind === "gap" ? count : kind[0]));
    }"""
    changed = ["s", "s", "s", "g", "n", "s", "s", "s"]
    assert reckon(script) == ["s", *changed, 9, *changed, 6]


def test_placeholders_are_put_in_where_they_are_typed() -> None:
    script = """() => [
      placeholders.putIn("Say {{ext", 9, "external.a"),
      placeholders.putIn("Say {{ext}} now", 9, "external.a"),
      placeholders.putIn("Say  now", 4, "external.a"),
      placeholders.putIn("output. < 5", 7, "pieces", { bare: true }),
      placeholders.openBraces("{{a}} b", 7), placeholders.openBraces("x {{ no", 7),
      placeholders.joinPath(["nodes", "stock", "Exchange Rate"]),
      placeholders.externalNames({ a: "{{external.b}} {{nodes.x}}" }),
    ]"""
    assert reckon(script) == [
        {"text": "Say {{external.a}}", "cursor": 18},
        {"text": "Say {{external.a}} now", "cursor": 18},
        {"text": "Say {{external.a}} now", "cursor": 18},
        {"text": "output.pieces < 5", "cursor": 13},
        None,
        {"from": 2, "filter": "no"},
        'nodes.stock["Exchange Rate"]',
        ["b"],
    ]


def test_schemas_say_which_control_a_value_needs() -> None:
    from agent_core.config import AgentConfig

    script = """(given) => Object.fromEntries(Object.entries(given.properties).map(([key, each]) => {
      const { kind, nullable } = schema.readSchema(each, given);
      return [key, nullable ? `${kind}?` : kind];
    }))"""
    found = reckon(script, AgentConfig.model_json_schema())
    wanted = {
        "model": "text",
        "max_steps": "integer?",
        "temperature": "number?",
        "allowed_tools": "list",
        "messages_json": "variants?",
        "prompt": "text?",
        "mode": "choice",
        "prompts": "variants",
        "answer_schema": "json?",
        "plan": "object",
        "documents": "list",
        "stop": "list?",
    }
    assert {key: found[key] for key in wanted} == wanted


def test_versions_histories_and_bounds() -> None:
    script = """() => {
      let past = history.startHistory("a");
      past = history.addText(past, "b", "x", 0);
      past = history.addText(past, "bc", "x", 100);
      past = history.addText(past, "d", "y", 200);
      const back = history.moveBy(past, -1);
      return [
        ["1", "1.9", "2026-1b", "beta"].map((each) => versions.nextVersion(each, ["2"])),
        past.texts, history.currentText(back), history.currentText(history.moveBy(back, -1)),
        history.addText(back, "e", null, 300).texts,
      ];
    }"""
    numbers, texts, back, first, branched = reckon(script)
    assert numbers == ["3", "1.10", "2026-2b", "beta.1"]
    assert (texts, back, first, branched) == (["a", "bc", "d"], "bc", "a", ["a", "bc", "e"])
    text = "id: a\nnodes:\n  - {tool: agent_core, config: {allowed_tools: [stock]}}\n"
    path = '["nodes", 0, "config", "allowed_tools", 0]'
    bound, _, _ = change(
        f'whitelist_edits.writeBound(target, {path}, ["args", "properties", "a"], {{ enum: ["x"] }})', text
    )
    assert "{tool: stock, args: {properties: {a: {enum: [x]}}}}" in bound
    free, _, _ = change(f'whitelist_edits.writeBound(target, {path}, ["args", "properties", "a"], undefined)', bound)
    assert free == text
