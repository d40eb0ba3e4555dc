"""`agent-core eval add`: a recorded run becomes a case that whoever does the same gets right."""

import errno
import fcntl
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.evals.append import insert_case
from engine_shim.evals.load import load_cases
from support.by_hand import action, final
from support.command import Cli, Write
from support.examples import examples
from support.terminal import COMMAND
from utools.document import read_document

pytestmark = pytest.mark.exhaustive

DESK = '''
from utools import ToolError, tool

@tool(effect="read")
def find_order(number: str) -> dict:
    """Find an order."""
    if number != "17":
        raise ToolError(f"there is no order {number}")
    return {"item": "a brass lamp", "pieces": 2, "sent": {"day": "Monday"}}

@tool
def remind(who: dict, text: str) -> str:
    """Send a reminder."""
    return "reminded"
'''
FIND = action("find_order", number="17")
REMIND = action("remind", who={"name": "Ann"}, text="1e5\n  - on")
ANSWER = final("Order 17 is a brass lamp, 2 pieces, sent on Monday.")


@pytest.fixture
def desk(write: Write) -> None:
    write("desk.py", DESK)
    write("agent-core.yaml", {"tools": ["desk.py:find_order", "desk.py:remind"]})


def record(cli: Cli, write: Write, *replies: Any, code: int = 0, **config: Any) -> None:
    """Run an agent with these tools and replies."""
    agent = {"model": "scripted:replies.json", "max_steps": 4, "allowed_tools": ["find_order", "remind"]}
    nodes = [{"id": "desk", "tool": "agent_core", "config": {**agent, "prompt": "Where is order 17?", **config}}]
    write("flow.yaml", {"id": "w", "nodes": nodes})
    write("replies.json", list(replies))
    assert cli("run", "flow.yaml").code == code


def added(cli: Cli, *words: str) -> Any:
    ran = cli("eval", "add", "last", *words, "--json")
    assert ran.code == 0, ran
    return ran.json["case"]


def rights(cli: Cli, write: Write, case: Any, *replies: Any) -> int:
    """How often the case is right for one who replies so."""
    write("again.json", {case["name"]: list(replies)})
    told = cli("eval", "cases.yaml", "--model", "scripted:again.json", "--json").json
    return int(told["total"]["right"]["right"])


@pytest.mark.usefixtures("desk")
def test_cases_that_are_added_at_once_are_all_there(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    names = ["one", "two", "three", "four"]
    adding = [subprocess.Popen([COMMAND, "eval", "add", "last", "--name", name]) for name in names]
    assert [each.wait(timeout=60) for each in adding] == [0] * 4
    assert sorted(case.name for case in load_cases(Path("cases.yaml")).cases) == sorted(names)


@pytest.mark.usefixtures("desk")
def test_a_case_is_added_where_nothing_can_be_locked(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    record(cli, write, FIND, ANSWER)

    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")  # as NFS says of a directory

    monkeypatch.setattr(fcntl, "flock", refuse)
    added(cli)
    assert len(load_cases(Path("cases.yaml")).cases) == 1


@pytest.mark.usefixtures("desk")
def test_a_case_of_a_run_is_right_for_one_who_does_the_same(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, REMIND, ANSWER, system_prompt="Be kind.", observation_max_len=90)
    case = added(cli)
    assert case["name"] == "where-is-order-17"
    assert case["calls"] == [
        {"tool": "find_order", "args": {"number": "17"}},
        {"tool": "remind", "args": {"who": {"equals": {"name": "Ann"}}, "text": "1e5\n  - on"}},
    ]
    assert (case["answer"]["number"], case["answer"]["contains"]) == (2, ["a brass lamp", "Monday"])
    assert case["config"] == {"system_prompt": "Be kind.", "observation_max_len": 90}
    assert rights(cli, write, case, FIND, REMIND, final("2 pieces, A BRASS LAMP: on monday")) == 1
    assert rights(cli, write, case, FIND, REMIND, final("A brass lamp, on Monday")) == 0


@pytest.mark.usefixtures("desk")
def test_a_link_to_a_case_file_stays_one(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    record(cli, write, FIND, ANSWER)
    Path("elsewhere").mkdir()
    file = Path("elsewhere/real.yaml")
    file.write_text("cases: []\n")
    Path("link.yaml").symlink_to(file)
    replace = os.replace

    def replace_in_a_file_system(old: Path, new: Path) -> None:
        if Path(old).resolve().parent != Path(new).resolve().parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        replace(old, new)

    monkeypatch.setattr(os, "replace", replace_in_a_file_system)
    added(cli, "--to", "link.yaml")
    assert Path("link.yaml").is_symlink()
    assert "where-is-order-17" in file.read_text()
    assert [each.name for each in Path("elsewhere").iterdir()] == ["real.yaml"]


@pytest.mark.usefixtures("desk")
def test_the_recorded_answers_stand_for_the_tools(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    case = added(cli)
    Path("desk.py").unlink()
    Path("agent-core.yaml").unlink()
    assert rights(cli, write, case, FIND, ANSWER) == 1
    told = cli("eval", "cases.yaml", "--model", "scripted:again.json", "--json").json["cases"][0]
    assert told["arguments"] == {"right": 1, "of": 1, "rate": 1.0}


@pytest.mark.usefixtures("desk")
def test_the_file_keeps_its_comments_and_what_follows(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    above = "# mine\nworkflow: flow.yaml\ncases:  # all\n- message: Hi  # first\n  answer: {contains: [hi]}  # so\n"
    below = "\n# the end\nnode: desk\n"
    path = write("mine.yaml", above + below)
    case = added(cli, "--to", "mine.yaml")
    text = path.read_text()
    assert text.startswith(above)
    assert text.endswith(below)
    assert "config" not in case
    assert "config_schema" not in case["canned"]["find_order"]
    assert [each.name for each in load_cases(path).cases] == ["hi", "where-is-order-17"]


def surrounded(cli: Cli, write: Write) -> None:
    """Run an agent whose config reads an input and what other nodes gave, one of them for each item of a list."""
    system = "{{external.who}} {{nodes.each.results}} {{nodes.first.final_answer}} {{nodes.gone?}}"
    agent = {"model": "scripted:replies.json", "max_steps": 4, "allowed_tools": ["find_order"], "prompt": "Go."}
    nodes: list[dict[str, Any]] = [
        {"id": "each", "tool": "echo", "foreach": [1, 2], "config": {"text": "item {{item}}"}},
        {"id": "first", "tool": "agent_core", "config": {**agent, "allowed_tools": []}},
        {"id": "gone", "tool": "echo", "config": {"text": "x"}},
        {
            "id": "desk",
            "tool": "agent_core",
            "config": {**agent, "prompt": "{{external.ask}}", "system_prompt": system},
        },
    ]
    edges = [{"from": "each", "to": "first"}, {"from": "first", "to": "gone", "when": "`false`"}]
    edges += [{"from": "first", "to": "desk"}, {"from": "gone", "to": "desk"}]
    write("flow.yaml", {"id": "w", "nodes": nodes, "edges": edges})
    write("replies.json", {"flow/first.1": [final("Hi.")], "flow/desk.1": [FIND, ANSWER]})
    assert cli("run", "flow.yaml", "--input", "who=Ann", "--input", "ask=Where is order 17?").code == 0


@pytest.mark.usefixtures("desk")
def test_a_case_has_what_filled_the_config_of_its_workflow(cli: Cli, write: Write) -> None:
    surrounded(cli, write)
    here = "{message: H, inputs: {who: a}, nodes: {each: {results: []}, first: {final_answer: x}}, answer: {equals: 1}}"
    write("cases.yaml", f"workflow: flow.yaml\nnode: desk\ncases:\n  - {here}\n")
    case = added(cli, "--strand", "flow/desk.1")
    assert case["inputs"] == {"who": "Ann"}
    assert case["nodes"] == {"each": {"results": ["item 1", "item 2"]}, "first": {"final_answer": "Hi."}}
    assert rights(cli, write, case, FIND, ANSWER) == 1


@pytest.mark.usefixtures("desk")
def test_a_case_that_cannot_be_measured_is_not_added(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    node = {"tool": "agent_core", "config": {"max_steps": 1, "allowed_tools": [], "prompt": "{{external.a}}"}}
    node["config"] |= {"model": "m", "system_prompt": "{{nodes.look.text}}"}
    write("other.yaml", {"id": "o", "nodes": [node, {"id": "look", "tool": "echo", "config": {"text": "x"}}]})
    text = "workflow: other.yaml\ncases:\n  - {message: Hi, nodes: {look: {text: x}}, answer: {contains: [hi]}}\n"
    file = write("cases.yaml", text)
    ran = cli("eval", "add", "last")
    assert ran.code == 3
    assert "config/system_prompt: there is no 'look' in nodes" in ran.err
    assert file.read_text() == text


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "cases:\n  - name"),
        ("# mine\n", "# mine\n\ncases:\n  - name"),
        ("cases: []\n", "cases:\n  - name"),
        ("cases: []  # none yet\nworld: {}\n", "cases:  # none yet\n  - name"),
        ("# mine\ncases:\n\nworld: {}\n", "# mine\ncases:\n  - name"),
        ("world: {}\ncases: null", "world: {}\ncases:\n  - name"),
        ("world: {}\n", "world: {}\n\ncases:\n  - name"),
    ],
)
@pytest.mark.usefixtures("desk")
def test_a_file_without_a_case_takes_its_first(cli: Cli, write: Write, text: str, after: str) -> None:
    record(cli, write, FIND, ANSWER)
    path = write("cases.yaml", text)
    case = added(cli)
    assert path.read_text().startswith(after)
    assert "world" not in text or "world: {}\n" in path.read_text()
    assert [each.name for each in load_cases(path).cases] == [case["name"]]


@pytest.mark.usefixtures("desk")
def test_a_file_with_a_faulty_case_takes_another(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    write("cases.yaml", "cases:\n  - {name: odd, message: Hi, answr: {number: 1}}\n")
    case = added(cli)
    assert [each.name for each in load_cases(Path("cases.yaml"), only=[case["name"]]).cases] == [case["name"]]
    assert "give another by --name" in cli("eval", "add", "last", "--name", "odd").err


@pytest.mark.usefixtures("desk")
def test_a_file_in_braces_is_not_written_to(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    path = write("cases.yaml", "{cases: []}\n")
    ran = cli("eval", "add", "last")
    assert (ran.code, ran.err.startswith("agent-core: cases.yaml: the case cannot be added")) == (3, True), ran.err
    assert path.read_text() == "{cases: []}\n"


@pytest.mark.usefixtures("desk")
def test_a_name_that_is_taken_is_refused_and_nothing_is_written(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, ANSWER)
    added(cli)
    before = Path("cases.yaml").read_bytes()
    ran = cli("eval", "add", "last")
    assert (ran.code, "give another by --name" in ran.err) == (3, True)
    assert Path("cases.yaml").read_bytes() == before
    added(cli, "--name", "again")
    assert Path("cases.yaml").read_bytes().startswith(before)
    assert sorted(each.name for each in Path().iterdir() if "cases" in each.name) == ["cases.yaml"]


@pytest.mark.usefixtures("desk")
def test_a_failed_call_may_be_left_out(cli: Cli, write: Write) -> None:
    wrong = action("find_order", number="71")
    record(cli, write, wrong, FIND, ANSWER)
    case = added(cli)
    assert [call.get("optional", False) for call in case["calls"]] == [True, False]
    assert case["canned"]["find_order"]["answers"][0]["error"] == "there is no order 71"
    assert rights(cli, write, case, FIND, ANSWER) == 1
    assert rights(cli, write, case, wrong, FIND, ANSWER) == 1


@pytest.mark.usefixtures("desk")
def test_the_conversation_before_the_question_is_its_history(cli: Cli, write: Write) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    record(cli, write, ANSWER, messages_json=[*talk, {"role": "user", "content": "And 17?"}], prompt=None)
    case = added(cli)
    assert (case["history"], case["message"], case["name"]) == (talk, "And 17?", "and-17")


@pytest.mark.usefixtures("desk")
def test_calls_side_by_side_are_all_expected(cli: Cli, write: Write) -> None:
    calls = [{"name": "find_order", "arguments": {"number": number}} for number in ("17", "18")]
    record(cli, write, {"content": "", "calls": calls}, {"content": "A brass lamp."}, protocol="tools")
    case = added(cli)
    assert [(call["args"]["number"], call.get("optional", False)) for call in case["calls"]] == [
        ("17", False),
        ("18", True),
    ]


# ── refusals and people ──────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("desk")
def test_a_run_that_was_refused_becomes_a_case_that_expects_it(cli: Cli, write: Write) -> None:
    narrowed = [{"tool": "find_order", "args": {"properties": {"number": {"pattern": "[0-9]"}}}}]
    record(cli, write, FIND, FIND, code=3, allowed_tools=narrowed)
    case = added(cli)
    assert case["finish_reason"] == "policy_denied"
    assert case["refused"] == [{"tool": "find_order", "args": {"number": "17"}, "reason": "policy_denied"}]
    assert rights(cli, write, case, FIND, FIND) == 1
    assert rights(cli, write, case, ANSWER) == 0


@pytest.mark.usefixtures("desk")
def test_a_call_that_waits_becomes_a_case_that_expects_it(cli: Cli, write: Write) -> None:
    record(cli, write, FIND, REMIND, code=6, allowed_tools=["find_order", {"tool": "remind", "approval": "always"}])
    case = added(cli)
    assert (case["finish_reason"], case["refused"][0]["reason"]) == ("awaiting_approval",) * 2
    assert rights(cli, write, case, FIND, REMIND) == 1


@pytest.mark.usefixtures("desk")
def test_a_call_that_a_person_approved_needs_nobody_in_the_case(cli: Cli, write: Write) -> None:
    record(cli, write, REMIND, ANSWER, code=6, approval="always")
    assert cli("decide", "last", "approve").code == 0
    case = added(cli)
    assert "approval" not in str(case)
    assert rights(cli, write, case, REMIND, ANSWER) == 1


# ── what no case can be made of ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("replies", "code", "config", "told"),
    [
        ((), 1, {}, "ended by model_error, so nothing says what is right"),
        ((FIND, FIND), 4, {"max_steps": 2}, "ended by max_steps"),
        (
            (action("agent_core", prompt="?"), ANSWER),
            0,
            {
                "allowed_tools": [
                    {"tool": "agent_core", "preset": {"model": "scripted:n.json", "max_steps": 1, "allowed_tools": []}}
                ]
            },
            "a run of its own",
        ),
    ],
    ids=["model_error", "max_steps", "nested"],
)
@pytest.mark.usefixtures("desk")
def test_why_no_case_can_be_made_is_told(
    cli: Cli, write: Write, replies: Any, code: int, config: dict[str, Any], told: str
) -> None:
    write("n.json", [final("12")])
    record(cli, write, *replies, code=code, **config)
    ran = cli("eval", "add", "last")
    assert (ran.code, told in ran.err, Path("cases.yaml").exists()) == (3, True, False), ran.err


@pytest.mark.usefixtures("desk")
def test_what_a_person_changed_is_no_model_to_go_by(cli: Cli, write: Write) -> None:
    record(cli, write, REMIND, ANSWER, code=6, approval="always")
    cli("decide", "last", "deny", "--message", "no")
    ran = cli("eval", "add", "last")
    assert (ran.code, "nobody to decide" in ran.err) == (3, True)


@pytest.mark.usefixtures("desk")
def test_of_several_agents_one_is_named(cli: Cli, write: Write) -> None:
    config = {"model": "scripted:r.json", "max_steps": 1, "allowed_tools": []}
    nodes = [{"id": each, "tool": "agent_core", "config": {**config, "prompt": f"Who is {each}?"}} for each in "ab"]
    write("flow.yaml", {"id": "w", "nodes": [*nodes, {"id": "c", "tool": "echo", "config": {"text": "x"}}]})
    write("r.json", {"flow/a.1": [final("A")], "flow/b.1": [final("B")]})
    assert cli("run", "flow.yaml").code == 0
    ran = cli("eval", "add", "last")
    assert (ran.code, "--strand: flow/a.1, flow/b.1" in ran.err) == (3, True)
    assert added(cli, "--strand", "flow/b.1")["message"] == "Who is b?"
    assert "there are flow/a.1, flow/b.1" in cli("eval", "add", "last", "--strand", "flow/c.1").err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("add",), 2, "eval add RUN"),
        (("add", "nothing"), 2, "nothing"),
        (("cases.yaml", "last"), 2, "belongs to `eval add RUN`"),
        (("cases.yaml",), 2, "--model PROVIDER:NAME"),
        (("add", "last", "--to", "cases.json"), 3, "added to YAML files"),
        (("add", "last", "--to", "brackets.yaml"), 3, "its cases are in brackets"),
    ],
)
@pytest.mark.usefixtures("desk")
def test_bad_words_are_told(cli: Cli, write: Write, words: tuple[str, ...], code: int, told: str) -> None:
    record(cli, write, FIND, ANSWER)
    one = {"cases": [{"message": "Hi", "answer": {"contains": ["hi"]}}]}
    write("brackets.yaml", one)
    write("cases.json", one)
    ran = cli("eval", *words)
    assert (ran.code, told in ran.err) == (code, True), ran.err


@pytest.mark.usefixtures("desk")
def test_a_secret_of_the_run_stays_out_and_is_told(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", "desk-token-0123456789")
    write("agent-core.yaml", {"tools": ["desk.py:find_order", "desk.py:remind"], "secret_env": ["DESK_TOKEN"]})
    record(cli, write, final("ok"), prompt="My token is desk-token-0123456789")
    assert "Secrets of the run are masked" in cli("eval", "add", "last").out
    assert "0123456789" not in Path("cases.yaml").read_text()


# ── the text of a file ───────────────────────────────────────────────────────────────────────────

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20) | st.sampled_from(
    [
        "1e5",
        "-2E+3",
        "on",
        "no",
        "~",
        "2026-01-01",
        "a: b",
        "- x",
        "#",
        " x ",
        "a\nb\n",
        "\n",
        "a\n  b",
        "0x1F",
        "1_0",
        "a\x85b\n",
        "\u2028",
        "\ufeff",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)
BEFORE = [
    "cases:\n- a: 1\n",
    "cases:\n  - a: |\n      x\n\n  # more\nworld: {}\n",
    "x: &x [1, 2]\ncases:\n    - a: *x",
    "cases:\r\n- a:\r\n",
    "cases:\n- a: {b: [1,\n    2]}  # so\n\n\n",
    "cases:\n- 'a\n\n  b'\n# end",
]


@examples(3)
@given(before=st.sampled_from(BEFORE), case=st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4))
def test_a_case_is_read_as_it_was_written_and_all_else_stays(
    tmp_path_factory: pytest.TempPathFactory, before: str, case: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_bytes(before.encode())
    was = read_document(path, "it").data
    after = insert_case(before, case, path)
    path.write_bytes(after.encode())
    assert read_document(path, "it").data == {**was, "cases": [*was["cases"], case]}
    lines, more = before.splitlines(), iter(after.splitlines())
    assert all(line in more for line in lines)
