"""agent-core report: what the runs of a store say, each fact with a command that shows the same."""

import json
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from engine_shim.report.build import build_report
from engine_shim.report.report import Report
from engine_shim.store.entries import ALL
from engine_shim.store.ledger import write_entry
from engine_shim.store.run_store import SqliteRunStore
from engine_shim.web.report_layout import list_head
from support.command import Cli, Ran
from support.optional import needs
from support.record_stores import KEYS, STORES
from support.report_store import CHINESE, EVIL, ReportStore, make_report_store

TABLES = {key for key, value in Report.__annotations__.items() if "Table[" in str(value)}
SCHEMA = Draft202012Validator(TypeAdapter(Report).json_schema())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, which each test has a copy of."""
    path = tmp_path_factory.mktemp("report") / "runs.db"
    make_report_store(path).store.close()
    return path


@pytest.fixture
def made(home: Path, recorded: Path) -> Iterator[ReportStore]:
    with closing(sqlite3.connect(recorded)) as source, closing(sqlite3.connect(home / "runs.db")) as copy:
        source.backup(copy)
    found = ReportStore(home / "runs.db")
    yield found
    found.store.close()


@pytest.fixture
def store(made: ReportStore) -> str:
    return made.path.name


def rows(report: Any, table: str, *keys: str) -> list[Any]:
    """Some columns of a table."""
    return [tuple(row[key] for key in keys) for row in report[table]["rows"]]


def test_each_table_says_what_the_runs_did(cli: Cli, store: str) -> None:
    report = cli("report", "--store", store, "--json").json
    assert [report[key] for key in ("runs", "damaged", "unreadable", "since", "workflow")] == [16, 2, 1, None, None]
    assert set(rows(report, "acts", "run", "by", "decision", "about")) == {
        ("approved", "安", "approve", "pay"),
        ("denied", EVIL, "deny", "pay"),
        ("cancelled", "ann", "cancel", ""),
        ("done", "ann", "done", "wire"),
    }
    assert ("ci", "began", 1) in rows(report, "people", "by", "decision", "times")
    assert set(rows(report, "waiting", "run", "reason")) == {("waits", "awaiting_approval"), ("doubtful", "in_doubt")}
    assert set(rows(report, "refusals", "run", "what", "reason", "why")) == {
        ("refused", "pay", "policy_denied", "allowed_tools does not have pay"),
        ("limited", "look", "max_steps", "max_steps 1 is used up"),
        ("denied", "pay", "denied", f"{CHINESE} {EVIL}"),
    }
    assert {(what, version) for what, version in rows(report, "versions", "what", "version")} >= {
        ("workflow desk", "1"),
        ("workflow plain", "2"),
    }
    assert "OTHER" not in json.dumps(report)
    assert set(rows(report, "incidents", "kind", "run", "what")) == {
        ("in doubt", "done", "wire: done by ann"),
        ("in doubt", "doubtful", "wire: not decided yet"),
        ("further attempt", "failed", "look: attempt 2"),
        ("further attempt", "retried", "look: attempt 2"),
        ("run retried", "retried", "failed"),
        *(("damaged", run, fault) for run, fault in rows(report, "faults", "run", "why")),
    }
    assert {run for (run,) in rows(report, "faults", "run")} == {"damaged", "changed"}
    assert rows(report, "deleted", "run", "status") == [("deleted", "completed")]
    assert report["erased"]["rows"] == report["ledger_faults"]["rows"] == []


def test_policies_that_changed_are_named_with_what_the_newest_would_have_changed(cli: Cli, store: str) -> None:
    report = cli("report", "--store", store, "--workflow", "desk", "--json").json
    assert rows(report, "policies", "workflow", "run", "runs", "changes") == [
        ("desk", "completed", 2, []),
        ("desk", "limited", 1, ["max_steps: 3 → 1"]),
        ("desk", "paid-freely", 1, ['allowed_tools: ["look"] → ["look","pay"]', "max_steps: 1 → 4"]),
        (
            *("desk", "approved", 4),
            ['allowed_tools: ["look","pay"] → ["look",{"tool":"pay","approval":"always"}]', "max_steps: 4 → 3"],
        ),
    ]
    (effect,) = report["effects"]["rows"]
    assert (effect["runs"], effect["changed"], effect["not_judged"], effect["unknown_tools"]) == (4, 2, 0, 1)
    assert effect["verdicts"] == {"run → wait": 1, "not run: max_steps → run": 1}
    assert effect["policy"] == report["policies"]["rows"][-1]["policy"]
    assert rows(report, "changed_runs", "run", "calls") == [("paid-freely", 1), ("limited", 1)]


def test_json_is_as_its_schema_says(cli: Cli, store: str) -> None:
    for words in ((), ("--since", "1h", "--workflow", "desk"), ("--workflow", "nobody")):
        report = cli("report", "--store", store, "--json", *words).json
        SCHEMA.validate(report)
        assert list(report) == list(Report.__annotations__)


@pytest.mark.exhaustive
def test_each_command_that_the_report_names_shows_the_same(cli: Cli, store: str) -> None:
    report = cli("report", "--store", store, "--json", "--since", "1h").json
    checked = set[str]()
    for key in sorted(TABLES):
        table = report[key]
        if table["command"]:
            check_table(key, report, run_command(cli, table["command"]))
            checked.add(key)
        for row in table["rows"]:
            command = row.get("command") or (table["each"] or "").replace("RUN", row.get("run", ""))
            if command:
                check_row(key, row, run_command(cli, command))
                checked.add(key)
    assert checked == {each for each in TABLES if report[each]["rows"] and each != "effects"} | {
        *("erased", "ledger_faults"),
    }


def run_command(cli: Cli, command: str) -> Ran:
    program, *words = shlex.split(command)
    assert program == "agent-core"
    ran = cli(*words)
    assert ran.code in (0, 5, 6), (command, ran)
    return ran


def check_table(key: str, report: Any, ran: Ran) -> None:
    """Hold the command of a table against it."""
    if key in ("workflows", "agents", "tools", "models"):
        for name, *counts in (list(row.values()) for row in report[key]["rows"]):
            line = next(each for each in ran.out.splitlines() if each.startswith(f"{name} "))
            assert all(f"{count:,}" in line for count in counts if isinstance(count, int)), (line, counts)
    else:
        ledger = report["ledger"]["rows"][0]
        assert ledger["head"] in ran.out
        assert f"in {ledger['count']} entries" in ran.out
        assert all(run in ran.out for (run,) in rows(report, "faults", "run"))
        assert f"{len(report['deleted']['rows'])} deleted" in ran.out


def check_row(key: str, row: Any, ran: Ran) -> None:
    """Hold the command of a row against it. `show` of a damaged run says that it is."""
    if key in ("verified", "faults"):
        assert ran.code == {"not ok": 5, "complete": 0}.get(row.get("verdict", "not ok"), ran.code), row
        assert (row["seal"] if key == "verified" and row["verdict"] != "not ok" else row.get("why", "")) in ran.out
    elif key == "changed_runs":
        assert ran.out.count(" → ") == row["calls"]
        assert row["why"] in ran.out
    elif row.get("run") in ("damaged", "changed"):
        assert (ran.code, "is damaged: its hash does not follow" in ran.err) == (5, True)
    elif key == "versions":
        started = [each for each in json.loads(ran.out)["records"] if each["kind"] == "run_started"]
        told = {
            **started[0]["versions"],
            **{
                f"workflow {each['id']}": each.get("version", "1")
                for each in (record["definition"] for record in started if "definition" in record)
            },
        }
        assert told[row["what"]] == row["version"]
    elif key == "policies":
        assert '"config"' in ran.out
    else:
        named = [row[name] for name in ("by", "decision", "tool", "reason", "kind") if row.get(name)]
        place = row.get("place")
        assert place is None or f"  {place} " in ran.out, (row, ran.out)
        assert key not in ("acts", "waiting") or all(each in ran.out for each in named), (row, ran.out)


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_nothing_that_a_run_says_breaks_out_of_the_page(cli: Cli, store: str) -> None:
    ran = cli("report", "--store", store, "--html", "--to", "desk.html")
    assert (ran.code, ran.out) == (5, "desk.html\n")
    text = Path("desk.html").read_text("utf-8")
    page = Elements()
    page.feed(text)
    assert page.open == []
    assert not page.tags & {"script", "img", "a", "iframe", "link", "form", "svg"}
    assert page.attributes == {"charset", "http-equiv", "content", "name", "lang", "class"}
    assert "default-src 'none'; style-src 'sha256-" in unescape(text)
    shown = EVIL.replace("\u202e", "\\u{202e}").replace("\x1b", "\\u{1b}")
    assert any(shown in each for each in page.texts)
    assert any(CHINESE in each for each in page.texts)
    assert "\u202e" not in text
    assert "@page { size: A4" in text


def test_page_and_text_have_the_tables_of_the_json(cli: Cli, store: str) -> None:
    report = cli("report", "--store", store, "--json").json
    text, page = cli("report", "--store", store).out, cli("report", "--store", store, "--html", "--to", "-").out
    for run in {
        run for table in TABLES - {"ledger"} for run in [row.get("run") for row in report[table]["rows"]] if run
    }:
        assert run in text
        assert run in page
    for shown in (
        "1 run → wait",
        "max_steps 1 is used up",
        "agent-core replay limited --strand flow/agent_core.1 --set",
    ):
        assert shown in text
        assert shown in page.replace("&#x27;", "'")


def test_a_store_without_runs_has_a_report(cli: Cli, home: Path) -> None:
    SqliteRunStore(home / "empty.db").close()
    report = cli("report", "--json").json
    assert (report["runs"], report["store"], report["first"]) == (0, None, "")
    assert [key for key in TABLES if report[key]["rows"]] == ["ledger"]
    assert "Workflows: none" in cli("report").out
    assert cli("report", "--html").code == 0
    SCHEMA.validate(report)


def test_runs_of_a_time_and_a_workflow_are_reported(cli: Cli, store: str) -> None:
    plain = cli("report", "--store", store, "--workflow", "plain", "--json").json
    assert rows(plain, "workflows", "workflow") == [("plain",)]
    assert plain["workflows"]["command"] == f"agent-core stats --workflow plain --store {store}"
    later = cli("report", "--store", store, "--since", "2100-01-01", "--json").json
    assert (later["runs"], later["since"], later["deleted"]["rows"]) == (0, "2100-01-01T00:00:00+00:00", [])


def test_older_runs_beyond_the_most_are_counted(store: str) -> None:
    with closing(SqliteRunStore(Path(store))) as opened:
        report = build_report(opened, ALL, most=3)
    assert (report.runs, report.runs_left_out) == (3, 13)
    assert ("Runs", "3; 13 older ones were not looked at; 2 damaged, of which only the counts tell") in [
        (name, value.partition("; 1 cannot")[0]) for name, value in list_head(report)
    ]


def test_what_the_ledger_says_was_erased_is_reported(cli: Cli, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteRunStore(Path(store))) as opened, opened.database.writing() as db:
        entry = {"kind": "erased", "run": "approved", "at": "2026-01-02T03:04:05.000Z", "by": "ann", "why": "asked for"}
        write_entry(db, "approved", {**entry, "head": "0" * 64, "count": 5, "status": "completed"})
    report = cli("report", "--store", store, "--json").json
    assert report["erased"]["rows"] == [{key: entry[key] for key in ("run", "at", "by", "why")}]
    assert cli("report", "--store", store, "--json", "--since", "1h").json["erased"]["rows"] == []
    faults = report["ledger_faults"]["rows"]
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")
    signed = cli("report", "--store", store, "--json").json["ledger_faults"]["rows"]
    why = f"its erasure at {entry['at']} is not proven: it is not signed"
    assert signed == [*faults, {"run": "approved", "why": why}]


def test_a_fault_of_the_ledger_alone_has_the_exit_code_of_damage(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")
    with closing(SqliteRunStore(home / "empty.db")) as opened, opened.database.writing() as db:
        entry = {"kind": "erased", "run": "gone", "at": "2026-01-02T03:04:05.000Z", "by": "ann", "why": "asked for"}
        write_entry(db, "gone", {**entry, "head": "0" * 64, "count": 5, "status": "completed"})
    ran = cli("report", "--store", "empty.db", "--json")
    assert (ran.json["damaged"], ran.json["faults"]["rows"]) == (0, [])
    assert (ran.code, len(ran.json["ledger_faults"]["rows"]) > 0) == (5, True)


AGENT = "flow/agent_core.1"
NONSENSE = [
    ("completed", AGENT, 2, {"usage": {"input_tokens": 1.5, "output_tokens": 2}}),
    ("completed", AGENT, 2, {"model": True}),
    ("completed", AGENT, 4, {"tool": ["look"]}),
    ("completed", AGENT, 0, {"config": {"allowed_tools": 3}}),
    ("completed", "flow", 0, {"versions": 7}),
    ("completed", "flow", 0, {"definition": []}),
    ("refused", AGENT, 3, {"calls": [{"tool": {}, "args": 1, "verdict": "refuse"}]}),
    ("approved", AGENT, 5, {"at": 7, "by": [], "decision": {}}),
    ("waits", AGENT, 4, {"reason": None, "tool": {}}),
    ("retried", "flow", 0, {"forked": {"run": 3, "retry": 1}}),
    ("bare", "agent", 0, {"agent": {"name": 3}}),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("run", "strand", "n", "fields"), NONSENSE)
def test_a_run_of_nonsense_hides_no_other(
    cli: Cli, made: ReportStore, run: str, strand: str, n: int, fields: Any
) -> None:
    made.write_nonsense(run, strand, n, **fields)
    report = cli("report", "--store", "runs.db", "--json").json
    SCHEMA.validate(report)
    assert (report["runs"], rows(report, "changed_runs", "run")[-1]) == (16, ("limited",))
    assert (cli("report", "--store", "runs.db").code, cli("report", "--store", "runs.db", "--html").code) == (5, 5)


def test_a_newest_policy_that_no_run_can_have_judges_none(cli: Cli, made: ReportStore) -> None:
    made.write_nonsense("cancelled", AGENT, 0, config={"allowed_tools": ["look"], "max_steps": 3, "approval": "maybe"})
    report = cli("report", "--store", "runs.db", "--json").json
    (effect,) = report["effects"]["rows"]
    assert (effect["runs"], effect["reasons"], report["unreadable"]) == (0, {"inapplicable": 7}, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--since", "yesterday"), "--since 'yesterday'"),
        (("--html", "--json"), "--html and --json write a form each"),
        (("--to", "x"), "--to takes --html"),
        (("--html", "--to", "no/x"), "no/x cannot be written"),
        (("--key", "none.pub"), "there is no file none.pub"),
    ],
)
def test_what_cannot_be_reported_is_said(cli: Cli, home: Path, words: tuple[str, ...], told: str) -> None:
    ran = cli("report", *words)
    assert (ran.code, told in ran.err + ran.out) == (2, True), ran


@pytest.mark.sampled
@pytest.mark.parametrize("release", sorted(each.stem for each in STORES.glob("*.sql")))
def test_store_of_an_older_release_is_reported_with_its_seals(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    with closing(sqlite3.connect(home / "old.db")) as db:
        db.executescript((STORES / f"{release}.sql").read_text())
    before = (home / "old.db").read_bytes()
    unchecked = {(verdict, seal) for verdict, seal in rows(cli_json(cli), "verified", "verdict", "seal")}
    assert ("complete", "sealed by k1, not checked: no key here") in unchecked
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", KEYS)
    report = cli_json(cli)
    assert {seal.partition(",")[0] for _, seal in rows(report, "verified", "verdict", "seal")} <= {"sealed by k1", ""}
    assert (report["unreadable"], report["faults"]["rows"], len(report["acts"]["rows"])) == (0, [], 1)
    assert (home / "old.db").read_bytes() == before


def cli_json(cli: Cli) -> Any:
    return cli("report", "--store", "old.db", "--json").json


@needs("cryptography")
def test_seals_are_checked_by_a_public_key_alone(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = str(Path(__file__).parents[3] / "fixtures/workflows/parallel.yaml")
    for name in ("desk.key", "other.key"):
        cli("key", "new", name)
    monkeypatch.setenv("AGENT_CORE_SIGNING_KEY", "desk.key")
    cli("run", flow)
    monkeypatch.delenv("AGENT_CORE_SIGNING_KEY")
    good, bad = (cli("report", "--key", f"{name}.key.pub", "--json").json for name in ("desk", "other"))
    ((verdict, seal),) = rows(good, "verified", "verdict", "seal")
    assert (verdict, seal.startswith("sealed by ed25519:")) == ("complete", True)
    assert good["verified"]["each"] == "agent-core verify RUN --key desk.key.pub"
    ((verdict, seal),) = rows(bad, "verified", "verdict", "seal")
    assert (verdict, seal.endswith("which does not hold")) == ("not ok", True)
    assert len(bad["faults"]["rows"]) == 1
