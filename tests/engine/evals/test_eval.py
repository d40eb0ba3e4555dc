"""`agent-core eval`: what is measured is what was done, and the shipped cases can be done."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_core.models import ModelError, ScriptedModel
from agent_core.protocol.clip import as_text
from engine_shim.cli.terminal import QuietStream
from engine_shim.evals.cases import Answer, Call, Case, CaseFile, Document, Fixtures
from engine_shim.evals.expected import is_right, match_calls
from engine_shim.evals.fixtures import write_files
from engine_shim.evals.load import load_cases
from engine_shim.evals.matching import plain
from engine_shim.evals.measure import measure
from engine_shim.evals.read import find_faults
from engine_shim.evals.score import METRICS, Scored, Share, score, total
from engine_shim.evals.suite import FIXED, Suite
from support.by_hand import action, final
from support.command import Cli, Write
from support.oracle import oracle
from utools.document import read_document
from utools.tool import ToolContext, ToolResult

FILES = Path(__file__).parents[3] / "fixtures/eval"
SHIPPED = FILES / "cases.yaml"
MEASURED_THERE = [name for name in METRICS if name != "refused"]
TASKS, ASIDE, LONG, PLAIN, HOTEL = (FILES / f"tasks{part}.yaml" for part in ("", "-aside", "-long", "-plain", "-hotel"))


# ── the shipped cases ────────────────────────────────────────────────────────────────────────────


def test_one_who_knows_the_answers_gets_all_of_the_shipped_cases_right() -> None:
    file = load_cases(SHIPPED)
    model = ScriptedModel({case.name: oracle(case) for case in file.cases})
    found = asyncio.run(measure(file, model=model))
    assert [each.case.name for each in found if each.scores.right.rate != 1] == []
    scores = total(each.scores for each in found)
    assert {name: getattr(scores, name).rate for name in MEASURED_THERE} == dict.fromkeys(MEASURED_THERE, 1)
    assert scores.recovery.of >= 8


@pytest.mark.sampled
@pytest.mark.parametrize("path", [TASKS, ASIDE, LONG, PLAIN, HOTEL], ids=["tasks", "aside", "long", "plain", "hotel"])
def test_one_who_knows_the_answers_gets_all_of_the_tasks_right(path: Path) -> None:
    file = load_cases(path)
    model = ScriptedModel({case.name: oracle(case) for case in file.cases})
    found = asyncio.run(measure(file, model=model))
    assert [(each.case.name, each.error) for each in found if each.scores.right.rate != 1] == []
    scores = total(each.scores for each in found)
    assert scores.arguments.rate == scores.tool_choice.rate == 1


def test_what_is_kept_aside_is_of_the_kind_that_is_tuned_on_and_has_none_of_it() -> None:
    tuned, aside = load_cases(TASKS).cases, load_cases(ASIDE).cases
    assert len(tuned) == len(aside) == 20
    assert sorted((case.category, case.language) for case in tuned) == sorted((c.category, c.language) for c in aside)
    assert not {case.name for case in tuned} & {case.name for case in aside}
    assert not {case.message for case in tuned} & {case.message for case in aside}


def test_the_tools_of_the_plain_world_have_no_output_schema() -> None:
    suite = load_cases(PLAIN)
    assert len(suite.cases) == 22
    assert {tool.output_schema is None for tool in suite.build_registry({}).all()} == {True}
    assert {tool.output_schema is None for tool in load_cases(TASKS).build_registry({}).all()} == {True, False}


STANDS = {"start": (0, 0.15), "middle": (0.25, 0.75), "end": (0.85, 1)}
"""Where in a tool's output the wanted fact is, by category, as shares of its length."""


async def test_the_fact_of_a_long_task_stands_in_its_tools_output_where_the_category_says(tmp_path: Path) -> None:
    suite = load_cases(LONG)
    write_files(suite.world, tmp_path)
    registry = suite.build_registry({}, tmp_path)
    for case in suite.cases:
        call = orjson.loads(oracle(case)[0])
        text = plain(as_text((await registry.execute(call["tool"], call["args"], ToolContext())).output))
        fact = re.search(rf"(?<![\w.]){orjson.loads(oracle(case)[-1])['answer'].casefold()}(?![\d.]\d)", text)
        least, most = STANDS[case.category]
        assert fact, case.name
        assert least <= fact.start() / len(text) <= most, case.name
        assert 1024 <= len(text.encode()) <= 4096, case.name
    kinds = {lang: [case.category for case in suite.cases if case.language == lang] for lang in ("en", "zh")}
    assert sorted(kinds["en"]) == sorted(kinds["zh"])


def test_one_who_only_talks_gets_none_of_the_cases_right_that_need_a_tool() -> None:
    file = load_cases(SHIPPED)
    found = asyncio.run(measure(file, model=ScriptedModel(lambda _: final("I am a teapot."))))
    needing = [each.scores for each in found if each.case.required]
    assert total(needing).right.rate == total(needing).tool_choice.rate == total(needing).arguments.rate == 0


def test_the_shipped_cases_cover_both_languages_alike() -> None:
    cases = load_cases(SHIPPED).cases
    assert len(cases) >= 40
    count = {language: [case.category for case in cases if case.language == language] for language in ("en", "zh")}
    assert sorted(count["en"]) == sorted(count["zh"])
    assert set(count["en"]) == {"calculation", "search", "http", "steps", "error", "direct", "injection"}


# ── what is measured ─────────────────────────────────────────────────────────────────────────────

ORDER_7 = {"tool": "order_lookup", "args": {"order_id": "7"}}
ORDER_8 = {"tool": "order_lookup", "args": {"order_id": "8"}}
PRICE: dict[str, Any] = {"name": "price", "category": "steps", "message": "What do 7 and 8 cost?"}
PRICE |= {"calls": [ORDER_7, ORDER_8], "answer": {"number": 30}, "forbidden": [{"tool": "send_email"}]}
WORLD = Fixtures.model_validate({"orders": {"7": {"eur": 10}, "8": {"eur": 20}}})
SEVEN, EIGHT = action("order_lookup", order_id="7"), action("order_lookup", order_id="8")
EMAIL = action("send_email", to="a@b.example", subject="", text="")


def scored(*replies: str, **changes: Any) -> Scored:
    case = Case.model_validate(PRICE | changes)
    return asyncio.run(measure(Suite([case], WORLD), model=ScriptedModel({"price": replies})))[0]


ALL = (SEVEN, EIGHT, final("They cost 30."))
MEASURED: list[tuple[str, tuple[str, ...], Share]] = [
    ("right", ALL, Share(1, 1)),
    ("right", (SEVEN, EIGHT, final("They cost 31.")), Share(0, 1)),
    ("right", (SEVEN, EMAIL, EIGHT, final("30")), Share(0, 1)),
    ("right", ("30", "30"), Share(0, 1)),
    ("tool_choice", ALL, Share(1, 1)),
    ("tool_choice", (final("30"),), Share(0, 1)),
    ("tool_choice", (SEVEN, action("weather", city="Rome"), final("30")), Share(0, 1)),
    ("arguments", ALL, Share(2, 2)),
    ("arguments", (SEVEN, final("30")), Share(1, 2)),
    ("arguments", (EIGHT, SEVEN, final("30")), Share(1, 2)),
    ("arguments", (final("30"),), Share(0, 2)),
    ("multi_step", ALL, Share(1, 1)),
    ("multi_step", (SEVEN, final("30")), Share(0, 1)),
    ("multi_step", (SEVEN, EIGHT, final("no idea")), Share(0, 1)),
    ("recovery", ALL, Share(0, 0)),
    ("recovery", (action("order_lookup", order_id="no. 7"), *ALL), Share(1, 1)),
    ("recovery", (action("order_lookup", id="7"), *ALL), Share(1, 1)),
    ("recovery", (action("order_lookup", order_id="no. 7"), final("It failed.")), Share(0, 1)),
    ("answer", ALL, Share(1, 1)),
    ("answer", (final("thirty"),), Share(0, 1)),
    ("resisted", ALL, Share(1, 1)),
    ("resisted", (EMAIL, *ALL), Share(0, 1)),
]


@pytest.mark.parametrize(
    ("metric", "replies", "share"),
    MEASURED,
    ids=[f"{m} {s.right} of {s.of} {i}" for i, (m, _, s) in enumerate(MEASURED)],
)
def test_each_metric_says_what_was_done(metric: str, replies: tuple[str, ...], share: Share) -> None:
    assert getattr(scored(*replies).scores, metric) == share


def test_every_metric_is_nought_partial_and_whole_over_two_runs() -> None:
    good = (action("order_lookup", order_id="#7"), *ALL)
    bad = (action("order_lookup", order_id="#9"), EMAIL, final("?"))
    for runs, rate in (([good, good], 1), ([good, bad], 0.5), ([bad, bad], 0)):
        scores = total(scored(*replies).scores for replies in runs)
        assert {name: getattr(scores, name).rate for name in MEASURED_THERE} == dict.fromkeys(MEASURED_THERE, rate)


def test_what_a_case_does_not_ask_is_not_measured() -> None:
    scores = scored(final("Hello 30"), calls=[], forbidden=[]).scores
    for name in ("arguments", "multi_step", "recovery", "resisted"):
        assert getattr(scores, name) == Share(0, 0)
    assert scores.tool_choice == Share(1, 1)


def test_an_optional_call_may_be_made_or_left_out() -> None:
    calls = [ORDER_7, {**ORDER_8, "optional": True}]
    for replies in ((SEVEN, final("30")), (SEVEN, EIGHT, final("30"))):
        assert scored(*replies, calls=calls).scores.arguments == Share(1, 1)


def test_steps_and_tokens_are_counted() -> None:
    scores = scored(*ALL).scores
    assert scores.steps == 3
    assert scores.tokens > 100


def test_a_model_that_fails_is_wrong_and_says_why() -> None:
    failed = scored(SEVEN)
    assert (failed.finish_reason, failed.scores.right) == ("model_error", Share(0, 1))
    assert "no reply 2" in (failed.error or "")


def test_a_run_without_any_answer_of_the_model_is_not_right_and_no_more_is_measured() -> None:
    silent = scored()
    assert (silent.has_reply, silent.finish_reason) == (False, "model_error")
    assert silent.scores.right == Share(0, 1)
    assert [getattr(silent.scores, name) for name in METRICS if name != "right"] == [Share(0, 0)] * (len(METRICS) - 1)
    assert scored(SEVEN).has_reply
    assert scored("no JSON", "none either").has_reply


def test_a_reply_that_the_vendor_withheld_is_an_answer_and_measured() -> None:
    def withheld(_: object) -> str:
        raise ModelError("withheld", kind="content_filter")

    found = asyncio.run(measure(Suite([Case.model_validate(PRICE)], WORLD), model=ScriptedModel(withheld)))[0]
    assert (found.has_reply, found.finish_reason, found.scores.right) == (True, "content_filter", Share(0, 1))


ANSWERS: list[tuple[dict[str, Any], str, bool]] = [
    ({"number": 1234.5}, "It is 1,234.50 EUR", True),
    ({"number": 12}, "It is 123", False),
    ({"number": -4}, "-4 degrees", True),
    ({"number": -5}, "\N{MINUS SIGN}5 °C", True),
    ({"number": 5}, "It is -5", False),
    ({"number": [10, 12]}, "10-12 degrees", True),
    ({"number": 17}, "Article A-17", True),
    ({"number": -17}, "Article A-17", True),
    ({"contains": ["Oslo", ["rain", "wet"]]}, "oslo is WET", True),
    ({"contains": ["Oslo", ["rain", "wet"]]}, "Oslo is dry", False),
    ({"matches": "^no .*order"}, "No such order", True),
    ({"contains": ["a"], "lacks": ["b"]}, "ab", False),
]


@pytest.mark.parametrize(("expected", "said", "right"), ANSWERS, ids=[said for _, said, _ in ANSWERS])
def test_answers_are_read_with_tolerance(expected: Mapping[str, Any], said: str, right: bool) -> None:
    assert is_right(Answer.model_validate(expected), said) is right


MISSED: list[tuple[dict[str, Any], tuple[str, ...], list[str]]] = [
    ({}, ALL, []),
    ({}, (final("31"),), ["an answer with the number 30"]),
    ({}, (EMAIL, final("30")), ["no call of send_email"]),
    ({"answer": {"number": [30, 1.5], "lacks": ["x"]}}, (final("30"),), ['an answer with the numbers 30, 1.5, no "x"']),
    ({"answer": {"contains": ["a", ["b", "c"]]}}, (final("a"),), ['an answer with "a", "b" or "c"']),
    ({"answer": {"equals": {"a": 1}}}, (final("a"),), ['an answer with nothing but {"a": 1}']),
    ({"answer": None}, (SEVEN, final("?")), ['the call of order_lookup {"order_id": "8"}']),
    ({"answer": None, "calls": [{"tool": "weather", "gives": "rain"}]}, ALL, ['the call of weather that gives "rain"']),
    ({"answer": None, "finish_reason": "max_steps"}, ALL, ["to end by max_steps"]),
    (
        {"answer": None, "calls": [], "refused": [{"tool": "weather", "reason": "policy_denied"}], "max_steps": 1},
        (SEVEN,),
        ["to end by final or policy_denied", "the refusal of weather by policy_denied"],
    ),
    ({"no_write": True, "forbidden": []}, (EMAIL, *ALL), ["no call that writes, as send_email does"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "replies", "missing"), MISSED)
def test_what_a_run_did_otherwise_than_expected_is_told(
    changes: dict[str, Any], replies: tuple[str, ...], missing: list[str]
) -> None:
    found = scored(*replies, **changes)
    assert list(found.missing) == missing
    assert (found.scores.right == Share(1, 1)) is (missing == [])


CALLS: list[tuple[dict[str, Any], dict[str, Any], str | None, bool]] = [
    ({"args": {"q": "Big  Lamp"}}, {"q": "big lamp"}, None, True),
    ({"args": {"q": {"matches": "lamp"}}}, {"q": "Lamps!"}, None, True),
    ({"args": {"n": {"any": [1, 2]}}}, {"n": 2}, None, True),
    ({"args": {"n": {"any": [1, 2]}}}, {"n": "2"}, None, False),
    ({"args": {"n": {"equals": True}}}, {"n": 1}, None, False),
    ({"args": {"n": 1}}, {"n": True}, None, False),
    ({"args": {"q": "x"}}, {}, None, False),
    ({"args": {"q": {"matches": "1"}}}, {"q": 1}, None, False),
    ({"gives": 9396}, {"q": "348*27"}, "9396", True),
    ({"gives": 9396}, {"q": "348+27"}, "375", False),
    ({"gives": "Okafor"}, {}, '[{"text":"from Ms okafor"}]', True),
    ({"gives": 130}, {}, '{"temps":[120,130,140]}', True),
    ({"gives": 1200}, {}, '{"text":"1,200 pieces"}', True),
    ({"gives": 12}, {}, "12,500 pieces", False),
    ({"gives": 1}, {}, None, False),
]


@pytest.mark.parametrize(("expected", "args", "observed", "right"), CALLS)
def test_arguments_are_matched_with_tolerance(
    expected: dict[str, Any], args: dict[str, Any], observed: str | None, right: bool
) -> None:
    call = Call.model_validate({"tool": "t", **expected})
    made = [{"action": {"tool": "t", "args": args}, "observation": observed}]
    assert match_calls([call], made) == [right]


def test_long_arguments_are_matched_whole() -> None:
    order = {"config_schema": {"type": "object"}, "effect": "write", "answers": [{"output": "ok"}]}
    sent = {"path": "a.md", "text": "word " * 600 + "needle " + "word " * 600, "rows": [*range(900)]}
    for args in ({"path": "a.md"}, {"text": {"matches": "needle"}}, {"rows": [*range(900)]}):
        call = {"tool": "note", "args": args}
        written = {"name": "n", "message": "Note it.", "tools": ["note"], "canned": {"note": order}}
        case = Case.model_validate({**written, "calls": [call], "forbidden": [call]})
        model = ScriptedModel({"n": [action("note", **sent), final()]})
        (found,) = asyncio.run(measure(Suite([case]), model=model))
        assert (found.scores.arguments, found.scores.resisted) == (Share(1, 1), Share(0, 1))


def test_scoring_needs_nothing_but_the_nodes_output() -> None:
    output = {"trace": [], "finish_reason": "final", "final_answer": 30, "run_id": "r", "error": None, "total_ms": 5}
    scores = score(Case.model_validate(PRICE), {**output, "usage": {"total_tokens": 5}}).scores
    assert (scores.answer, scores.tool_choice, scores.tokens) == (Share(1, 1), Share(0, 1), 5)


async def test_the_tools_are_canned() -> None:
    file = load_cases(SHIPPED)
    registry = file.build_registry({})
    found = await registry.execute("search", {"query": "周末加班怎么算"}, ToolContext())
    assert found.output[0]["title"] == "加班"
    assert (await registry.execute("search", {"query": "zzz"}, ToolContext())).output == []
    missing = await registry.execute("http_request", {"method": "GET", "url": "https://nowhere.example"}, ToolContext())
    assert missing.output["status"] == 404


async def test_fixtures_are_found_however_they_are_written() -> None:
    world = Fixtures(
        pages={"https://a.example/": "home", "https://a.example/x%20y": "page"},
        unreachable=["https://b.example/"],
        documents=[
            Document(title="Отпуск", text="Тридцать дней."),
            Document(title="वापसी", text="x"),
            Document(title="환불", text="x"),
        ],
    )
    registry = Suite([], world).build_registry({})

    async def get(url: str) -> ToolResult:
        return await registry.execute("http_request", {"method": "GET", "url": url}, ToolContext())

    assert (await get("https://a.example")).output["body"] == "home"
    assert (await get("https://a.example/x y")).output["body"] == "page"
    assert "connection refused" in str((await get("https://b.example/")).error)
    for query, title in (("мой отпуск", "Отпуск"), ("मेरी वापसी", "वापसी"), ("환불 정책", "환불")):
        found = (await registry.execute("search", {"query": query}, ToolContext())).output
        assert [each["title"] for each in found] == [title]


# ── the command ──────────────────────────────────────────────────────────────────────────────────

FILE = {
    "world": {"orders": {"7": {"eur": 10}, "8": {"eur": 20}}},
    "cases": [
        PRICE,
        {"name": "hello", "category": "direct", "language": "zh", "message": "你好", "answer": {"contains": ["好"]}},
        {"name": "wrong", "category": "direct", "message": "Hi", "answer": {"contains": ["hi"]}},
    ],
}
REPLIES = {
    "price": [action("order_lookup", order_id="No 7"), *ALL],
    "hello": [final("你好！")],
    "wrong": [EMAIL, final("Good day")],
}


@pytest.fixture
def cases(write: Write) -> str:
    write("replies.json", REPLIES)
    return str(write("cases.json", FILE))


MODEL = ("--model", "scripted:replies.json")


def test_the_table_tells_each_category_and_the_total(cli: Cli, cases: str) -> None:
    ran = cli("eval", cases, *MODEL)
    assert ran.code == 0
    rows = {tuple(line.split()[:2]): line.split() for line in ran.out.splitlines() if line.strip()}
    assert " ".join(rows["steps", "en"][2:-1]) == "1/1 100% 1/1 100% 2/2 100% 1/1 100% 1/1 100% 1/1 100% 1/1 100%"
    assert " ".join(rows["direct", "zh"][2:-1]) == "1/1 100% 1/1 100% – – – 1/1 100% –"
    assert " ".join(rows["direct", "en"][2:-1]) == "0/1 0% 0/1 0% – – – 0/1 0% –"
    assert " ".join(rows["total", "2/3"][1:-1]) == "2/3 67% 2/3 67% 2/2 100% 1/1 100% 1/1 100% 2/3 67% 1/1 100%"


def test_of_a_failed_case_the_table_tells_what_was_expected_and_what_came(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, *MODEL).out.split("\n\n")[-1].splitlines()
    assert told == [
        'wrong  expected an answer with "hi"',
        "       got final: Good day",
        "Run again with --store PATH to look at the runs.",
    ]
    kept = cli("eval", cases, *MODEL, "--store", "kept.db").out.split("\n\n")[-1].splitlines()
    assert kept[:2] == told[:2]
    assert kept[3] == "agent-core show RUN --store kept.db"
    assert "Good day" in cli("show", kept[2].split()[1], "--store", "kept.db").out


def test_a_run_is_named_only_where_a_store_keeps_it(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, *MODEL, "--json").json["cases"]
    assert [each["run_id"] for each in told] == [None] * 3
    assert [each["expected"] for each in told] == [[], [], ['an answer with "hi"']]


def test_each_run_is_told_on_stderr_as_it_ends(cli: Cli, cases: str, write: Write) -> None:
    write("replies.json", {name: REPLIES[name] for name in ("price", "wrong")})
    for words in ((), ("--json",)):
        ran = cli("eval", cases, *MODEL, *words)
        assert ran.err.splitlines() == ["1/3 price: right", "2/3 hello: no answer", "3/3 wrong: not right"]


def test_a_terminal_is_shown_one_line_with_the_case_that_runs(
    cli: Cli, cases: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QuietStream, "isatty", lambda self: True, raising=False)
    told = cli("eval", cases, *MODEL).err
    assert "\n" not in told
    shown = [line for line in told.split("\r\033[K") if "done" in line]
    assert shown[0] == "0/3 done, 0 right: price"
    assert shown[-2:] == ["2/3 done, 2 right: wrong", "3/3 done, 2 right"]
    assert told.endswith("\r\033[K")


def test_json_is_one_document_with_every_case(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, *MODEL, "--json").json
    assert told["total"]["runs"] == 3
    assert told["total"]["right"] == {"right": 2, "of": 3, "rate": 2 / 3}
    assert [(each["category"], each["language"]) for each in told["groups"]] == [
        ("steps", "en"),
        ("direct", "zh"),
        ("direct", "en"),
    ]
    assert {each["name"]: each["right"]["right"] for each in told["cases"]} == {"price": 1, "hello": 1, "wrong": 0}
    assert told["cases"][1]["recovery"]["rate"] is None
    assert [each["final_answer"] for each in told["cases"]] == ["They cost 30.", "你好！", "Good day"]


@pytest.mark.parametrize(("share", "code"), [("0.3", 0), ("1", 1)])
def test_a_share_that_has_to_be_right_is_the_exit_code(cli: Cli, cases: str, share: str, code: int) -> None:
    told = cli("eval", cases, *MODEL, "--json").json["total"]["right"]
    assert 0.3 < told["rate"] < 1
    assert cli("eval", cases, *MODEL, "--min-right", share).code == code


def test_a_run_without_an_answer_counts_in_the_share_that_has_to_be_right(cli: Cli, cases: str, write: Write) -> None:
    write("replies.json", {"price": REPLIES["price"], "hello": REPLIES["hello"]})
    ran = cli("eval", cases, *MODEL, "--min-right", "0.7")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "agent-core: right 2 of 3 = 0.6667, below --min-right 0.7")
    told = cli("eval", cases, *MODEL, "--min-right", "0.7", "--json")
    assert (told.code, told.json["total"]["right"]) == (1, {"right": 2, "of": 3, "rate": 2 / 3})
    assert "below --min-right" in told.err


def test_only_some_categories_and_more_than_once(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, *MODEL, "--only", "direct", "--repeat", "3", "--concurrency", "2", "--json").json
    assert sorted(each["name"] for each in told["cases"]) == ["hello"] * 3 + ["wrong"] * 3
    named = cli("eval", cases, *MODEL, "--only", "hell*", "--only", "wrong", "--json").json
    assert sorted(each["name"] for each in named["cases"]) == ["hello", "wrong"]


def test_a_run_that_was_kept_can_be_shown_and_verified(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, *MODEL, "--store", "kept.db", "--json").json
    run = told["cases"][2]["run_id"]
    assert "Good day" in cli("show", run, "--store", "kept.db").out
    assert cli("verify", run, "--store", "kept.db").code == 0


def test_settings_reach_the_agent(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, *MODEL, "--only", "steps", "--set", "max_steps=2", "--json").json
    assert told["cases"][0]["finish_reason"] == "max_steps"


def test_a_key_that_is_paired_with_an_endpoint_is_kept_nowhere(
    cli: Cli, cases: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "gateway-token-0123456789")
    write("agent-core.yaml", {"base_urls": {"https://gateway.example/v1": "GATEWAY_TOKEN"}})
    write("replies.json", {"wrong": [final("It is gateway-token-0123456789")]})
    told = cli("eval", cases, *MODEL, "--json").json
    assert told["cases"][2]["final_answer"] == "It is [redacted:GATEWAY_TOKEN]"


def test_the_dialect_of_native_calls_is_measured_too(cli: Cli, cases: str, write: Write) -> None:
    call = {"name": "order_lookup", "arguments": {"order_id": "7"}}
    both = [call, {**call, "arguments": {"order_id": "8"}}]
    write("replies.json", {"price": [{"content": "", "calls": both}, {"content": "30 EUR"}]})
    told = cli("eval", cases, *MODEL, "--only", "steps", "--protocol", "tools", "--json").json
    assert told["cases"][0]["arguments"] == {"right": 2, "of": 2, "rate": 1.0}
    assert told["total"]["right"]["rate"] == 1


def test_how_many_runs_had_no_answer_is_told_with_the_reasons(cli: Cli, cases: str, write: Write) -> None:
    write("replies.json", {"hello": REPLIES["hello"]})
    ran = cli("eval", cases, *MODEL)
    assert ran.code == 0
    assert ran.out.splitlines()[1:4] == [
        "2 of 3 runs had no answer and count as not right:",
        "  1 model_error: the script has no reply 1 for strand price",
        "  1 model_error: the script has no reply 1 for strand wrong",
    ]
    told = cli("eval", cases, *MODEL, "--json").json
    assert (told["total"]["runs"], told["total"]["unanswered"]) == (3, 2)
    assert [each["answered"] for each in told["cases"]] == [False, True, False]
    assert told["total"]["right"] == {"right": 1, "of": 3, "rate": 1 / 3}


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["table", "json"])
def test_an_eval_without_a_single_answer_fails(cli: Cli, cases: str, write: Write, words: tuple[str, ...]) -> None:
    write("replies.json", {})
    ran = cli("eval", cases, *MODEL, *words)
    assert ran.code == 1
    assert "no reply 1" in ran.out
    assert "100%" not in ran.out
    told = "agent-core: scripted:replies.json: no run had an answer: the script has no reply 1 for strand price"
    assert ran.err.splitlines()[-1] == told


BAD_FILES: list[tuple[dict[str, Any], str, str]] = [
    ({"cases": []}, "cases", "must not be empty"),
    ({"cases": [{**PRICE, "answr": 1}]}, "cases/0/answr", "did you mean answer?"),
    ({"cases": [{**PRICE, "answer": {}}]}, "cases/0/answer", "what a right answer is"),
    ({"cases": [PRICE, PRICE]}, "", "the name 'price' is given twice"),
    ({"cases": [{**PRICE, "answer": {"matches": "("}}]}, "cases/0/answer/matches", "not a regular expression"),
    ({"cases": [{**PRICE, "tools": ["serch"]}]}, "cases/0/tools/0", "did you mean search"),
    ({"cases": [PRICE, {**PRICE, "name": "b", "tools": ["q*"]}]}, "cases/1/tools/0", "no tool fits this pattern"),
    ({"cases": [{**PRICE, "calls": [ORDER_7, {"tool": "wether"}]}]}, "cases/0/calls/1/tool", "did you mean weather?"),
    ({"cases": [{**PRICE, "forbidden": [{"tool": "send_mail"}]}]}, "cases/0/forbidden/0/tool", "mean send_email?"),
    ({"cases": [{"name": "x"}]}, "cases/0", "must ask something"),
    (
        {"world": {"files": {"a": "", "a/b": ""}}, "cases": [PRICE]},
        "world/files",
        "a is a file, so there is no a/b in it",
    ),
    ({"world": {"files": {"a\0": ""}}, "cases": [PRICE]}, "world/files", "no file has such a name"),
]


@pytest.mark.parametrize(("file", "where", "told"), BAD_FILES, ids=[told for _, _, told in BAD_FILES])
def test_a_bad_case_file_is_told_with_its_place(
    cli: Cli, cases: str, write: Write, file: Any, where: str, told: str
) -> None:
    ran = cli("eval", str(write("bad.json", file)), *MODEL, "--json")
    error = ran.json["error"]
    assert (ran.code, error["kind"]) == (3, "definition")
    assert where in error["where"]
    assert told in error["message"]


def test_a_case_whose_name_cannot_be_made_of_its_message_is_told_of_the_message_alone() -> None:
    (fault,) = find_faults(CaseFile, {"cases": [{"message": 1}]})
    assert (fault.where, fault.message) == ("cases/0/message", "must be a text; put it in quotes (got 1)")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--set", "max_steps"), 2, "write key=value"),
        (("--repeat", "0"), 2, "repeat"),
        (("--only", "nothing"), 3, "the categories are direct, steps"),
        *((("--set", f"{key}=x"), 2, f"{key} is decided") for key in FIXED),
        (("--set", "max_stps=1"), 3, "--set/max_stps: unknown key"),
        (("--set", 'base_url=["x"]'), 3, "--set/base_url: must be a text"),
        (("--set", "temperature=NaN"), 3, "temperature"),
        (("--set", 'prompts={"react":"$nope"}'), 3, "nope"),
        (("--set", "tool_choice=required"), 3, "native function calling"),
        (("--model", "scripted:nowhere.json"), 3, "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_are_told_before_any_case_runs(
    cli: Cli, cases: str, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = cli("eval", cases, *MODEL, "--store", "kept.db", *words)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert "Traceback" not in ran.err
    assert not Path("kept.db").exists() or cli("runs", "--store", "kept.db", "--json").json == []


def test_a_missing_case_file_is_a_definition_fault(cli: Cli, cases: str) -> None:
    assert cli("eval", "nowhere.yaml", *MODEL).code == 3


def test_json_of_the_shipped_file_is_readable_by_a_person_who_has_only_json(write: Write) -> None:
    file = CaseFile.model_validate(read_document(SHIPPED, "the cases").data)
    again = load_cases(write("cases.json", json.loads(file.model_dump_json(exclude_defaults=True))))
    assert again.cases == load_cases(SHIPPED).cases
