"""The list of runs over HTTP: found by what they did and what was recorded of them, page by page."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine_shim.store.entries import RunFilter
from engine_shim.store.search import RunQuery, RunSearch, write_cursor
from support.served_host import Served, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host")) as found:
        yield found


@pytest.fixture(scope="module")
def runs(host: Served) -> dict[str, str]:
    """Runs by name: of workflows, and a turn with an agent."""
    body = {"message": "How many of the A-17?", "agent": "clerk"}
    said = 'a "quoted" \\ 100% _line_\nof Größe\tÜber 日本 <é>'
    return {
        "desk": host.submit("desk", message="Sixteen Tons")["run_id"],
        "short": host.submit("desk@1", message=said)["run_id"],
        "count": host.submit("count", sum="1 + 41")["run_id"],
        "buy": host.submit("buy", article="Z-99")["run_id"],
        "turn": host.client.post("/agent/chat", json=body).json()["trace_id"],
    }


def find(host: Served, runs: dict[str, str], **params: Any) -> set[str]:
    """The names of the runs that are found."""
    answer = host.client.get("/runs", params=params)
    assert answer.status_code == 200, answer.text
    names = {run: name for name, run in runs.items()}
    return {names[each["run_id"]] for each in answer.json()["runs"]}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, {"desk", "short", "count", "buy", "turn"}),
        ({"reason": "final"}, {"desk", "short", "turn"}),
        ({"reason": "max_steps"}, set()),
        ({"reason": "fin"}, set()),
        ({"reason": 'final"'}, set()),
        ({"tool": "stock"}, {"desk", "short", "turn"}),
        ({"tool": "calculator"}, {"count"}),
        ({"tool": "order"}, {"buy"}),
        ({"tool": "sto"}, set()),
        ({"tool": "stock", "reason": "final", "workflow": "desk"}, {"desk", "short"}),
        ({"text": "sixteen TONS"}, {"desk"}),
        ({"text": "z-99"}, {"buy"}),
        ({"text": "nowhere to be found"}, set()),
        ({"text": "of the a-17", "status": "completed"}, {"turn"}),
        ({"text": "of the a-17", "status": "failed"}, set()),
        ({"text": "SIXTEEN", "tool": "echo"}, {"desk"}),
        ({"text": "SIXTEEN", "tool": "calculator"}, set()),
        ({"status": "waiting"}, {"buy"}),
        ({"limit": 1000, "status": ["waiting", "completed"]}, {"desk", "short", "count", "buy", "turn"}),
    ],
)
def test_runs_are_found_by_what_they_did(
    host: Served, runs: dict[str, str], params: dict[str, Any], expected: set[str]
) -> None:
    assert find(host, runs, **params) == expected


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ('a "quoted"', True),
        ("\\ 100%", True),
        ("\\ 100_", False),
        ("1%0", False),
        ("_line_", True),
        ("xline", False),
        ("_line_\nof", True),
        ("größe\t", True),
        ("GRÖSSE", False),  # its small letters are other ones
        ("grÖße", True),
        ("ÜBER", True),
        ("日本", True),
        ("日 本", False),
        ("<É>", True),
        ("!", False),
    ],
)
def test_text_is_found_as_it_was_written_in_either_case(
    host: Served, runs: dict[str, str], text: str, is_found: bool
) -> None:
    assert ("short" in find(host, runs, text=text, workflow="desk")) == is_found


def test_each_run_says_what_it_did(host: Served, runs: dict[str, str]) -> None:
    listed = {each["run_id"]: each for each in host.client.get("/runs").json()["runs"]}
    desk, turn, buy = (listed[runs[name]] for name in ("desk", "turn", "buy"))
    assert (desk["asked"], desk["agent"], desk["reasons"], desk["tools"]) == (
        "Sixteen Tons",
        None,
        ["final"],
        ["stock", "echo"],
    )
    outputs = host.client.get(f"/runs/{runs['desk']}").json()["outputs"]["agent_core"]
    assert (desk["tokens"], desk["cost"]) == (outputs["usage"]["total_tokens"], None)
    assert 0 <= desk["seconds"] < 30
    assert (turn["agent"], turn["asked"], turn["status"]) == ("clerk", "How many of the A-17?", "completed")
    assert turn["tokens"] > 0
    assert (buy["seconds"], buy["tools"], buy["reasons"], buy["tokens"]) == (None, ["order"], [], 0)
    assert listed[runs["short"]]["asked"] == 'a "quoted" \\ 100% _line_ of Größe Über 日本 <é>'


def test_long_question_is_cut(host: Served) -> None:
    run = host.submit("count", sum="1 + " * 100 + "1")["run_id"]
    (found,) = [each for each in host.client.get("/runs").json()["runs"] if each["run_id"] == run]
    assert found["asked"] == ("1 + " * 30)[:120]
    host.store.forget(run)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host with runs and turns in turn."""
    with served(tmp_path_factory.mktemp("busy")) as found:
        for _ in range(3):
            found.submit("desk", message="A-17")
            found.client.post("/agent/chat", json={"message": "A-17", "agent": "clerk"})
        yield found


@pytest.mark.sampled
@pytest.mark.parametrize("params", [{}, {"text": "a-17"}, {"tool": "stock"}, {"status": "completed"}])
def test_pages_follow_each_other_while_new_runs_come_in(busy: Served, params: dict[str, str]) -> None:
    def ask(**more: Any) -> Any:
        return busy.client.get("/runs", params={**params, **more}).json()

    old = [each["run_id"] for each in ask(limit=1000)["runs"]]
    seen: list[str] = []
    page = ask(limit=4)
    while page["next"] is not None:
        seen += [each["run_id"] for each in page["runs"]]
        busy.submit("desk@1", message="A-17")
        page = ask(limit=4, before=page["next"])
    seen += [each["run_id"] for each in page["runs"]]
    assert seen == old


def test_turns_are_listed_whatever_was_deleted_before(busy: Served) -> None:
    def turns() -> list[str]:
        return [each["run_id"] for each in busy.client.get("/runs?limit=1000").json()["runs"] if each["agent"]]

    def ask() -> str:
        body = {"message": "A-17", "agent": "clerk"}
        return str(busy.client.post("/agent/chat", json=body).json()["trace_id"])

    before = turns()
    first = ask()
    assert turns() == [first, *before]
    assert busy.store.forget(first)
    second = ask()  # its rows may have the numbers of those that are gone
    assert turns() == [second, *before]
    assert busy.store.forget(before[0])
    assert turns() == [second, *before[1:]]


def test_page_that_is_just_full_has_no_next(host: Served, runs: dict[str, str]) -> None:
    assert host.client.get("/runs?limit=5").json()["next"] is None
    assert host.client.get("/runs?limit=4").json()["next"] is not None
    assert host.client.get("/runs?limit=3&tool=stock").json()["next"] is None


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"before": "x"}, "query/before"),
        ({"before": "é"}, "query/before"),
        ({"before": "W10"}, "query/before"),
        ({"before": "WzEsMl0"}, "query/before"),
        ({"before": "a" * 2049}, "query/before"),
        ({"text": ""}, "query/text"),
        ({"text": "x" * 201}, "query/text"),
        ({"reason": "x" * 65}, "query/reason"),
        ({"tool": "x" * 129}, "query/tool"),
    ],
)
def test_filter_that_is_none_is_refused_at_its_place(host: Served, params: dict[str, str], where: str) -> None:
    answer = host.client.get("/runs", params=params)
    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (422, where)


@pytest.mark.parametrize("text", ["'", "%00", "\x00", "'; DROP TABLE rows; --", "!%", "\\u0041", "{}", "[", "?"])
def test_hostile_text_is_looked_for_and_nothing_else(host: Served, runs: dict[str, str], text: str) -> None:
    for name in ("text", "tool", "reason", "workflow"):
        assert host.client.get("/runs", params={name: text}).status_code == 200
    assert find(host, runs) == set(runs)


def test_cursor_of_a_place_between_runs_goes_on_there(host: Served, runs: dict[str, str]) -> None:
    assert find(host, runs, before=write_cursor(("9999", ""))) == set(runs)
    assert find(host, runs, before=write_cursor(("", "'; --"))) == set()


def test_search_that_takes_too_long_says_where_it_goes_on(host: Served, runs: dict[str, str]) -> None:
    search = RunSearch(host.store, seconds=-1)
    page = search.find(RunQuery(RunFilter(limit=10), text="nowhere to be found"))
    assert page.entries == []
    assert page.next is not None
    assert search.find(RunQuery(RunFilter(limit=10, before=page.next), text="nowhere to be found")).next is None


@pytest.mark.exhaustive
def test_broken_records_do_not_keep_others_from_the_list(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        whole, broken = (host.submit("desk", message="x")["run_id"] for _ in range(2))
        turn = host.client.post("/agent/chat", json={"message": "x", "agent": "clerk"}).json()["trace_id"]
        with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as db:
            junk = [
                b'{"kind":"run_finished","finish_reason":"fin',
                b'{"kind":"asked","ask":"tool","tool":"\xff"',
                b"\xff",
            ]
            for number, data in enumerate(junk):
                db.execute("UPDATE rows SET data = ? WHERE run IN (?, ?) AND n = ?", (data, broken, turn, number))
        for params in ({}, {"text": "12"}, {"tool": "stock"}, {"reason": "final"}):
            answer = host.client.get("/runs", params=params)
            assert answer.status_code == 200, answer.text
            assert whole in [each["run_id"] for each in answer.json()["runs"]]
        listed = {each["run_id"]: each["status"] for each in host.client.get("/runs").json()["runs"]}
        assert (listed[broken], listed[turn]) == ("completed", "completed")


@pytest.mark.exhaustive
def test_agent_that_has_not_ended_costs_what_its_replies_did(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        body = {"message": "Order it.", "agent": "buyer"}
        turn = host.client.post("/agent/chat", json=body).json()
        (found,) = host.client.get("/runs").json()["runs"]
        assert (found["status"], found["reasons"], found["tools"]) == ("waiting", [], ["order"])
        assert found["tokens"] == turn["meta"]["total_tokens"] > 0


@pytest.mark.exhaustive
def test_ten_thousand_runs_are_listed_and_searched(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        run = host.submit("desk", message="x")["run_id"]
        with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as db:
            for number in range(10_000):
                new, at = f"copy-{number:05}", f"2026-01-01T00:00:00.{number:06}Z"
                rows = "SELECT ?, strand, n, hash, data FROM rows WHERE run = ?"
                db.execute(f"INSERT INTO rows (run, strand, n, hash, data) {rows}", (new, run))
                entry = "SELECT ?, workflow, version, status, ?, base FROM workflow_runs WHERE run = ?"
                db.execute(f"INSERT INTO workflow_runs {entry}", (new, at, run))
        page = host.client.get("/runs?limit=200").json()
        assert len(page["runs"]) == 200
        assert page["runs"][1]["run_id"] == "copy-09999"
        found = host.client.get("/runs", params={"limit": 200, "before": page["next"], "text": "There are 12"}).json()
        assert found["runs"][0]["run_id"] == "copy-09800"
        assert json.dumps(found).count("copy-") == 200


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("since", "status"),
    [
        ("0001-01-01T00:00:00+23:59", 422),
        ("9999-12-31T23:59:59-23:59", 422),
        ("0001-01-01T00:00:00Z", 200),
        ("9999-12-31T23:59:59Z", 200),
        ("0001-01-02T00:00:00+23:59", 200),
    ],
)
def test_a_time_at_the_ends_of_the_calendar_is_no_fault_of_the_server(host: Served, since: str, status: int) -> None:
    answer = host.client.get("/runs", params={"since": since})
    assert answer.status_code == status, answer.text
    assert status == 200 or "in the years 1 to 9999" in answer.text
