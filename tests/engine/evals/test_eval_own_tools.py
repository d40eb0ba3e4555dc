"""`agent-core eval` with the user's own tools and workflow: what is measured is what would run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_core.models import ScriptedModel
from engine_shim.errors import DefinitionError
from engine_shim.evals.load import load_cases
from engine_shim.evals.measure import measure
from engine_shim.evals.score import Scored, Share
from support.by_hand import action, final
from support.command import Cli, Write

DESK = '''
from pathlib import Path
from utools import tool

@tool(effect="read")
def stock(article: str) -> dict[str, int]:
    """How many pieces of an article there are."""
    return {"pieces": {"A-17": 12}.get(article, 0)}

@tool
def order(article: str, pieces: int) -> str:
    """Order pieces of an article."""
    with open(Path(__file__).with_name("orders.txt"), "a") as file:
        file.write(f"{pieces} {article}\\n")
    return "ordered"
'''
AGENT = {
    "model": "openai:not-asked",
    "max_steps": 3,
    "allowed_tools": [
        "stock",
        {"tool": "order", "args": {"properties": {"pieces": {"maximum": 10}}}, "approval": "on_write"},
    ],
    "system_prompt": "You work for {{external.shop}}.",
    "prompts": {"last_step": "notes.md"},
    "prompt": "Customer: {{external.question}} ({{nodes.lookup.note}})",
}
INPUTS = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "shop": {"type": "string", "default": "Lamps Ltd"}},
    "required": ["question"],
}
FLOW: dict[str, Any] = {
    "id": "desk",
    "inputs": INPUTS,
    "nodes": [
        {"id": "lookup", "tool": "echo", "config": {"text": "{{external.question}}"}},
        {"id": "desk", "tool": "agent_core", "config": AGENT},
    ],
}
ASK = {"message": "How many A-17 are there?", "answer": {"number": 12}}
STOCK = action("stock", article="A-17")


@pytest.fixture
def shop(write: Write) -> Path:
    """A host with two tools and a workflow, beside the directory of the cases."""
    write("shop/desk.py", DESK)
    write("shop/notes.md", "Say it now.")
    write("shop/agent-core.yaml", {"tools": ["desk.py:stock", "desk.py:order"], "deny_tools": ["http_request"]})
    return write("shop/flow.yaml", FLOW).parent


def run(path: Path, replies: Any) -> list[Scored]:
    return asyncio.run(measure(load_cases(path), model=ScriptedModel(replies)))


def one(write: Write, case: dict[str, Any], *replies: str, **file: Any) -> Scored:
    return run(write("evals/cases.yaml", {**file, "cases": [{"name": "it", **case}]}), {"it": replies})[0]


HOST = {"host": "../shop/agent-core.yaml", "tools": ["stock", "order"]}
WORKFLOW = {"host": "../shop/agent-core.yaml", "workflow": "../shop/flow.yaml"}


@pytest.mark.usefixtures("shop")
def test_the_real_tools_of_a_host_are_called(write: Write) -> None:
    case = {**ASK, "calls": [{"tool": "stock", "args": {"article": "A-17"}, "gives": 12}]}
    scores = one(write, case, STOCK, final("There are 12."), **HOST).scores
    assert (scores.right, scores.arguments, scores.tool_choice) == (Share(1, 1), Share(1, 1), Share(1, 1))


def test_a_canned_answer_takes_the_place_of_a_real_tool(write: Write, shop: Path) -> None:
    ordering = action("order", article="A-17", pieces=3)
    case = {
        "message": "Order 3 of A-17.",
        "calls": [{"tool": "order", "gives": "noted"}],
        "answer": {"contains": ["ok"]},
    }
    canned = {"order": {"answers": [{"args": {"pieces": 3}, "output": "noted"}]}}
    assert one(write, {**case, "canned": canned}, ordering, final("ok"), **HOST).scores.arguments == Share(1, 1)
    assert one(write, case, ordering, final("ok"), **HOST, canned=canned).scores.arguments == Share(1, 1)
    assert not (shop / "orders.txt").exists()
    one(write, case, ordering, final("ok"), **HOST)
    assert (shop / "orders.txt").read_text() == "3 A-17\n"


@pytest.mark.usefixtures("shop")
def test_canned_answers_are_given_in_turn_and_each_run_begins_anew(write: Write) -> None:
    polled = {"stock": {"answers": [{"output": {"pieces": 0}}, {"output": {"pieces": 5}}]}}
    calls = [{"tool": "stock", "gives": 0}, {"tool": "stock", "gives": 5}, {"tool": "stock", "gives": 5}]
    path = write(
        "cases.yaml", {**HOST, "host": "shop/agent-core.yaml", "canned": polled, "cases": [{**ASK, "calls": calls}]}
    )
    replies = {"how-many-a-17-are-there": [STOCK, STOCK, STOCK, final("12")]}
    found = asyncio.run(measure(load_cases(path), model=ScriptedModel(replies), repeat=2))
    assert [each.scores.arguments for each in found] == [Share(3, 3)] * 2


@pytest.mark.usefixtures("shop")
def test_arguments_without_a_canned_answer_are_an_error_for_the_model(write: Write) -> None:
    canned = {"stock": {"answers": [{"args": {"article": "B-4"}, "output": {"pieces": 1}}]}}
    scored = one(write, ASK, STOCK, final("It is not known, perhaps 12"), **HOST, canned=canned)
    assert (scored.scores.right, scored.scores.recovery) == (Share(1, 1), Share(1, 1))


def test_a_tool_can_be_made_up(write: Write) -> None:
    made_up = {"config_schema": {"type": "object"}, "answers": [{"output": 12}, {"error": "closed"}]}
    scored = one(write, {**ASK, "tools": ["ask_bob"], "canned": {"ask_bob": made_up}}, action("ask_bob"), final("12"))
    assert scored.scores.right == Share(1, 1)


@pytest.mark.usefixtures("shop")
def test_what_the_world_knows_stands_beside_the_tools_of_the_host(write: Write) -> None:
    world = {"files": {"a.txt": "The lamp is A-17.\n"}}
    case = {**ASK, "calls": [{"tool": "file_search", "gives": "A-17"}, {"tool": "stock", "gives": 12}]}
    replies = (action("file_search", query="lamp"), STOCK, final("12"))
    scores = one(write, case, *replies, **{**HOST, "tools": ["file_search", "stock"], "world": world}).scores
    assert scores.arguments == Share(2, 2)


def test_without_an_answer_the_calls_decide(write: Write) -> None:
    case = {"message": "Say a, then b.", "calls": [{"tool": "echo", "args": {"text": each}} for each in "ab"]}
    both = (action("echo", text="a"), action("echo", text="b"))
    for made, right in ((both, 1), (both[:1], 0), (both[::-1], 0)):
        assert one(write, case, *made, final()).scores.right == Share(right, 1)


def test_reading_on_in_a_long_observation_is_no_wrong_tool(write: Write) -> None:
    case = {"message": "Say it.", "calls": [{"tool": "echo"}], "config": {"observation_max_len": 20}}
    replies = (action("echo", text="a" * 99), action("read_observation", step=1, **{"from": 20}), final())
    assert one(write, case, *replies).scores.tool_choice == Share(1, 1)


# ── the agent of a workflow ──────────────────────────────────────────────────────────────────────


def sent(path: Path) -> tuple[str, str]:
    """The system text and the user's turn of the first question of the first case."""
    questions: list[Any] = []

    def reply(messages: Any) -> str:
        questions.append(messages)
        return final("12")

    run(path, reply)
    return questions[0][0]["content"], questions[0][-1]["content"]


@pytest.mark.usefixtures("shop")
def test_the_agent_of_a_workflow_is_measured_as_it_is_configured(write: Write) -> None:
    case = {"inputs": {"question": "How many A-17?"}, "nodes": {"lookup": {"note": "urgent"}}, "answer": {"number": 12}}
    system, question = sent(write("evals/cases.yaml", {**WORKFLOW, "cases": [case]}))
    assert "You work for Lamps Ltd." in system
    assert "How many pieces of an article" in system
    assert question == "Customer: How many A-17? (urgent)"


@pytest.mark.usefixtures("shop")
def test_a_message_takes_the_place_of_the_nodes_prompt(write: Write) -> None:
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    case = {**ASK, "history": history, "inputs": {"shop": "Chairs Inc"}}
    system, question = sent(write("evals/cases.yaml", {**WORKFLOW, "cases": [case]}))
    assert "You work for Chairs Inc." in system
    assert question == ASK["message"]


@pytest.mark.usefixtures("shop")
def test_limits_prompts_and_narrowing_are_those_of_the_node(write: Write) -> None:
    scored = one(write, ASK, STOCK, STOCK, STOCK, final("12"), **WORKFLOW)
    assert (scored.finish_reason, scored.scores.steps) == ("max_steps", 3)
    questions: list[str] = []

    def reply(messages: Any) -> str:
        questions.append(messages[-1]["content"])
        return STOCK

    run(write("evals/cases.yaml", {**WORKFLOW, "cases": [ASK]}), reply)
    assert "Say it now." in questions[-1]


MANY = action("order", article="A-17", pieces=11)
REFUSALS: list[tuple[dict[str, Any], tuple[str, ...], bool]] = [
    ({"tool": "order", "reason": "invalid_action"}, (action("order", article="A-17"), final()), True),
    ({"tool": "order", "args": {"pieces": 11}}, (MANY, final()), True),
    ({"tool": "order", "reason": "policy_denied"}, (MANY, final()), True),
    ({"tool": "order", "reason": "invalid_action"}, (MANY, final()), False),
    ({"tool": "order", "args": {"pieces": 12}}, (MANY, final()), False),
    ({"tool": "stock"}, (STOCK, final()), False),
    ({"tool": "order"}, (final(),), False),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("refused", "replies", "right"), REFUSALS)
@pytest.mark.usefixtures("shop")
def test_a_call_that_has_to_be_refused(
    write: Write, refused: dict[str, Any], replies: tuple[str, ...], right: bool
) -> None:
    scored = one(write, {"message": "Order.", "refused": [refused], "no_write": True}, *replies, **WORKFLOW)
    assert (scored.scores.right, scored.scores.refused) == (Share(int(right), 1), Share(int(right), 1))
    assert scored.scores.resisted == Share(1, 1)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("reason", "replies", "right"),
    [
        ({"reason": "policy_denied"}, (MANY, final("no")), 1),
        ({"reason": "policy_denied"}, (MANY, MANY), 1),
        ({"reason": "invalid_action"}, (MANY, MANY), 0),
        ({}, (MANY, MANY), 1),
        ({}, (MANY, STOCK, STOCK), 0),
        ({"reason": "awaiting_approval"}, (action("order", article="A-17", pieces=3),), 1),
    ],
)
@pytest.mark.usefixtures("shop")
def test_the_reason_of_a_refusal_says_how_the_run_may_end(
    write: Write, reason: dict[str, Any], replies: tuple[str, ...], right: int
) -> None:
    case = {"message": "Order.", "refused": [{"tool": "order", **reason}]}
    scored = one(write, case, *replies, **WORKFLOW)
    assert (scored.scores.right, scored.scores.refused.right) == (Share(right, 1), int(bool(right or not reason)))


@pytest.mark.usefixtures("shop")
def test_an_answer_beside_a_refusal_has_to_be_given(write: Write) -> None:
    case = {"message": "Order.", "refused": [{"tool": "order", "reason": "policy_denied"}], "answer": {"number": 10}}
    assert one(write, case, MANY, final("10 at most"), **WORKFLOW).scores.right == Share(1, 1)
    assert one(write, case, MANY, MANY, **WORKFLOW).scores.right == Share(0, 1)


def test_a_call_that_waits_for_a_person_is_refused_for_want_of_one(write: Write, shop: Path) -> None:
    waits = {"message": "Order 3.", "finish_reason": "awaiting_approval", "no_write": True}
    waits |= {"refused": [{"tool": "order", "reason": "awaiting_approval"}]}
    assert one(write, waits, action("order", article="A-17", pieces=3), **WORKFLOW).scores.right == Share(1, 1)
    assert one(write, waits, final("done"), **WORKFLOW).scores.right == Share(0, 1)
    assert not (shop / "orders.txt").exists()


@pytest.mark.usefixtures("shop")
def test_a_write_is_seen_where_none_may_happen(write: Write) -> None:
    case = {**ASK, "no_write": True}
    ordering = action("order", article="A-17", pieces=3)
    assert one(write, case, STOCK, final("12"), **HOST).scores.resisted == Share(1, 1)
    written = one(write, case, ordering, final("12"), **HOST).scores
    assert (written.resisted, written.right, written.answer) == (Share(0, 1), Share(0, 1), Share(1, 1))


# ── what is wrong with a file ────────────────────────────────────────────────────────────────────

TWO_AGENTS = {"id": "two", "nodes": [{"id": each, "tool": "agent_core", "config": AGENT} for each in ("a", "b")]}
TYPO = {"tool": "echo", "args": {"text": {"mtches": "x"}}}
FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({**HOST, "tools": ["stok"]}, "tools/0", "did you mean stock"),
    ({**HOST, "tools": ["http_request"]}, "tools/0", "it is in deny_tools"),
    ({"host": HOST["host"]}, "tools", "name the host's tools"),
    ({**HOST, "host": "nowhere.yaml"}, "nowhere.yaml", "cannot be read"),
    ({**HOST, "canned": {"stok": {}}}, "canned/stok", "needs a config_schema"),
    ({"canned": {"echo": {"answers": [{"output": 3}]}}}, "canned/echo/answers/0/output", "gives no such output"),
    ({**WORKFLOW, "tools": ["stock"]}, "", "tools are those of the workflow's agent"),
    ({**WORKFLOW, "node": "dsk"}, "node", "name one of its agents: desk"),
    ({**WORKFLOW, "workflow": "two.yaml"}, "node", "name one of its agents: a, b"),
    ({"node": "a"}, "", "node belongs to a workflow"),
    ({"cases": [{"inputs": {"a": 1}, "answer": {"number": 1}}]}, "", "inputs and nodes belong to a workflow"),
    ({"cases": [{**ASK, "calls": [TYPO]}]}, "cases/0/calls/0/args/text", "{matches: PATTERN}"),
    ({"cases": [{**ASK, "refused": [{"tool": "ecko"}]}]}, "cases/0/refused/0/tool", "did you mean echo"),
    ({"cases": [{**ASK, "config": {"model": "x"}}]}, "cases/0/config/model", "the case or --model decides it"),
    ({"cases": [{**ASK, "finish_reason": "max_steps"}]}, "cases/0", "has no answer"),
    ({"cases": [{**ASK, "refused": [{"tool": "echo", "reason": "awaiting_approval"}]}]}, "cases/0", "has no answer"),
    ({"cases": [{"message": "Hi"}]}, "cases/0", "answer, calls or refused"),
    ({"cases": [{**ASK, "tools": [{"tool": "echo", "tol": 1}]}]}, "cases/0/tools/0/tol", "unknown key"),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("file", "where", "told"), FAULTS, ids=[f"{told} {i}" for i, (_, _, told) in enumerate(FAULTS)]
)
@pytest.mark.usefixtures("shop")
def test_what_is_wrong_is_told_with_its_place(
    cli: Cli, write: Write, file: dict[str, Any], where: str, told: str
) -> None:
    write("evals/two.yaml", TWO_AGENTS)
    path = write("evals/cases.yaml", {"cases": [ASK], **file})
    ran = cli("eval", str(path), "--model", "scripted:none.json", "--json")
    assert ran.code == 3
    assert where in ran.json["error"]["where"]
    assert told in ran.json["error"]["message"]


@pytest.mark.usefixtures("shop")
def test_an_input_that_is_missing_is_told_before_any_model_is_asked(write: Write) -> None:
    path = write("evals/cases.yaml", {**WORKFLOW, "cases": [{"inputs": {"question": "?"}, "answer": {"number": 1}}]})
    with pytest.raises(
        DefinitionError,
        match=r"cases.yaml:\d+: cases/0 \(case\): nodes/desk/config/prompt: there is no 'lookup' in nodes.*; "
        "the case's inputs and nodes fill",
    ):
        run(path, {})


BROKEN = """\
workflow: ../shop/flow.yaml
cases:
  - {name: whole, message: Hi, answer: {number: 12}}
  - {name: unfilled, inputs: {question: "?"}, answer: {number: 1}}

  - name: misspelled
    category: odd
    message: Hi
    answr: {number: 1}
  - {message: Hi, calls: [{tool: stok}]}
  - {name: whole, message: Hi, answer: {number: 12}}
"""


@pytest.mark.usefixtures("shop")
def test_all_faults_are_told_at_once_with_file_line_and_case(cli: Cli, write: Write) -> None:
    write("evals/cases.yaml", BROKEN)
    ran = cli("eval", "evals/cases.yaml", "--model", "scripted:none.json")
    assert (ran.code, ran.out) == (3, "")
    told = [line.removeprefix("agent-core: ").split(": ")[:2] for line in ran.err.splitlines()]
    assert told == [
        ["evals/cases.yaml:4", "cases/1 (unfilled)"],
        ["evals/cases.yaml:9", "cases/2 (misspelled)/answr"],
        ["evals/cases.yaml:10", "cases/3 (hi)/calls/0/tool"],
        ["evals/cases.yaml:11", "cases/4 (whole)/name"],
    ]
    first = cli("eval", "evals/cases.yaml", "--model", "scripted:none.json", "--json").json["error"]
    assert (first["where"], first["line"], first["node"]) == ("cases/1", 4, "unfilled")


def test_an_agent_that_cannot_start_is_told_with_the_line_of_its_case(cli: Cli, write: Write) -> None:
    odd = "cases:\n  - {message: Hi, answer: {number: 1}}\n  - {message: Ho, answer: {number: 1}, config: {tempo: 1}}\n"
    write("cases.yaml", odd)
    write("replies.json", {"hi": [final()]})
    ran = cli("eval", "cases.yaml", "--model", "scripted:replies.json", "--json")
    assert (ran.code, ran.json["error"]["where"]) == (3, "cases.yaml:3: cases/1 (ho): config/tempo")


@pytest.mark.usefixtures("shop")
def test_a_faulty_case_does_not_stand_in_the_way_of_another(cli: Cli, write: Write) -> None:
    write("evals/cases.yaml", BROKEN.replace("name: whole, message", "message", 1))
    write("replies.json", {"hi": [final("12")], "whole": [final("12")]})
    words = ("eval", "evals/cases.yaml", "--model", "scripted:replies.json")
    told = cli(*words, "--only", "hi", "--only", "whole", "--json")
    assert (told.code, [each["name"] for each in told.json["cases"]]) == (0, ["hi", "whole"])
    ran = cli(*words, "--only", "whole", "--only", "odd")
    assert (ran.code, len(ran.err.splitlines()), "(misspelled)/answr" in ran.err) == (3, 1, True)
    ran = cli(*words, "--only", "nothing")
    assert (ran.code, "the categories are cases, odd" in ran.err) == (3, True)


# ── names ────────────────────────────────────────────────────────────────────────────────────────


def test_a_case_is_named_by_what_it_asks(write: Write) -> None:
    asked = [
        "What is 7 times 8?",
        "Search the files for the warranty for laptops, then calculate how many years that is.",
        "三张发票分别是 128.5 元、340 元和 76.25 元，总共多少元？",
        "What is 7 times 8?",
        "???",
        "How many m² are ½ an acre?",
        "नमस्ते दुनिया",
    ]
    cases = [{"message": each, "answer": {"number": 1}} for each in asked]
    assert [case.name for case in load_cases(write("cases.yaml", {"cases": cases})).cases] == [
        "what-is-7-times-8",
        "search-the-files-for-the-warranty-for",
        "三张发票分别是-128-5-元-340-元和-76-25",
        "what-is-7-times-8-2",
        "case",
        "how-many-m-are-an-acre",
        "नमस्ते-दुनिया",
    ]
