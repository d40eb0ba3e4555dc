"""verify finds whatever was done to a recorded run, and says where."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from agent_core.audit.verify import Verification, verify
from agent_core.errors import Damaged, JournalError, Newer
from agent_core.journal.chain import check_chains
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.record import FORMAT, Record, Row, Tape, by_path, chain_row, genesis, link, run_head
from agent_core.journal.record import closing_entries as closes
from agent_core.journal.source import load_run
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.store import Journal
from agent_core.rules import CURRENT
from support.examples import examples

ROOT = "agent"
CHILD, GRANDCHILD, LEFT, RIGHT = "agent/sub.3", "agent/sub.3/deep.1", "agent/6.0", "agent/6.1"


class Writing:
    """A run as its driver writes it, row by row."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.rows: list[Row] = []

    def add(self, path: str, kind: str, *, closing: tuple[str, ...] = (), **body: Any) -> None:
        tape = by_path(self.rows)
        here = tape.get(path, [])
        ends = {below: (tape[below][-1].hash, len(tape[below])) for below in closing}
        record: Record = {"kind": kind, **body, **({"closes": closes(ends)} if ends else {})}
        self.rows.append(chain_row(path, len(here), here[-1].hash if here else genesis(self.run, path), record))


def finished(run: str = "r1", *, last: bool = True, by: str = "us") -> list[Row]:
    """A run with a child, a grandchild and a batch of two, all closed as they ought to be."""
    run_ = Writing(run)
    add = partial(run_.add, by=by)
    add(ROOT, "run_started", format=FORMAT, prompt="Grüße\n\u001f")
    add(ROOT, "asked", ask="model")
    add(ROOT, "answered", content="call sub")
    add(ROOT, "asked", ask="tool")
    add(CHILD, "run_started", format=FORMAT)
    add(CHILD, "asked", ask="tool")
    add(GRANDCHILD, "run_started", format=FORMAT)
    add(GRANDCHILD, "run_finished", finish_reason="final")
    add(CHILD, "answered", closing=(GRANDCHILD,))
    add(CHILD, "run_finished", finish_reason="final")
    add(ROOT, "answered", closing=(CHILD,))
    add(ROOT, "decided", verdict="allowed")
    add(ROOT, "asked", ask="batch")
    add(LEFT, "asked", ask="tool")
    add(RIGHT, "asked", ask="tool")
    add(RIGHT, "answered", output=1)
    add(LEFT, "answered", output=[1.5, None])
    add(ROOT, "answered", closing=(LEFT, RIGHT))
    if last:
        add(ROOT, "run_finished", finish_reason="final")
    return run_.rows


def seal(rows: list[Row]) -> dict[str, Any]:
    """The head and count that a node would emit for these rows."""
    strands = [(path, told[-1].hash, len(told)) for path, told in by_path(rows).items()]
    return {"head": run_head(strands), "count": len(rows)}


def jsonl(path: Path, rows: list[Row], run: str = "r1") -> Path:
    JsonlJournal(path).append(run, rows)
    return path


def relinked(run: str, records: dict[str, list[Record]]) -> list[Row]:
    """Rows with sound chains, whatever the records say: what a forger would write."""
    writing = Writing(run)
    for path, told in records.items():
        for record in told:
            writing.add(path, **record)
    return writing.rows


# ── what is sound ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["jsonl path", "jsonl", "sqlite path", "sqlite", "memory", "rows"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[list[Row]], Any]]:
    """Puts rows of run r1 where verify can find them, in each of the ways there are."""
    made: list[Journal] = []

    def put(rows: list[Row]) -> Any:
        match request.param.split():
            case ["rows"]:
                return iter(rows)
            case ["memory"]:
                made.append(MemoryJournal())
            case ["jsonl", *_]:
                made.append(JsonlJournal(tmp_path / "run.jsonl"))
            case _:
                made.append(SqliteJournal(tmp_path / "runs.db"))
        made[-1].append("r1", rows)
        return made[-1] if "path" not in request.param else str(made[-1].path)  # type: ignore[attr-defined]

    yield put
    for journal in made:
        journal.close()


def test_a_finished_run_is_ok_wherever_it_is_read_from(source: Callable[[list[Row]], Any]) -> None:
    found = verify(source(finished()), run_id="r1")
    assert found == Verification(
        ok=True, complete=True, torn=False, first_bad=None, why=None, seal="not sealed", **seal(finished())
    )


def test_load_gives_the_run_and_its_rows(source: Callable[[list[Row]], Any]) -> None:
    run, tape = load_run(source(finished()), "r1")
    assert (run, tape) == ("r1", by_path(finished()))
    assert check_chains(run, tape) is tape


def test_an_unfinished_run_is_ok_only_at_its_head(source: Callable[[list[Row]], Any]) -> None:
    rows = finished(last=False)
    found = verify(source(rows), run_id="r1", **seal(rows))
    assert (found.ok, found.complete) == (True, False)


def test_an_unfinished_run_without_a_head_is_not_ok(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "run.jsonl", finished(last=False))
    found = verify(path)
    assert (found.ok, found.complete, found.first_bad) == (False, False, None)
    assert found.why == "the run is not finished: only the head that its node emitted, or a seal, could prove it"
    assert not verify(path, count=17).ok


@pytest.mark.parametrize("emitted", [seal(finished()), seal(finished(last=False))], ids=["whole", "node's"])
def test_a_finished_run_matches_its_head_and_the_one_its_node_emitted(emitted: dict[str, Any]) -> None:
    found = verify(finished(), run_id="r1", **emitted)
    assert (found.ok, found.head, found.count) == (True, emitted["head"], emitted["count"])
    assert verify(finished(), run_id="r1", head=emitted["head"]).ok
    assert verify(finished(), run_id="r1", count=emitted["count"]).ok


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({**seal(finished()), "count": 18}, id="count of the one, head of the other"),
        pytest.param({"count": 99}, id="count"),
        pytest.param({"head": "0" * 64}, id="head"),
        pytest.param({"head": seal(finished())["head"].upper()}, id="case"),
    ],
)
def test_a_finished_run_with_another_head_is_not_ok(given: dict[str, Any]) -> None:
    found = verify(finished(), run_id="r1", **given)
    assert (found.ok, found.complete, found.first_bad) == (False, True, None)
    assert found.why == "the records are sound, but they do not end at the given head and count"
    assert (found.head, found.count) == tuple(seal(finished()).values())


def test_one_strand_is_verified_at_the_head_that_its_node_emitted() -> None:
    below = [row for row in finished() if row.path.startswith(CHILD)]
    emitted = seal(below[:-1])
    found = verify(finished(), run_id="r1", strand=CHILD)
    assert (found.ok, found.complete, found.head, found.count) == (True, True, *emitted.values())
    assert verify(finished(), run_id="r1", strand=CHILD, **emitted).ok
    assert verify(finished(), run_id="r1", strand=CHILD, **seal(below)).ok
    assert not verify(finished(), run_id="r1", strand=CHILD, **seal(finished())).ok


def test_a_strand_that_is_not_there_is_not_ok() -> None:
    found = verify(finished(), run_id="r1", strand="agent/sub.99")
    assert (found.ok, found.count, found.why) == (False, 0, "there are no records")


# ── what cannot be asked ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ask", [verify, load_run], ids=["verify", "load"])
def test_a_missing_source_is_an_error(ask: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="a source is a journal, the path of its file, or the rows of a run, not 5"):
        verify(5)  # type: ignore[arg-type]
    with pytest.raises(JournalError, match=f"there is no journal {tmp_path}/run.jsonl"):
        ask(tmp_path / "run.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ask", [verify, load_run], ids=["verify", "load"])
def test_an_unknown_run_is_an_error_that_says_which_there_are(ask: Callable[..., Any], tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "runs.db")) as many:
        many.append("r1", finished())
        for known in (many, tmp_path / "runs.db", jsonl(tmp_path / "run.jsonl", finished())):
            with pytest.raises(JournalError, match="holds no run 'r9'; it holds r1"):
                ask(known, run_id="r9")
    with pytest.raises(JournalError, match="the journal holds no run"):
        ask(MemoryJournal())


@pytest.mark.parametrize("ask", [verify, load_run], ids=["verify", "load"])
def test_of_several_runs_one_must_be_named(ask: Callable[..., Any], tmp_path: Path) -> None:
    journal = MemoryJournal()
    for k in range(7):
        journal.append(f"r{k}", finished(f"r{k}"))
    with pytest.raises(JournalError, match=r"holds 7 runs, say which by run_id: r0, r1, r2, r3, r4, …"):
        ask(journal)
    ask(journal, run_id="r3")


def test_bare_rows_need_the_id_of_their_run() -> None:
    with pytest.raises(JournalError, match="give run_id"):
        verify(finished())
    assert not verify(finished(), run_id="another").ok


REWRITTEN = {
    "line ends": lambda data: data.replace(b"\n", b"\r\n"),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "white space": lambda data: data.replace(b'"n":', b'"n": '),
}


@pytest.mark.parametrize("rewrite", REWRITTEN.values(), ids=REWRITTEN)
def test_a_file_that_was_written_anew_on_its_way_is_told_as_that(rewrite: Any, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "run.jsonl", finished())
    path.write_bytes(rewrite(path.read_bytes()))
    found = verify(path)
    assert not found.ok
    assert f"line 1 of {path} was written anew, with other line ends" in found.why


# ── what was done to it ──────────────────────────────────────────────────────────────────────────


def told(found: Verification) -> tuple[Any, ...]:
    assert not found.ok
    return tuple(found.first_bad.values()) if found.first_bad else (found.why,)


def edited(path: Path, edit: Callable[[list[bytes]], list[bytes]]) -> Path:
    """The recorded run with its lines changed."""
    lines = jsonl(path, finished()).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(edit(lines)))
    return path


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        pytest.param(lambda ls: [*ls[:4], *ls[5:]], (CHILD, 0, 5), id="a line dropped"),
        pytest.param(lambda ls: ls[1:], (ROOT, 0, 1), id="the first line dropped"),
        pytest.param(lambda ls: [*ls[:3], ls[2], *ls[3:]], (ROOT, 3, 4), id="a line doubled"),
        pytest.param(lambda ls: [*ls, ls[18]], (ROOT, 9, 20), id="the last line doubled"),
        pytest.param(lambda ls: [ls[1], ls[0], *ls[2:]], (ROOT, 0, 1), id="two lines swapped"),
        pytest.param(lambda ls: [*ls[:2], b"\n", *ls[2:]], (None, None, 3), id="an empty line"),
        pytest.param(lambda ls: [*ls[:2], b" " + ls[2], *ls[3:]], (None, None, 3), id="white space"),
        pytest.param(lambda ls: [*ls[:2], ls[2][:-1] + b"\r\n", *ls[3:]], (None, None, 3), id="another newline"),
        pytest.param(lambda ls: [ls[0].replace(b"\\u001f", b"\\u001F"), *ls[1:]], (ROOT, 0, 1), id="an escape"),
        pytest.param(
            lambda ls: [ls[0].replace(b'"agent"', b'"\\u0061gent"'), *ls[1:]], (None, None, 1), id="a needless escape"
        ),
        pytest.param(lambda ls: [*ls[:6], *ls[8:]], (CHILD, 2, 7), id="a whole strand dropped"),
        pytest.param(lambda ls: [*ls[:7], *ls[8:]], (CHILD, 2, 8), id="the end of a child dropped"),
        pytest.param(lambda ls: [*ls[:16], *ls[17:]], (ROOT, 7, 17), id="the end of an item dropped"),
        pytest.param(
            lambda ls: [line.replace(b'"strand":"agent/6.0"', b'"strand":"agent/6.2"') for line in ls],
            ("agent/6.2", 0, 14),
            id="a strand moved",
        ),
        pytest.param(lambda ls: [ls[0].replace(b'"r1"', b'"r2"'), *ls[1:]], (ROOT, 0, 1), id="the run renamed"),
        pytest.param(lambda ls: [*ls[:3], ls[3].replace(b'"r1"', b'"r2"'), *ls[4:]], (ROOT, 3, 4), id="another run"),
    ],
)
def test_damage_is_found_where_it_is(tmp_path: Path, edit: Any, where: tuple[Any, ...]) -> None:
    assert told(verify(edited(tmp_path / "run.jsonl", edit))) == where


def test_an_upper_case_hash_is_no_journal_line(tmp_path: Path) -> None:
    def shout(lines: list[bytes]) -> list[bytes]:
        begin = lines[5].index(b'"hash":"') + 8
        return [
            *lines[:5],
            lines[5][:begin] + lines[5][begin : begin + 64].upper() + lines[5][begin + 64 :],
            *lines[6:],
        ]

    assert told(verify(edited(tmp_path / "run.jsonl", shout))) == (None, None, 6)


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_cut_tail_is_found_at_any_byte(tmp_path: Path, step: int) -> None:
    path = jsonl(tmp_path / "run.jsonl", finished())
    whole = path.read_bytes()
    for kept in range(0, len(whole), step):
        path.write_bytes(whole[:kept])
        found = verify(path, **seal(finished()))
        assert (found.ok, found.complete, found.first_bad) == (False, False, None)
        assert found.torn == (whole[:kept][-1:] not in (b"", b"\n"))
    assert kept >= len(whole) - step


def test_a_cut_tail_needs_no_head_to_be_found(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "run.jsonl", finished())
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(len(lines)):
        path.write_bytes(b"".join(lines[:kept]))
        assert not verify(path).ok


@pytest.mark.parametrize("given", [{}, seal(finished()), seal(finished(last=False))], ids=["", "whole", "node's"])
def test_bytes_behind_the_end_are_never_ok(tmp_path: Path, given: dict[str, Any]) -> None:
    path = jsonl(tmp_path / "run.jsonl", finished())
    path.write_bytes(path.read_bytes() + b'{"run":"r1","str')
    found = verify(path, **given)
    assert (found.ok, found.complete, found.torn, found.first_bad) == (False, True, True, None)
    assert found.why is not None
    assert "no newline" in found.why
    assert load_run(path) == ("r1", by_path(finished())), "a resume drops it"


JUNK: list[Any] = [3, "x", [3], [[]], [["agent/0.0"]], [[{}, [], 1]], {"a": 1}]


@pytest.mark.parametrize(
    ("forged", "where", "why"),
    [
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": "run_finished"}, {"kind": "asked"}]},
            (ROOT, 2, None), "it follows the end of its run", id="a record behind the end",
        ),
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": "gossip"}]}, (ROOT, 1, None), "it is no record", id="kind",
        ),
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": ["asked"]}]}, (ROOT, 1, None), "it is no record", id="kind type",
        ),
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": "run_finished"}], "agent/0.0": [{"kind": "asked"}]},
            ("agent/0.0", 0, None), "no record of the finished run closes strand 'agent/0.0'", id="an orphan",
        ),
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": "run_finished"}], "other": [{"kind": "asked"}]},
            ("other", 0, None), "strand 'other' does not belong", id="a second root",
        ),
        pytest.param(
            {"agent/0.0": [{"kind": "asked"}]}, ("agent/0.0", 0, None), "does not belong", id="no root",
        ),
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": "answered", "closes": [[ROOT, "00", 1]]}]},
            (ROOT, 1, None), "it closes strand 'agent', which is not below its own", id="closes itself",
        ),
        pytest.param(
            {ROOT: [{"kind": "run_started"}, {"kind": "answered", "closes": [["agent/0.0", "00", 1]]}]},
            (ROOT, 1, None), "it closes strand 'agent/0.0', which is missing", id="closes what is missing",
        ),
        pytest.param(
            {
                "agent/0.0": [{"kind": "asked"}],
                ROOT: [{"kind": "run_started"}, {"kind": "answered", "closes": [["agent/0.0", "00", 1]]}],
            },
            (ROOT, 1, None), "at another head and count", id="closes at another head",
        ),
        *(
            pytest.param(
                {ROOT: [{"kind": "run_started"}, {"kind": "answered", "closes": junk}]},
                (ROOT, 1, None), "which is not below its own", id=f"closes {junk!r}",
            )
            for junk in JUNK
        ),
    ],
)  # fmt: skip
def test_a_sound_chain_over_nonsense_is_not_ok(
    forged: dict[str, list[Record]], where: tuple[Any, ...], why: str
) -> None:
    rows = relinked("r1", forged)
    found = verify(rows, run_id="r1", **seal(rows))
    assert told(found) == where
    assert found.why is not None
    assert why in found.why


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b'{"kind":NaN}', b"null"])
def test_bytes_that_are_no_record_are_told(data: bytes) -> None:
    row = Row(ROOT, 0, link(genesis("r1", ROOT), data), data)
    assert told(verify([row], run_id="r1")) == (ROOT, 0, None)


# ── any damage at all ────────────────────────────────────────────────────────────────────────────

ANY_DAMAGE = examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
WHOLE, EMITTED = seal(finished()), seal(finished(last=False))


def accepted(path: Path, **given_: Any) -> bool:
    """Whether verify is content; that nothing is left under the run's id, or can be read, is no content either."""
    try:
        return verify(path, **given_).ok
    except JournalError as error:
        if "holds no run" not in str(error) and "it is damaged" not in str(error):
            raise
        return False


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return jsonl(tmp_path_factory.mktemp("recorded") / "run.jsonl", finished()).read_bytes()


@ANY_DAMAGE
@given(data=st.data())
def test_any_flipped_bit_of_a_file_is_found(recorded: bytes, tmp_path: Path, data: st.DataObject) -> None:
    at, bit = data.draw(st.integers(0, len(recorded) - 1)), data.draw(st.integers(0, 7))
    flipped = bytearray(recorded)
    flipped[at] ^= 1 << bit
    (tmp_path / "run.jsonl").write_bytes(flipped)
    for given_ in ({}, WHOLE, EMITTED, {"run_id": "r1"}):
        assert not accepted(tmp_path / "run.jsonl", **given_)


@ANY_DAMAGE
@given(data=st.data())
def test_any_lines_dropped_doubled_swapped_or_spliced_in_are_found(
    recorded: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    lines = recorded.splitlines(keepends=True)
    a, b = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    other = b"".join(lines).replace(b'"r1"', b'"r2"').splitlines(keepends=True)
    damaged = data.draw(
        st.sampled_from(
            [
                lines[: min(a, b)] + lines[max(a, b) + 1 :],
                [*lines[:a], lines[b], *lines[a:]],
                [lines[b] if i == a else lines[a] if i == b else line for i, line in enumerate(lines)],
                [*lines[:a], other[b], *lines[a:]],
                lines[: a + 1],
            ]
        )
    )
    assume(strands(damaged) != strands(lines))
    (tmp_path / "run.jsonl").write_bytes(b"".join(damaged))
    for given_ in ({}, WHOLE, {"run_id": "r1"}):
        assert not accepted(tmp_path / "run.jsonl", **given_)


def strands(lines: list[bytes]) -> dict[bytes, list[bytes]]:
    """Lines by strand: their order across strands carries no meaning, so changing it is no damage."""
    found: dict[bytes, list[bytes]] = {}
    for line in lines:
        found.setdefault(line.split(b',"n":')[0], []).append(line)
    return found


# ── two runs spliced ─────────────────────────────────────────────────────────────────────────────

OTHERS = {"another run": finished("r2"), "another run of the same id": finished("r1", by="them")}
Strands = dict[str, list[Row]]


def put(strands: Strands, path: str, rows: list[Row]) -> None:
    """Rows under another path than the one they were written for, if need be."""
    strands[path] = [Row(path, row.n, row.hash, row.data) for row in rows]


def put_all(strands: Strands, other: Strands, paths: Iterable[str], *, below: str = "") -> None:
    for path in list(paths):
        put(strands, below + path, other[path])


SPLICES: dict[str, Callable[[Strands, Strands], None]] = {
    "a whole strand below the root": lambda ours, other: put(ours, "agent/sub.30", other[CHILD]),
    "the whole run below the root": lambda ours, other: put_all(ours, other, other, below="agent/"),
    "a child in place of ours": lambda ours, other: put(ours, CHILD, other[CHILD]),
    "a child and all below it": lambda ours, other: put_all(ours, other, (CHILD, GRANDCHILD)),
    "all but the root": lambda ours, other: put_all(ours, other, other.keys() - {ROOT}),
    "the root alone": lambda ours, other: put(ours, ROOT, other[ROOT]),
    "an item of a batch": lambda ours, other: put(ours, LEFT, other[LEFT]),
    "the end of a child": lambda ours, other: put(ours, CHILD, [*ours[CHILD][:2], *other[CHILD][2:]]),
    "the beginning of a child": lambda ours, other: put(ours, CHILD, [*other[CHILD][:2], *ours[CHILD][2:]]),
    "the end of the root": lambda ours, other: put(ours, ROOT, [*ours[ROOT][:-1], other[ROOT][-1]]),
    "a record in the middle": lambda ours, other: put(ours, ROOT, [*ours[ROOT][:4], other[ROOT][4], *ours[ROOT][5:]]),
    "a child of ours in another's place": lambda ours, other: put(ours, LEFT, ours[RIGHT]),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("splice", SPLICES.values(), ids=SPLICES)
def test_two_runs_spliced_are_found(splice: Callable[[Strands, Strands], None], other: list[Row]) -> None:
    strands = by_path(finished())
    splice(strands, by_path(other))
    rows = [row for strand in strands.values() for row in strand]
    for given_ in ({}, WHOLE, EMITTED):
        found = verify(rows, run_id="r1", **given_)
        assert (found.ok, found.why is not None) == (False, True)


def damages(strands: Strands, draw: Callable[[Any], Any]) -> None:
    """One thing that somebody may do to stored rows."""
    path, target = draw(st.sampled_from(sorted(strands))), draw(st.sampled_from(sorted(strands)))
    rows, other = strands[path], by_path(draw(st.sampled_from(list(OTHERS.values()))))
    at, to = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, len(rows) - 1))
    match draw(st.sampled_from(["cut", "drop", "swap", "double", "replace", "move", "strand", "bytes", "forget"])):
        case "cut":
            put(strands, path, rows[:at])
        case "drop":
            put(strands, path, [*rows[:at], *rows[at + 1 :]])
        case "swap":
            put(strands, path, [rows[to] if n == at else rows[at] if n == to else row for n, row in enumerate(rows)])
        case "double":
            put(strands, path, [*rows[:to], rows[at], *rows[to:]])
        case "replace":
            put(strands, path, [*rows[:at], *other.get(path, [])[at : at + 1], *rows[at + 1 :]])
        case "move":
            put(strands, target, [*strands[target], rows[at]])
        case "strand":
            put(strands, path, other.get(target, []))
        case "bytes":
            changed = rows[at].data.replace(b"us", b"US")
            put(strands, path, [*rows[:at], Row(path, at, rows[at].hash, changed), *rows[at + 1 :]])
        case "forget":
            del strands[path]
    if not strands.get(path, True):
        del strands[path]


@ANY_DAMAGE
@given(data=st.data())
def test_whatever_is_done_to_some_rows_is_found(data: st.DataObject) -> None:
    strands = by_path(finished())
    for _ in range(data.draw(st.integers(1, 3))):
        if strands:
            damages(strands, data.draw)
    assume(strands != by_path(finished()))
    rows = [row for strand in strands.values() for row in strand]
    for given_ in ({}, WHOLE):
        assert not verify(rows, run_id="r1", **given_).ok
    assert verify(rows, run_id="r1", **EMITTED).ok == (strands == by_path(finished(last=False)))


# ── databases ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "runs.db"
    with closing(SqliteJournal(path)) as journal:
        journal.append("r1", finished())
        journal.append("r2", finished("r2"))
    return path


@ANY_DAMAGE
@given(data=st.data())
def test_any_change_to_a_stored_row_is_found(database: Path, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(database.read_bytes())
    seq = data.draw(st.integers(1, len(finished())))
    column = data.draw(st.sampled_from(["hash", "data", "strand", "n", "run"]))
    with closing(sqlite3.connect(path)) as db, db:
        (value,) = db.execute(f"SELECT {column} FROM rows WHERE seq = ?", (seq,)).fetchone()
        changed = data.draw(st.sampled_from([other for other in changes(value) if other != value]))
        db.execute(f"UPDATE OR REPLACE rows SET {column} = ? WHERE seq = ?", (changed, seq))
    for given_ in ({}, WHOLE):
        assert not accepted(path, run_id="r1", **given_)


def changes(value: Any) -> Iterator[Any]:
    """Other values that somebody may have put there, of other types too."""
    yield from ("", b"", -1, 2**40, 1.5, "abc")
    if isinstance(value, bytes):
        for at in range(len(value)):
            yield value[:at] + bytes([value[at] ^ 1 << at % 8]) + value[at + 1 :]
    if isinstance(value, str):
        yield from (value.encode(), value + "x", value.upper(), "r2", LEFT)
    if isinstance(value, int):
        yield from (value + 1, str(value) + "x")


EDITS = {
    "a record deleted": "DELETE FROM rows WHERE run = 'r1' AND strand = 'agent' AND n = 4",
    "a tail deleted": "DELETE FROM rows WHERE run = 'r1' AND strand = 'agent' AND n > 4",
    "the tails of all strands deleted": "DELETE FROM rows WHERE run = 'r1' AND n > 0",
    "a strand deleted": "DELETE FROM rows WHERE run = 'r1' AND strand = 'agent/sub.3/deep.1'",
    "the root deleted": "DELETE FROM rows WHERE run = 'r1' AND strand = 'agent'",
    "all deleted": "DELETE FROM rows WHERE run = 'r1'",
    "two records swapped": "UPDATE rows SET n = n + 100 WHERE run = 'r1' AND strand = 'agent' AND n = 4;"
    "UPDATE rows SET n = 4 WHERE run = 'r1' AND strand = 'agent' AND n = 5;"
    "UPDATE rows SET n = 5 WHERE run = 'r1' AND strand = 'agent' AND n = 104",
    "the last record doubled": "INSERT INTO rows (run, strand, n, hash, data)"
    "SELECT run, strand, n + 1, hash, data FROM rows WHERE run = 'r1' AND strand = 'agent/6.0' AND n = 1",
    "a strand moved": "UPDATE rows SET strand = 'agent/6.2' WHERE run = 'r1' AND strand = 'agent/6.0'",
    "a strand doubled": "INSERT INTO rows (run, strand, n, hash, data)"
    "SELECT run, 'agent/6.2', n, hash, data FROM rows WHERE run = 'r1' AND strand = 'agent/6.0'",
    "another run's strand put in its place": "DELETE FROM rows WHERE run = 'r1' AND strand = 'agent/sub.3';"
    "UPDATE rows SET run = 'r1' WHERE run = 'r2' AND strand = 'agent/sub.3'",
    "another run's strand put below": "UPDATE rows SET run = 'r1', strand = 'agent/sub.9'"
    "WHERE run = 'r2' AND strand = 'agent/sub.3'",
    "another run in its place": "DELETE FROM rows WHERE run = 'r1'; UPDATE rows SET run = 'r1' WHERE run = 'r2'",
    "another run's records": "UPDATE OR REPLACE rows SET run = 'r1' WHERE run = 'r2' AND n = 1",
    "all records shifted": "UPDATE rows SET n = n + 99 WHERE run = 'r1'; UPDATE rows SET n = n - 98 WHERE run = 'r1'",
    "a record changed": "UPDATE rows SET data = replace(data, 'us', 'US') WHERE run = 'r1' AND n = 2",
    "a record as text": "UPDATE rows SET data = CAST(data AS TEXT) WHERE run = 'r1' AND n = 2",
    "the run's id as bytes": "UPDATE rows SET run = CAST(run AS BLOB) WHERE run = 'r1'",
    "hashes gone": "UPDATE rows SET hash = x'' WHERE run = 'r1'",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_by_sql_is_found(database: Path, tmp_path: Path, edit: str) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(database.read_bytes())
    assert accepted(path, run_id="r1")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(edit)
        assert db.total_changes > 0
    for given_ in ({}, WHOLE, EMITTED):
        assert not accepted(path, run_id="r1", **given_)


@ANY_DAMAGE
@given(data=st.data())
def test_a_flipped_bit_of_a_database_is_found_unless_it_changes_no_row(
    database: Path, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "runs.db"
    flipped = bytearray(database.read_bytes())
    flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(flipped)
    assert not accepted(path, run_id="r1", **WHOLE) or load_run(path, "r1")[1] == by_path(finished())


@pytest.mark.parametrize(
    ("sound", "damaged", "why"),
    [
        pytest.param(b"UNIQUE (run, strand", b"UNIQUE (run, str\xcend", "damaged", id="a name that is not UTF-8"),
        pytest.param(b"CREATE TABLE", b"CREATE TOBLE", "malformed", id="a schema that cannot be read"),
    ],
)
def test_a_database_that_sqlite_cannot_read_is_told(
    database: Path, tmp_path: Path, sound: bytes, damaged: bytes, why: str
) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(database.read_bytes().replace(sound, damaged))
    found = verify(path)
    assert (found.ok, found.first_bad) == (False, {"strand": None, "n": None, "line": None})
    assert found.why is not None
    assert f"cannot read journal {path}: " in found.why
    assert why in found.why
    with pytest.raises(JournalError, match=why):
        load_run(path)


# ── checked ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at", range(19))
def test_a_driver_refuses_a_tape_with_a_broken_link(at: int) -> None:
    rows = finished()
    row = rows[at]
    rows[at] = Row(row.path, row.n, row.hash, row.data.replace(b'"kind"', b'"kinD"'))
    with pytest.raises(Damaged) as damaged:
        check_chains("r1", by_path(rows))
    assert (damaged.value.path, damaged.value.n) == (row.path, row.n)


@pytest.mark.parametrize("tape", [by_path(finished()[1:]), by_path([*finished(), finished()[-1]])])
def test_a_driver_refuses_a_tape_with_a_gap_or_a_double(tape: Tape) -> None:
    with pytest.raises(Damaged):
        check_chains("r1", tape)


def test_a_driver_refuses_the_tape_of_another_run() -> None:
    with pytest.raises(Damaged):
        check_chains("r2", by_path(finished("r1")))


def test_a_driver_refuses_a_newer_format_and_says_what_to_do() -> None:
    rows = relinked("r1", {ROOT: [{"kind": "run_started", "format": FORMAT + 1}]})
    with pytest.raises(Newer, match=f"format {FORMAT + 1}, .* use a newer version"):
        check_chains("r1", by_path(rows))


@pytest.mark.parametrize("began", [{"format": FORMAT + 1}, {"format": FORMAT, "rules": {**CURRENT, "cuts": 99}}])
@pytest.mark.parametrize("strand", [ROOT, CHILD])
def test_a_run_of_a_newer_version_is_neither_proven_nor_damaged(began: Record, strand: str) -> None:
    told = {path: [row.record() for row in rows] for path, rows in by_path(finished()).items()}
    told[strand][0] |= began
    rows = relinked("r1", {path: records for path, records in told.items() if path in (ROOT, strand)})
    found = verify(rows, run_id="r1")
    assert (found.ok, found.first_bad, found.contents) == (False, None, "newer")
    assert found.seal == "seal not checked: a newer version wrote this run"
    broken = [row._replace(data=b"{}") if (row.path, row.n) == (ROOT, 0) else row for row in rows]
    assert (verify(broken, run_id="r1").first_bad or {})["strand"] == ROOT
