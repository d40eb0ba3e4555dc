"""agent-core test: what a case may say, what it finds, and that nothing is written which is not mocked."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.command import Cli, Ran, Write

DESK = '''
from pathlib import Path
from utools import tool


@tool(effect="read")
def stock(article: str) -> dict[str, int]:
    """How many pieces."""
    return {"pieces": {"A-17": 12, "B-4": 3}[article]}


@tool
def order(article: str, pieces: int) -> str:
    """Order pieces."""
    Path("ordered").touch()
    return "really ordered"


@tool(effect={"argument": "op", "read": ["look"]})
def shelf(op: str) -> str:
    """Look at a shelf, or clear it."""
    Path("cleared").touch() if op != "look" else None
    return f"{op}: done"
'''
AGENT: dict[str, Any] = {
    "id": "desk",
    "tool": "agent_core",
    "config": {
        "model": "openai:gpt-4o-mini",
        "max_steps": 4,
        "allowed_tools": ["stock", {"tool": "order", "args": {"properties": {"pieces": {"maximum": 50}}}}],
        "prompt": "{{external.message}}",
    },
}
FINAL = {"type": "final", "answer": "There are 12."}
LOOK = {"type": "action", "tool": "stock", "args": {"article": "A-17"}}
BUY = {"type": "action", "tool": "order", "args": {"article": "A-17", "pieces": 10}}


@pytest.fixture
def desk(write: Write, home: Path) -> None:
    (home / "desk.py").write_text(DESK)
    write("agent-core.yaml", {"tools": ["desk.py"]})
    write("flow.json", {"id": "desk", "nodes": [AGENT], "outputs": {"answer": "{{nodes.desk.final_answer}}"}})


def node(tool: str, name: str | None = None, /, **config: Any) -> dict[str, Any]:
    return {"id": name or tool, "tool": tool, "config": config}


def case(**keys: Any) -> dict[str, Any]:
    return {"name": "one", "inputs": {"message": "How many?"}, "replies": [LOOK, FINAL], **keys}


def run(cli: Cli, write: Write, *cases: dict[str, Any], **file: Any) -> Ran:
    write("flow.test.json", {"cases": list(cases), **file})
    return cli("test", "flow.json", "--json")


def mismatches(ran: Ran) -> list[str]:
    return [each for case in ran.json["cases"] for each in case["mismatches"]]


@pytest.mark.usefixtures("desk")
def test_case_that_comes_as_expected_passes(cli: Cli, write: Write) -> None:
    expected = {"path": ["desk"], "outputs": {"answer": {"matches": "12"}}, "calls": [{"tool": "stock"}]}
    ran = run(cli, write, case(**expected, not_called=[{"tool": "order"}]))
    assert (ran.code, mismatches(ran)) == (0, [])
    assert cli("test", "flow.json").out == "✓ one  desk\n1 case, none failed\n"
    assert cli("test", "flow.test.json").code == 0


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "path": ({"path": ["desk", "end"]}, "expected the path desk → end, and it is desk"),
    "output": (
        {"outputs": {"answer": "13"}},
        'expected outputs.answer to be "13", and it is "There are 12."',
    ),
    "output by pattern": (
        {"outputs": {"answer": {"matches": "13"}}},
        'expected outputs.answer to be {"matches": "13"}, and it is "There are 12."',
    ),
    "output that is not there": (
        {"outputs": {"x": 1}},
        "expected outputs.x, which is not there; there are desk, answer",
    ),
    "call": ({"calls": [{"tool": "order"}]}, "expected the call of order, and it was not called"),
    "arguments": (
        {"calls": [{"tool": "stock", "args": {"article": "B-4"}}]},
        'expected the call of stock with {"article": "B-4"}, and it was called with {"article": "A-17"}',
    ),
    "call twice": (
        {"calls": [{"tool": "stock"}, {"tool": "stock"}]},
        'expected the call of stock, and it was called with {"article": "A-17"}',
    ),
    "unwanted call": ({"not_called": [{"node": "desk", "tool": "stock"}]}, "expected no call of stock by desk"),
    "refusal": ({"refused": [{"tool": "order"}]}, "expected the refusal of order"),
    "status": ({"status": "waiting"}, "expected the run to be waiting, and it is completed"),
    "error": ({"error": "gone"}, "expected the run to be failed, and it is completed"),
    "replies": (
        {"replies": [LOOK]},
        "expected the run to be completed, and it is failed: "
        "desk asks again after the last of its 1 `replies`; add one to this case (desk)",
    ),
    "replies that are left": (
        {"replies": [LOOK, FINAL, FINAL]},
        "expected a question for each of the `replies`, and the models asked for 2 of the 3",
    ),
    "replies of a node that are left": (
        {"replies": {"desk": [FINAL, LOOK]}},
        "expected a question for each of the `replies`, and desk asked for 1 of its 2",
    ),
    "signals": (
        {"signals": ["paid", "paid"]},
        "expected a node to wait for each of the `signals`, and none waited for paid, paid",
    ),
}


@pytest.mark.sampled
@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(("keys", "told"), WRONG.values(), ids=list(WRONG))
def test_case_that_comes_otherwise_says_what_came(cli: Cli, write: Write, keys: dict[str, Any], told: str) -> None:
    ran = run(cli, write, case(**keys))
    assert ran.code == 1
    assert told in mismatches(ran)


@pytest.mark.usefixtures("desk")
def test_write_that_is_not_mocked_is_not_made(cli: Cli, write: Write, home: Path) -> None:
    ran = run(cli, write, case(replies=[BUY, FINAL]))
    assert ran.code == 1
    assert "order was called, and writes: mock it, as in mock: {order: {output: …}}" in mismatches(ran)
    assert not (home / "ordered").exists()
    ran = run(cli, write, case(replies=[BUY, FINAL], calls=[{"tool": "order"}]), mock={"order": {"output": "bought"}})
    assert (ran.code, (home / "ordered").exists()) == (0, False)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_tool_that_reads_or_writes_is_called_only_to_read(cli: Cli, write: Write, home: Path) -> None:
    write("flow.json", {"id": "w", "nodes": [node("shelf", op="{{external.op}}")]})
    look = {"name": "look", "inputs": {"op": "look"}, "outputs": {"shelf": "look: done"}}
    ran = run(cli, write, look, {"name": "clear", "inputs": {"op": "clear"}, "error": "is not mocked"})
    assert [each["passed"] for each in ran.json["cases"]] == [True, False]
    assert not (home / "cleared").exists()


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_mock_of_a_node_is_for_that_node_alone(cli: Cli, write: Write) -> None:
    nodes = [node("stock", "a", article="A-17"), node("stock", "b", article="B-4"), node("stock", "c", article="B-4")]
    write("flow.json", {"id": "w", "nodes": nodes})
    mock = {"a": {"output": {"pieces": 1}}, "stock": {"output": {"pieces": 2}}}
    outputs = {"a": {"equals": {"pieces": 1}}, "b": {"equals": {"pieces": 2}}, "c": {"equals": {"pieces": 2}}}
    assert run(cli, write, {"name": "one", "mock": mock, "outputs": outputs}).code == 0
    assert (
        run(cli, write, {"name": "one", "mock": {"a": mock["a"]}, "outputs": {"b": {"equals": {"pieces": 3}}}}).code
        == 0
    )


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_answers_of_a_mock_come_in_turn_and_by_arguments(cli: Cli, write: Write) -> None:
    each = {**node("stock", article="{{item}}"), "foreach": ["A-17", "B-4", "A-17"], "max_parallel": 1}
    write("flow.json", {"id": "w", "nodes": [each]})
    answers = [
        {"args": {"article": "A-17"}, "output": {"pieces": 1}},
        {"args": {"article": "B-4"}, "output": {"pieces": 2}},
        {"args": {"article": "A-17"}, "output": {"pieces": 3}},
    ]
    ran = run(cli, write, {"name": "one", "mock": {"stock": {"answers": answers}}})
    results = ran.json["cases"][0]["run"]["outputs"]["stock"]["results"]
    assert [each["pieces"] for each in results] == [1, 2, 3]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_agent_and_sub_workflow_are_mocked_whole(cli: Cli, write: Write) -> None:
    sub = node("invoke_workflow", "sub", workflow="sub.json", inputs={})
    write("sub.json", {"id": "sub", "nodes": [node("order", article="A-17", pieces=1)]})
    said = node("echo", "say", text="{{nodes.desk.final_answer}} {{nodes.sub.outputs.order}}")
    write("flow.json", {"id": "w", "nodes": [AGENT, sub, said]})
    mock = {"desk": {"output": {"final_answer": "twelve"}}, "sub": {"output": {"outputs": {"order": "bought"}}}}
    given = {"name": "one", "inputs": {"message": "x"}, "mock": mock}
    assert mismatches(run(cli, write, {**given, "outputs": {"say": "twelve bought"}})) == []


@pytest.mark.usefixtures("desk")
def test_person_decides_in_turn_and_a_case_may_end_waiting(cli: Cli, write: Write) -> None:
    booking = {**node("order", "book", article="A-17", pieces=1), "approval": "always"}
    write("flow.json", {"id": "w", "nodes": [booking]})
    mock = {"book": {"output": "booked"}}
    cases: list[dict[str, Any]] = [
        {"name": "let through", "decisions": ["approve"], "outputs": {"book": "booked"}},
        {"name": "edited", "decisions": [{"decision": "edit", "args": {"article": "B-4", "pieces": 2}}]},
        {"name": "denied", "decisions": [{"decision": "deny", "message": "no money"}], "error": "no money"},
        {"name": "waits", "status": "waiting", "not_called": [{"node": "book"}]},
        {"name": "forgotten"},
    ]
    cases[1]["calls"] = [{"node": "book", "args": {"article": "B-4", "pieces": 2}}]
    ran = run(cli, write, *cases, mock=mock)
    assert [each["passed"] for each in ran.json["cases"]] == [True, True, True, True, False]
    assert mismatches(ran) == ["expected the run to be completed, and it is waiting: order waits for a person"]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_replies_of_a_node_go_on_through_its_visits(cli: Cli, write: Write) -> None:
    asks = {**AGENT, "id": "ask", "config": {**AGENT["config"], "allowed_tools": []}}
    done = node("echo", "done", text="{{nodes.ask.final_answer}}")
    edges = [{"from": "ask", "to": "ask", "when": "output.final_answer != 'good'"}, {"from": "ask", "to": "done"}]
    write("flow.json", {"id": "w", "entry": "ask", "nodes": [asks, done], "edges": edges})
    replies = {"ask": [{"type": "final", "answer": each} for each in ("bad", "better", "good")]}
    ran = run(cli, write, case(replies=replies, path=["ask", "ask", "ask", "done"], outputs={"done": "good"}))
    assert mismatches(ran) == []


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_model_of_a_case_is_a_script_beside_it_or_a_recorded_run(cli: Cli, write: Write, home: Path) -> None:
    write("replies.json", [LOOK, FINAL])
    assert cli("run", "flow.json", "--input", "message=x", "--model", "scripted:replies.json").code == 0
    assert cli("export", "last", "--jsonl", "--to", str(home / "run.jsonl")).code == 0
    for model in ("scripted:replies.json", "replay:run.jsonl"):
        given = {"name": "one", "inputs": {"message": "x"}, "model": model, "outputs": {"answer": "There are 12."}}
        assert mismatches(run(cli, write, given)) == []


@pytest.mark.usefixtures("desk")
def test_decision_that_nothing_waits_for_fails_its_case_alone(cli: Cli, write: Write) -> None:
    waits = node("order", article="A-17", pieces=1) | {"approval": "always"}
    write("flow.json", {"id": "desk", "nodes": [AGENT, waits], "edges": [{"from": "desk", "to": "order"}]})
    decided = [case(name=str(each), decisions=each) for each in (["retry"], ["approve"], ["approve", "deny"])]
    ran = run(cli, write, *decided, mock={"order": {"output": "booked"}})
    assert [each["mismatches"] for each in ran.json["cases"]] == [
        ["flow/order.1:0 waits for approve, deny or edit, not retry"],
        [],
        ["expected a call to wait for each of the `decisions`, and none waited for deny"],
    ]


@pytest.mark.usefixtures("desk")
def test_signal_that_no_node_waits_for_fails_its_case(cli: Cli, write: Write) -> None:
    write("flow.json", {"id": "w", "nodes": [node("wait", "paid", signal="paid", seconds=60)]})
    sent = [{"name": "-".join(each) or "none", "signals": each} for each in ([], ["paid"], ["paid", "paid", "sent"])]
    assert [each["mismatches"] for each in run(cli, write, *sent).json["cases"]] == [
        [],
        [],
        ["expected a node to wait for each of the `signals`, and none waited for paid, sent"],
    ]


@pytest.mark.usefixtures("desk")
def test_cases_without_a_name_are_named_by_their_inputs(cli: Cli, write: Write) -> None:
    asked = [{"inputs": {"message": each}, "replies": [FINAL]} for each in ("How many?", "How many?", "Which?")]
    ran = run(cli, write, *asked, case(name="how-many-2"))
    assert [each["name"] for each in ran.json["cases"]] == ["how-many", "how-many-3", "which", "how-many-2"]


@pytest.mark.usefixtures("desk")
def test_no_model_is_asked_that_nobody_scripted(cli: Cli, write: Write) -> None:
    ran = run(cli, write, {"name": "one", "inputs": {"message": "x"}})
    (told,) = mismatches(ran)
    assert "the case has no `replies` for desk" in told


@pytest.mark.usefixtures("desk")
def test_replies_are_counted_as_the_case_has_them_also_for_one_that_asks_again_in_vain(cli: Cli, write: Write) -> None:
    write("flow.json", {"id": "desk", "nodes": [AGENT | {"retry": {"max_attempts": 3}}]})
    none, one = mismatches(run(cli, write, case(replies=[]), case(name="one reply", replies=[LOOK])))
    assert "the case has no `replies` for desk" in none
    assert "desk asks again after the last of its 1 `replies`" in one


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_results_are_written_for_ci_servers(cli: Cli, write: Write, home: Path) -> None:
    write("flow.test.json", {"cases": [case(), case(name="two", path=["x"])]})
    assert cli("test", "flow.json", "--junit", "r.xml").code == 1
    (suite,) = ElementTree.parse(home / "r.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [each.get("name") for each in suite] == ["one", "two"]
    assert "expected the path x" in str(suite[1][0].get("message"))
    ran = cli("test", "flow.json", "--junit", "none/r.xml")
    assert (ran.code, "--junit: cannot be written" in ran.err) == (3, True)


@pytest.mark.usefixtures("desk")
def test_characters_that_no_xml_may_have_are_written_out(cli: Cli, write: Write, home: Path) -> None:
    write("flow.test.json", {"cases": [case(name="a\x1b\uffffb", outputs={"answer": "\x00 red \x1b[31m"})]})
    assert cli("test", "flow.json", "--junit", "r.xml").code == 1
    (suite,) = ElementTree.parse(home / "r.xml").getroot()
    assert suite[0].get("name") == "a\\x1b\\uffffb"


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_one_case_is_chosen_by_its_name(cli: Cli, write: Write) -> None:
    write("flow.test.json", {"cases": [case(name="few"), case(name="many", path=["x"])]})
    assert cli("test", "flow.json", "--only", "fe*").code == 0
    ran = cli("test", "flow.json", "--only", "none")
    assert (ran.code, "no case has this name; there are few, many" in ran.err) == (3, True)


FAULTY: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"expects": {}}, "cases/0/expects: unknown key"),
    "unknown mock": (
        {"mock": {"stok": {"output": 1}}},
        "cases/0/mock/stok: there is no such node or tool; did you mean stock?",
    ),
    "unknown node": ({"calls": [{"node": "dsk"}]}, "cases/0/calls/0/node: there is no node 'dsk'; did you mean desk?"),
    "unknown tool": ({"not_called": [{"tool": "x"}]}, "cases/0/not_called/0/tool: there is no tool 'x'"),
    "unknown asker": ({"replies": {"stock": []}}, "cases/0/replies/stock: there is no such node or tool"),
    "two models": ({"model": "scripted:x.json"}, "has replies and a model"),
    "mock of nothing": ({"mock": {"stock": {}}}, "must say one of output, error and answers"),
    "output that the tool cannot give": (
        {"mock": {"calculator": {"output": "many"}}},
        "cases/0/mock/calculator/output: the tool calculator gives no such output",
    ),
    "decision": ({"decisions": ["maybe"]}, "cases/0/decisions/0/decision"),
    "call of nothing": ({"calls": [{"args": {}}]}, "must name a tool or a node"),
}


@pytest.mark.sampled
@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(("keys", "told"), FAULTY.values(), ids=list(FAULTY))
def test_fault_of_a_test_file_is_told_with_its_place(cli: Cli, write: Write, keys: dict[str, Any], told: str) -> None:
    write("flow.test.json", {"cases": [case(**keys)]})
    ran = cli("test", "flow.json")
    assert (ran.code, "flow.test.json:" in ran.err) == (3, True), ran.err
    assert told in ran.err


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_file_without_tests_and_tests_without_a_workflow_are_told(cli: Cli, write: Write) -> None:
    ran = cli("test", "flow.json")
    assert (ran.code, "there are no tests of it; write them into flow.test.yaml" in ran.err) == (3, True)
    write("other.test.json", {"cases": [case()]})
    ran = cli("test", "other.test.json")
    assert (ran.code, "name the workflow that is tested" in ran.err) == (3, True)
    write("other.test.json", {"workflow": "flow.json", "cases": [case()]})
    assert cli("test", "other.test.json").code == 0
    assert cli("test", "none.json").code == 2


@pytest.mark.exhaustive
@pytest.mark.usefixtures("desk")
def test_validate_checks_test_files_too(cli: Cli, write: Write) -> None:
    write("flow.test.json", {"cases": [case()]})
    assert cli("validate", "flow.json", "flow.test.json").code == 0
    write("flow.test.json", {"cases": [case(mock={"stok": {"output": 1}})]})
    ran = cli("validate", "flow.json", "flow.test.json")
    assert (ran.code, "did you mean stock?" in ran.out) == (3, True)
