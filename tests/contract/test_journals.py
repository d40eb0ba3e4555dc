"""What every journal must do, over every backend; and what is special to those that keep a file."""

import fcntl
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agent_core.errors import JournalError, Lost
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.record import chain_row
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.sqlite_layout import LAYOUT
from agent_core.journal.store import Journal
from agent_core.testing.contracts.journal import JOURNAL_RULES, RULES_OF_SEVERAL_RUNS, race
from agent_core.testing.contracts.rows import chain, check_chained, numbered
from agent_core.testing.contracts.rules import Rule

FILES: dict[str, Callable[[Path], Journal]] = {"jsonl": JsonlJournal, "sqlite": SqliteJournal}
ROOT = Path(__file__).parents[2]


BACKENDS: dict[str, Callable[[Path], Journal]] = {
    "memory": lambda path: MemoryJournal(),
    "sqlite against power failure": lambda path: SqliteJournal(path, durability="power"),
    **FILES,
}


POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_journal")
        return
    with closing(BACKENDS[request.param](tmp_path / "journal")) as made:
        yield made


@pytest.fixture(params=FILES)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(backend: str, tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    """Opens one more journal on the same file, or on another by name."""
    with ExitStack() as stack:
        yield lambda name="journal": stack.enter_context(closing(FILES[backend](tmp_path / name)))


# ── every backend ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rule", JOURNAL_RULES, ids=str)
def test_every_journal_keeps_to_the_contract(journal: Journal, rule: Rule) -> None:
    rule.check(journal)


@pytest.mark.parametrize("journal", ["memory", "sqlite", POSTGRES], indirect=True)
@pytest.mark.parametrize("rule", RULES_OF_SEVERAL_RUNS, ids=str)
def test_a_journal_of_several_runs_keeps_them_apart(journal: Journal, rule: Rule) -> None:
    rule.check(journal)


def test_a_strand_without_a_name_begins_its_chain_like_any_other() -> None:
    journal, rows = MemoryJournal(), numbered("", 2)
    assert journal.append("r1", rows)
    assert journal.load("r1") == {"": rows}


# ── backends that keep a file ────────────────────────────────────────────────────────────────────


def test_two_journals_on_one_file_see_each_others_rows(opened: Callable[..., Journal]) -> None:
    ours, theirs = opened(), opened()
    rows = numbered("agent", 4)
    ours.append("r1", rows[:1])
    theirs.append("r1", rows[1:3])
    assert ours.load("r1") == {"agent": rows[:3]}
    with pytest.raises(Lost):
        ours.append("r1", numbered("agent", 2, by="us")[1:])
    ours.append("r1", rows[3:])
    assert theirs.load("r1") == {"agent": rows}


def test_what_another_journal_deleted_is_gone_here_too(opened: Callable[..., Journal]) -> None:
    ours, theirs = opened(), opened()
    ours.append("r1", numbered("agent", 1))
    assert theirs.delete("r1")
    assert ours.load("r1") == {}
    with pytest.raises(Lost):
        ours.append("r1", numbered("agent", 2)[1:])
    ours.append("r2", numbered("agent", 50, run="r2"))
    assert theirs.load("r2") == {"agent": numbered("agent", 50, run="r2")}


def test_nothing_of_a_deleted_run_stays_in_the_files(opened: Callable[..., Journal], tmp_path: Path) -> None:
    journal = opened()
    journal.append("r1", chain("agent", {"kind": "asked", "text": "the customer's name " * 1000}))
    assert any(b"the customer's name" in file.read_bytes() for file in tmp_path.iterdir())
    assert journal.delete("r1")
    journal.close()
    assert not any(b"the customer's name" in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("more", [1, 2, 3, 40])
def test_a_run_that_took_the_place_of_a_deleted_one_is_seen(opened: Callable[..., Journal], more: int) -> None:
    ours, theirs = opened(), opened()
    ours.append("r1", numbered("agent", 2))
    theirs.delete("r1")
    rows = numbered("agent", more + 1, run="r2")
    theirs.append("r2", rows[:-1])
    ours.append("r2", rows[-1:])
    assert theirs.load("r2") == {"agent": rows}


def test_of_eight_journals_on_one_file_exactly_one_wins(opened: Callable[..., Journal]) -> None:
    race([opened() for _ in range(8)])


def test_reading_makes_no_file(opened: Callable[..., Journal], tmp_path: Path) -> None:
    journal = opened()
    assert journal.load("r1") == {}
    assert journal.runs() == []
    assert not journal.delete("r1")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_belongs_to_its_owner_alone(opened: Callable[..., Journal], tmp_path: Path) -> None:
    opened().append("r1", numbered("agent", 1))
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}


def test_an_empty_file_is_an_empty_journal(opened: Callable[..., Journal], tmp_path: Path) -> None:
    (tmp_path / "journal").touch()
    journal = opened()
    assert journal.load("r1") == {}
    journal.append("r1", numbered("agent", 1))
    assert journal.runs() == ["r1"]


def test_a_missing_folder_is_named(opened: Callable[..., Journal], tmp_path: Path) -> None:
    journal = opened("missing/journal")
    assert journal.load("r1") == {}
    with pytest.raises(JournalError, match=f"there is no folder {tmp_path}/missing"):
        journal.append("r1", numbered("agent", 1))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"Dear diary,\n" * 200, id="lines"),
        pytest.param(b"Dear diary, " * 200, id="no newline"),
        pytest.param(b'{"run": 3}' * 200, id="JSON"),
        pytest.param(b"\0" * 1024, id="zeros"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(
    opened: Callable[..., Journal], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "journal").write_bytes(content)
    rows = numbered("agent", 1)
    for use in (lambda own: own.load("r1"), lambda own: own.append("r1", rows), lambda own: own.delete("r1")):
        with pytest.raises(JournalError, match=f"{tmp_path}/journal.*choose another file"):
            use(opened())
    assert (tmp_path / "journal").read_bytes() == content


def test_a_journal_of_the_other_kind_is_refused_and_left_alone(backend: str, tmp_path: Path) -> None:
    (other,) = FILES.keys() - {backend}
    with closing(FILES[other](tmp_path / "journal")) as journal:
        journal.append("r1", numbered("agent", 2))
    content = (tmp_path / "journal").read_bytes()
    with closing(FILES[backend](tmp_path / "journal")) as journal:
        for run in ("r1", "r2"):
            with pytest.raises(JournalError, match="choose another file"):
                journal.append(run, numbered("agent", 1, run=run))
    assert (tmp_path / "journal").read_bytes() == content


def test_a_folder_in_the_place_of_the_file_is_told(opened: Callable[..., Journal], tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    for use in (lambda own: own.load("r1"), lambda own: own.append("r1", numbered("agent", 1))):
        with pytest.raises(JournalError, match="choose another file"):
            use(opened())


def test_a_closed_journal_opens_again_at_its_next_use(opened: Callable[..., Journal]) -> None:
    journal, rows = opened(), numbered("agent", 2)
    journal.append("r1", rows[:1])
    journal.close()
    journal.append("r1", rows[1:])
    assert journal.load("r1") == {"agent": rows}


FILLER = """
import resource, signal, sys
from pathlib import Path
from agent_core.errors import JournalError
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.sqlite import SqliteJournal

backend, path = sys.argv[1:]
journal = {"jsonl": JsonlJournal, "sqlite": SqliteJournal}[backend](path)
first = chain_row("agent", 0, genesis("r1", "agent"), {"kind": "asked"})
second = chain_row("agent", 1, first.hash, {"kind": "answered"})
third = chain_row("agent", 2, second.hash, {"kind": "asked", "text": "x" * 50_000})
journal.append("r1", [first])
limit = max(file.stat().st_size for file in Path(path).parent.iterdir()) + 10_000
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    journal.append("r1", [second, third])
except JournalError as error:
    print(error, len(journal.load("r1")["agent"]))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append("r1", [second, third])
journal.close()
"""


def test_a_full_disk_leaves_none_of_the_rows(backend: str, opened: Callable[..., Journal], tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILLER, backend, str(tmp_path / "journal")]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"cannot write to journal {tmp_path}/journal: .* then resume the run 1\n", told)
    assert len(opened().load("r1")["agent"]) == 3


WRITER = """
import sys
from pathlib import Path
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.sqlite import SqliteJournal

backend, path, strand, batches = sys.argv[1:]
journal = {"jsonl": JsonlJournal, "sqlite": SqliteJournal}[backend](path)
previous, n = genesis("r1", strand), 0
for _ in range(int(batches)):
    rows = []
    for _ in range(3):
        rows.append(chain_row(strand, n, previous, {"kind": "asked", "n": n, "text": "x" * 50_000}))
        previous, n = rows[-1].hash, n + 1
    journal.append("r1", rows)
    print(n, flush=True)
journal.close()
"""


def writer(backend: str, path: Path, strand: str, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, backend, str(path), strand, str(batches)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_processes_that_append_side_by_side_lose_nothing(
    backend: str, opened: Callable[..., Journal], tmp_path: Path
) -> None:
    journal, loads = opened(), 0
    with ExitStack() as stack:
        writers = [stack.enter_context(writer(backend, tmp_path / "journal", f"agent/0.{k}", 10)) for k in range(4)]
        while any(process.poll() is None for process in writers):
            loads += 1
            assert all(len(rows) % 3 == 0 for rows in journal.load("r1").values()), "half an append was seen"
    assert [process.returncode for process in writers] == [0] * 4
    tape = journal.load("r1")
    assert {path: len(rows) for path, rows in tape.items()} == {f"agent/0.{k}": 30 for k in range(4)}
    for path, rows in tape.items():
        check_chained(path, rows)
    assert loads > 1


@pytest.mark.sampled
@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_killed_writer_leaves_a_prefix_that_goes_on(
    backend: str, opened: Callable[..., Journal], tmp_path: Path, after: int
) -> None:
    with writer(backend, tmp_path / "journal", "agent", 1_000_000) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(after)][-1]
        os.kill(process.pid, signal.SIGKILL)
        told = max([told, *(int(line) for line in process.stdout.read().splitlines())])
    journal = opened()
    rows = journal.load("r1")["agent"]
    assert len(rows) >= told, "an append that had returned was lost"
    check_chained("agent", rows)
    more = chain_row("agent", len(rows), rows[-1].hash, {"kind": "run_finished"})
    journal.append("r1", [more])
    assert journal.load("r1")["agent"] == [*rows, more]


# ── JSONL ────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_is_json_that_any_tool_reads(tmp_path: Path) -> None:
    row = chain("agent", {"kind": "asked", "text": "Grüße\n"})[0]
    JsonlJournal(tmp_path / "run.jsonl").append("r1", [row])
    text = (tmp_path / "run.jsonl").read_text()
    assert text.endswith("\n")
    assert list(json.loads(text).items()) == [
        ("run", "r1"), ("strand", "agent"), ("n", 0), ("hash", row.hash.hex()), ("record", row.record())
    ]  # fmt: skip


def test_a_file_takes_one_run_only(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    JsonlJournal(path).append("r1", numbered("agent", 1))
    for journal in (JsonlJournal(path), JsonlJournal(path)):
        with pytest.raises(JournalError, match="holds run 'r1': give run 'r2' a file of its own"):
            journal.append("r2", numbered("agent", 1, run="r2"))
    assert JsonlJournal(path).runs() == ["r1"]


@pytest.mark.parametrize("kept", range(0, 700, 50))
def test_a_torn_tail_is_left_out_and_cut_by_the_next_append(tmp_path: Path, kept: int) -> None:
    path, rows = tmp_path / "run.jsonl", numbered("agent", 4)
    journal = JsonlJournal(path)
    journal.append("r1", rows)
    path.write_bytes(path.read_bytes()[:kept])
    torn = path.read_bytes()
    whole = torn.count(b"\n")
    assert journal.load("r1").get("agent", []) == rows[:whole]
    assert path.read_bytes() == torn, "reading changed the file"
    journal.append("r1", rows[whole:] or rows)
    assert journal.load("r1") == {"agent": rows}
    assert path.read_bytes().count(b"\n") == 4


@pytest.mark.parametrize("tail", [b'{"run":"r1","strand":"agent","n":1,"ha', b"\0" * 4096], ids=["cut", "zeros"])
def test_a_torn_tail_left_by_another_is_cut_too(tmp_path: Path, tail: bytes) -> None:
    path, rows = tmp_path / "run.jsonl", numbered("agent", 3)
    journal = JsonlJournal(path)
    journal.append("r1", rows[:1])
    with path.open("ab") as file:
        file.write(tail)
    assert journal.load("r1") == {"agent": rows[:1]}
    journal.append("r1", rows[1:])
    assert journal.load("r1") == {"agent": rows}


def test_a_line_that_is_no_journal_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = JsonlJournal(path)
    writer.append("r1", numbered("agent", 2))
    JsonlJournal(path).append("r1", numbered("agent", 3))
    with path.open("ab") as file:
        file.write(b'{"run": "r1"}\n')
    for journal in (writer, JsonlJournal(path)):
        for use in (journal.runs, lambda own=journal: own.append("r1", numbered("agent", 4)[3:])):
            for _ in range(2):
                with pytest.raises(JournalError, match=r"line 4 of .*run\.jsonl is no journal line"):
                    use()


def test_a_file_with_a_line_too_many_takes_no_more_rows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    JsonlJournal(path).append("r1", numbered("agent", 2))
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(JournalError, match=r"line 3 of .* is out of place"):
        JsonlJournal(path).append("r1", numbered("agent", 3)[2:])


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path, rows = tmp_path / "run.jsonl", numbered("agent", 3)
    journal = JsonlJournal(path)
    journal.append("r1", rows)
    path.unlink()
    journal.append("r2", numbered("agent", 1, run="r2"))
    assert journal.runs() == ["r2"]


def test_a_run_in_a_file_that_other_runs_were_put_into_is_not_deleted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for run in ("r1", "r2"):
        JsonlJournal(tmp_path / run).append(run, numbered("agent", 1, run=run))
    path.write_bytes(b"".join((tmp_path / run).read_bytes() for run in ("r1", "r2")))
    with pytest.raises(JournalError, match="holds several runs, which no journal wrote: verify it"):
        JsonlJournal(path).delete("r1")
    assert JsonlJournal(path).runs() == ["r1", "r2"]


def test_a_file_that_another_process_keeps_locked_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = JsonlJournal(path, patience=0.2)
    journal.append("r1", numbered("agent", 1))
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match=r"another process has kept it locked for 0\.2 s; resume the run when"):
            journal.append("r1", numbered("agent", 2))
    assert journal.append("r1", numbered("agent", 2))
    assert journal.load("r1") == {"agent": numbered("agent", 2)}


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────


def test_a_newer_layout_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT.version + 1}")
    with closing(SqliteJournal(path)) as journal, pytest.raises(JournalError, match=f"has layout {LAYOUT.version + 1}"):
        journal.load("r1")


def test_the_room_of_deleted_runs_is_used_again(tmp_path: Path) -> None:
    path, sizes = tmp_path / "runs.db", []
    for k in range(5):
        with closing(SqliteJournal(path)) as journal:
            journal.append(f"r{k}", chain("agent", {"kind": "asked", "text": "x" * 200_000}, run=f"r{k}"))
            assert journal.delete(f"r{k}")
        sizes.append(path.stat().st_size)
    assert len(set(sizes)) == 1


def test_a_locked_file_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SqliteJournal(path, patience=0.2)) as journal, closing(sqlite3.connect(path)) as other:
        journal.append("r1", numbered("agent", 1))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match=r"another process has kept it locked for 0\.2 s"):
            journal.append("r1", numbered("agent", 2))
        other.rollback()
        assert len(journal.load("r1")["agent"]) == 1
        journal.append("r1", numbered("agent", 2))
        assert len(journal.load("r1")["agent"]) == 2


def test_an_archived_file_that_nobody_can_write_is_read(archive: Path) -> None:
    with closing(SqliteJournal(archive)) as journal:
        assert journal.load("r1") == {"agent": numbered("agent", 2)}
        with pytest.raises(JournalError, match=r"cannot write to journal .* readonly"):
            journal.append("r1", numbered("agent", 3))


@pytest.fixture
def archive() -> Iterator[Path]:
    """A journal in a folder that is read-only; root, who may write anywhere, is somebody else meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runs.db")
        with closing(SqliteJournal(path)) as journal:
            journal.append("r1", numbered("agent", 2))
        path.chmod(0o444)
        path.parent.chmod(0o555)
        user = os.getuid()
        if user == 0:
            os.setresuid(65534, 65534, 0)
        try:
            yield path
        finally:
            os.setresuid(user, user, user)
            path.parent.chmod(0o755)
