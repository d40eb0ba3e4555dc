"""What the pages decide without a browser: lists merged, turns told by events, verdicts, arguments, policies."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine_shim.web.run_page import STATIC
from engine_shim.web.shown_text import show

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs the program node")


def compute(folder: Path, names: str, module: str, expression: str, given: Any = None) -> Any:
    """What an expression over `given` and the names of a module comes to."""
    assert NODE is not None
    script = folder / "compute.mjs"
    script.write_text(
        f'import {{ readFileSync }} from "fs";\nimport {{ {names} }} from "{STATIC}/pages/{module}";\n'
        f'const given = JSON.parse(readFileSync(0, "utf8"));\nconsole.log(JSON.stringify({expression}));\n'
    )
    done = subprocess.run([NODE, str(script)], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run_at(name: str, status: str = "completed", second: int = 0) -> dict[str, Any]:
    return {"run_id": name, "status": status, "started_at": f"2026-01-01T00:00:{second:02}.000Z"}


def test_runs_are_merged_in_their_order_and_unchanged_ones_stay_the_same(tmp_path: Path) -> None:
    known, told = [run_at("b", "running", 5), run_at("a", second=1)], [run_at("c", second=3), run_at("b", second=5)]
    expression = """(() => { const runs = join(update(given[0], given[1]), given[1]);
      const names = runs.map((run) => [run.run_id, run.status]);
      return [names, runs[2] === given[0][1], update(given[0], []) === given[0]]; })()"""
    found = compute(tmp_path, "join, update", "runs/merge.js", expression, [known, told])
    assert found == [[["b", "completed"], ["c", "completed"], ["a", "completed"]], True, True]


def test_runs_that_may_have_changed_are_asked_for_in_turn(tmp_path: Path) -> None:
    known = [run_at(f"r{n}", "running") for n in range(5)] + [run_at("done")]
    expression = "[0, 2, 4].map((from) => findDoubtful(given, [given[0]], from, 2).map((run) => run.run_id))"
    found = compute(tmp_path, "findDoubtful", "runs/merge.js", expression, known)
    assert found == [["r1", "r2"], ["r3", "r4"], ["r1", "r2"]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("👩\u200d💻 ❤\ufe0f\u200d🔥", "👩\u200d💻 ❤\ufe0f\u200d🔥"),
        ("می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"),
        ("ann\u200dx@b.c a\u200c 👩\u200d", "ann\\u{200d}x@b.c a\\u{200c} 👩\\u{200d}"),
        ("د\u200c\u200cا", "د\\u{200c}\\u{200c}ا"),
        ("\u200b\u200e\u202e", "\\u{200b}\\u{200e}\\u{202e}"),
    ],
    ids=["emoji", "scripts with joiners", "joiners elsewhere", "two joiners", "others"],
)
def test_joiners_are_shown_as_what_they_join(tmp_path: Path, text: str, shown: str) -> None:
    assert compute(tmp_path, "show", "../kit/text.js", "show(given)", text) == show(text) == shown


@pytest.mark.parametrize("storage", ["{}", "undefined"], ids=["refused", "absent"])
def test_page_without_storage_keeps_the_token_until_it_is_closed(tmp_path: Path, storage: str) -> None:
    script = tmp_path / "token.mjs"
    script.write_text(
        f'globalThis.document = {{ baseURI: "http://x/ui/" }}; globalThis.sessionStorage = {storage};\n'
        f'const {{ token }} = await import("{STATIC}/kit/api.js");\n'
        'const found = [token.get()]; token.set("act_1"); found.push(token.get());\n'
        "token.forget(); found.push(token.get()); console.log(JSON.stringify(found));\n"
    )
    assert NODE is not None
    done = subprocess.run([NODE, str(script)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [None, "act_1", None]


def step(strand: str = "agent", n: int = 1) -> dict[str, Any]:
    return {"event": "step_started", "step": 1, "model": "m", "strand": strand, "n": n}


def call(tool: str, strand: str = "agent", **args: Any) -> dict[str, Any]:
    return {"event": "action", "tool": tool, "args": args, "strand": strand, "n": 3}


def gave(text: str, strand: str = "agent") -> dict[str, Any]:
    return {"event": "observation", "success": True, "text": text, "seconds": 1, "characters": 2, "strand": strand}


WAITS = {"event": "waiting", "tool": "b", "args": {}, "reason": "awaiting_approval", "strand": "agent", "n": 4}
ENDS = {"event": "finished", "finish_reason": "final", "final_answer": "yes", "strand": "agent", "n": 9}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("events", "status", "states"),
    [
        ([step(), call("a"), gave("1")], "running", [["a", "done", "1"]]),
        ([step(), call("b"), WAITS], "waiting", [["b", "awaiting_approval", None]]),
        ([step(), call("b"), WAITS, step(), ENDS], "done", [["b", "decided", None]]),
        (
            [step(), call("a"), call("b"), gave("2", "agent/4.1"), gave("1", "agent/4.0")],
            "running",
            [["a", "done", "1"], ["b", "done", "2"]],
        ),
        (
            [step(), call("sub"), step("agent/sub.4"), call("a", "agent/sub.4"), gave("1", "agent/sub.4"), gave("2")],
            "running",
            [["sub", "done", "2"], ["a", "done", "1"]],
        ),
    ],
    ids=["one", "waiting", "denied", "batch", "nested"],
)
def test_calls_of_a_turn_have_what_came_of_them(tmp_path: Path, events: Any, status: str, states: Any) -> None:
    expression = """(() => { const turn = given.reduce(addEvent, newTurn({ trace: "t", message: "" }));
      const calls = turn.items.filter((item) => item.kind === "call");
      return [turn.status, calls.map((call) => [call.tool, call.state, call.result])]; })()"""
    assert compute(tmp_path, "addEvent, newTurn", "chat/turn.js", expression, events) == [status, states]


def test_answer_is_shown_while_it_is_written_and_goes_when_it_is_discarded(tmp_path: Path) -> None:
    pieces = [{"event": "answer_delta", "text": text, "strand": "agent"} for text in ("ye", "s")]
    discarded = {"event": "answer_discarded", "strand": "agent"}
    expression = """given.map((events) => events.reduce(addEvent, newTurn({ trace: "t", message: "" })))
      .map((turn) => [turn.draft, turn.answer])"""
    given = [pieces, [*pieces, discarded], [*pieces, ENDS]]
    found = compute(tmp_path, "addEvent, newTurn", "chat/turn.js", expression, given)
    assert found == [["yes", None], ["", None], ["", "yes"]]


def test_thought_is_shown_while_it_is_written_and_stands_once(tmp_path: Path) -> None:
    pieces = [{"event": "thought_delta", "text": text, "strand": "agent"} for text in ("I lo", "ok")]
    whole = {"event": "thought", "text": "I look.", "strand": "agent"}
    expression = """given.map((events) => events.reduce(addEvent, newTurn({ trace: "t", message: "" })))
      .map((turn) => turn.items.filter((item) => item.kind === "thought").map((item) => item.text))"""
    given = [pieces, [*pieces, whole], [whole], [*pieces, whole, *pieces, whole], [*pieces, ENDS, *pieces]]
    found = compute(tmp_path, "addEvent, newTurn", "chat/turn.js", expression, given)
    assert found == [["I look"], ["I look."], ["I look."], ["I look.", "I look."], ["I look", "I look"]]


def test_saved_table_computes_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    found = compute(tmp_path, "asCsv", "audit/verdicts.js", "asCsv(given)", [{"run_id": '=1+"1"', "why": "a,b"}])
    assert found.splitlines()[1].startswith('"\'=1+""1""",')
    assert found.splitlines()[1].endswith(',"a,b"')


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "policy", "is_fault"),
    [
        ('{"max_steps": 3}', {"max_steps": 3, "deny_tools": ["order"]}, False),
        ("approval=on_write\ntimeout = 5", {"approval": "on_write", "timeout": 5, "deny_tools": ["order"]}, False),
        ("nonsense", {"deny_tools": ["order"]}, True),
        ("{", {"deny_tools": ["order"]}, True),
    ],
)
def test_policy_is_read_from_json_or_lines(tmp_path: Path, text: str, policy: Any, is_fault: bool) -> None:
    form = {"text": text, "denied": " order, ", "maxSteps": ""}
    found = compute(tmp_path, "readPolicy", "audit/policy_text.js", "readPolicy(given)", form)
    assert (found["policy"], bool(found["fault"])) == (policy, is_fault)


def test_arguments_of_a_schema_are_named_with_those_in_them(tmp_path: Path) -> None:
    schema = {
        "$defs": {
            "Part": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}, "required": ["n"]}
        },
        "properties": {
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
            "mode": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
        },
        "required": ["mode"],
    }
    expression = "readArguments(given).map((each) => [each.path, each.type, each.isRequired, each.default ?? null])"
    found = compute(tmp_path, "readArguments", "tools/arguments.js", expression, schema)
    assert found == [
        ["parts", "array of object", False, None],
        ["parts[].n", "integer", True, 1],
        ["mode", '"a" | "b"', True, None],
    ]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("verdict", "expected", "why"),
    [
        ({"ok": True, "complete": True, "seal": "sealed by k1", "why": None}, "identical", ""),
        ({"ok": False, "complete": False, "seal": "not sealed", "why": "the run is not finished"}, "identical", ""),
        ({"ok": False, "complete": True, "seal": "sealed by k1, which does not hold", "why": "no"}, "damaged", "no"),
        ({"ok": False, "complete": False, "seal": "sealed by k1, which does not hold", "why": "no"}, "damaged", "no"),
        ({"ok": False, "complete": True, "seal": "not checked", "why": "no", "contents": "newer"}, "not checked", "no"),
    ],
    ids=["sealed", "open", "broken", "open and broken", "newer"],
)
def test_audit_says_what_was_checked_of_a_seal(tmp_path: Path, verdict: Any, expected: str, why: str) -> None:
    told = [{**verdict, "first_bad": None, "head": "0", "count": 1}, {"outcome": "identical", "steps": 1}]
    found = compute(tmp_path, "judgeRun", "audit/verdicts.js", "judgeRun({}, given[0], given[1])", told)
    assert (found["verdict"], found["seal"], found["why"]) == (expected, verdict["seal"], why)
    assert found["whole"] is {"identical": True, "damaged": False, "not checked": None}[expected]


def test_refusal_of_a_stream_says_why(tmp_path: Path) -> None:
    expression = """await new Promise((tell) => {
      globalThis.fetch = async () => new Response(given, { status: 403 });
      new RunStream("http://127.0.0.1/", null).add({ run: "x", after: null, tell });
    })"""
    told = compute(tmp_path, "RunStream", "../kit/run_stream.js", expression, '{"detail": "the token lacks read"}')
    assert told == {"kind": "problem", "status": 403, "body": '{"detail": "the token lacks read"}'}


def test_a_cut_text_has_no_half_of_a_character(tmp_path: Path) -> None:
    expression = "[cut(given, 4), cut(given, 5), beginning(given, 3), beginning(given, 4), beginning(given, 9)]"
    found = compute(tmp_path, "beginning, cut", "../kit/text.js", expression, "ab👍cd👍")
    assert found == ["ab…", "ab👍…", "ab", "ab👍", "ab👍cd👍"]
