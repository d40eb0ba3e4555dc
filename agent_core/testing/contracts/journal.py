"""check_journal(): what every journal must do, whatever it keeps its rows in."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from threading import Barrier
from typing import Final, cast

from agent_core.errors import Lost
from agent_core.journal.record import Record, Row, chain_row, genesis
from agent_core.journal.store import Journal
from agent_core.testing.contracts.rows import chain, check_chained, closing_row, numbered
from agent_core.testing.contracts.rules import Verdicts, raises, rules_for_cases, rules_of

PATIENCE_S: Final = 30
"""How long one thread of a rule waits for the others."""


def check_journal(make_journal: Callable[[], Journal], *, holds_one_run: bool = False) -> None:
    """Try a journal of your own by every rule of the seam. AssertionError names all rules that are broken.

    `make_journal` returns a new, empty one for each rule, which is closed afterwards. A journal that `holds_one_run`,
    as a JSONL file does, is not tried with several.
    """
    verdicts = Verdicts("the journal")
    for rule in JOURNAL_RULES if holds_one_run else (*JOURNAL_RULES, *RULES_OF_SEVERAL_RUNS):
        with verdicts.of(rule), closing(make_journal()) as journal:
            rule.check(journal)
    verdicts.tell()


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────

RECORDS: Final[dict[str, Record]] = {
    "unicode": {"kind": "asked", "text": "Grüße 世界 \u2028 🦆"},
    "what JSON escapes": {"kind": "asked", "text": 'line\nbreak "quoted" \\ {"n":0}} \u0000'},
    "1 MiB": {"kind": "asked", "text": "x" * (1 << 20)},
    "numbers": {"kind": "asked", "low": -(2**63), "high": 2**64 - 1, "tiny": 5e-324},
}


def a_row_comes_back_byte_for_byte(journal: Journal, record: Record) -> None:
    rows = chain("flow/ctx_in.1", record, {"kind": "answered"})
    journal.append("r1", rows)
    assert journal.load("r1") == {"flow/ctx_in.1": rows}


def strange_names_of_runs_and_strands_come_back(journal: Journal) -> None:
    run, strand = 'r "1"\n\x7fé', 'a"b\\/4.0\n\x1b'
    rows = chain(strand, {"kind": "asked"}, run=run)
    journal.append(run, rows)
    assert journal.runs() == [run]
    assert journal.load(run) == {strand: rows}


def an_unknown_run_is_empty(journal: Journal) -> None:
    assert journal.load("r1") == {}
    assert journal.runs() == []
    journal.append("r1", numbered("agent", 1))
    assert journal.load("another") == {}
    assert journal.runs() == ["r1"]


def appending_nothing_makes_no_run(journal: Journal) -> None:
    journal.append("r1", [])
    assert journal.runs() == []


def one_append_carries_rows_of_several_strands(journal: Journal) -> None:
    root, left, right = numbered("agent", 3), numbered("agent/2.0", 2), numbered("agent/2.1", 1)
    journal.append("r1", [*root[:2], *left, root[2], *right])
    assert journal.load("r1") == {"agent": root, "agent/2.0": left, "agent/2.1": right}


def appending_the_same_rows_again_changes_nothing(journal: Journal) -> None:
    rows = numbered("agent", 4)
    for part in (rows[:3], rows[:3], rows[1:], rows[:1]):
        journal.append("r1", part)
    assert journal.load("r1") == {"agent": rows}


def a_row_named_twice_in_one_append_is_written_once(journal: Journal) -> None:
    rows = numbered("agent", 2)
    journal.append("r1", [rows[0], rows[0], rows[1]])
    assert journal.load("r1") == {"agent": rows}


def changing_what_was_loaded_leaves_the_journal_alone(journal: Journal) -> None:
    rows = numbered("agent", 2)
    journal.append("r1", rows)
    tape = journal.load("r1")
    tape["agent"].pop()
    tape.clear()
    assert journal.load("r1") == {"agent": rows}


def closing_twice_is_fine(journal: Journal) -> None:
    journal.append("r1", numbered("agent", 1))
    journal.close()
    journal.close()


# ── who comes too late ───────────────────────────────────────────────────────────────────────────

LATE: Final[dict[str, list[Row]]] = {
    "another row is there": numbered("agent", 2, by="another")[1:],
    "a gap": numbered("agent", 4)[3:],
    "a strand that does not begin at 0": numbered("agent/2.0", 2)[1:],
    "two rows for one place": [numbered("agent", 3)[2], numbered("agent", 3, by="another")[2]],
}


def a_lost_append_writes_none_of_its_rows(journal: Journal, late: list[Row]) -> None:
    rows = numbered("agent", 2)
    journal.append("r1", rows)
    with raises(Lost) as lost:
        journal.append("r1", [*numbered("agent/1.0", 2), *late])
    error = cast(Lost, lost.error)
    assert (error.path, error.n) == (late[-1].path, late[-1].n)
    assert journal.load("r1") == {"agent": rows}


def a_row_that_breaks_its_strands_chain_is_lost(journal: Journal) -> None:
    ours, theirs = numbered("agent", 3, by="us"), numbered("agent", 3, by="them")
    journal.append("r1", ours[:2])
    for row in (theirs[2], numbered("agent/x.1", 1, run="another run")[0]):
        with raises(Lost):
            journal.append("r1", [row])
    assert journal.load("r1") == {"agent": ours[:2]}


def only_the_one_whose_last_row_is_new_gets_true(journal: Journal) -> None:
    rows = numbered("agent", 3)
    told = [journal.append("r1", part) for part in (rows[:2], rows[:2], rows, [])]
    assert told == [True, False, True, False]


def a_journal_goes_on_after_a_lost_append(journal: Journal) -> None:
    rows = numbered("agent", 3)
    journal.append("r1", rows[:2])
    with raises(Lost):
        journal.append("r1", numbered("agent", 2, by="another"))
    journal.append("r1", rows[2:])
    assert journal.load("r1") == {"agent": rows}


def of_eight_threads_at_one_place_exactly_one_wins(journal: Journal) -> None:
    race([journal] * 8)


def race(journals: Sequence[Journal]) -> None:
    """One thread to a journal, all after the same 20 places; each is won once."""
    barrier = Barrier(len(journals), timeout=PATIENCE_S)

    def drive(number: int, journal: Journal) -> list[int]:
        wins, rows = list[int](), list[Row]()
        for n in range(20):
            head = rows[-1].hash if rows else genesis("r1", "agent")
            barrier.wait()
            with suppress(Lost):
                journal.append("r1", [chain_row("agent", n, head, {"kind": "asked", "by": number})])
                wins.append(n)
            barrier.wait()
            rows = journal.load("r1")["agent"]
        return wins

    def drive_or_abort(number: int, journal: Journal) -> list[int]:
        try:
            return drive(number, journal)
        except BaseException:
            barrier.abort()  # the others wait for this one no longer
            raise

    with ThreadPoolExecutor(len(journals)) as pool:
        wins = sorted(n for won in pool.map(drive_or_abort, range(len(journals)), journals) for n in won)
    assert wins == list(range(20))
    check_chained("agent", journals[0].load("r1")["agent"])


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────


def a_deleted_run_is_gone_and_can_begin_anew(journal: Journal) -> None:
    journal.append("r1", [*numbered("agent", 3), *numbered("agent/2.0", 2)])
    assert journal.delete("r1")
    assert (journal.runs(), journal.load("r1")) == ([], {})
    assert not journal.delete("r1")
    with raises(Lost):
        journal.append("r1", numbered("agent", 3)[2:])
    assert journal.append("r1", numbered("agent", 1, by="another"))
    assert journal.load("r1") == {"agent": numbered("agent", 1, by="another")}


def deleting_an_unknown_run_changes_nothing(journal: Journal) -> None:
    assert not journal.delete("r1")
    journal.append("r1", numbered("agent", 1))
    assert not journal.delete("r2")
    assert journal.load("r1") == {"agent": numbered("agent", 1)}


# ── records that close strands ───────────────────────────────────────────────────────────────────


def a_record_that_closes_a_strand_is_refused_once_that_has_grown(journal: Journal) -> None:
    below = numbered("agent/1.0", 3)
    journal.append("r1", below[:2])
    stale = closing_row(below[:2])
    journal.append("r1", below[2:])
    with raises(Lost) as lost:
        journal.append("r1", [stale])
    error = cast(Lost, lost.error)
    assert (error.path, error.n) == ("agent/1.0", 2)
    assert "agent" not in journal.load("r1")
    assert journal.append("r1", [closing_row(below)])


def a_record_may_close_what_is_appended_with_it(journal: Journal) -> None:
    below = numbered("agent/1.0", 2)
    end = closing_row(below)
    with raises(Lost):
        journal.append("r1", [end])
    assert journal.append("r1", [*below, end])
    assert not journal.append("r1", [end])


def a_key_of_that_name_in_an_output_closes_nothing(journal: Journal) -> None:
    record = {"kind": "answered", "output": {"closes": [["agent/1.0", "00", 1]]}, "error": '"closes":[["x","00",1]]'}
    assert journal.append("r1", chain("agent", record))


# ── several runs ─────────────────────────────────────────────────────────────────────────────────


def runs_are_listed_oldest_first_and_kept_apart(journal: Journal) -> None:
    for run in ("r2", "r10", "r1"):
        journal.append(run, numbered("agent", 1, run=run))
    journal.append("r2", numbered("agent", 2, run="r2"))
    assert journal.runs() == ["r2", "r10", "r1"]
    assert [len(journal.load(run)["agent"]) for run in journal.runs()] == [2, 1, 1]


def deleting_a_run_leaves_the_others_as_they_are(journal: Journal) -> None:
    for run in ("r1", "r2", "r11"):
        journal.append(run, [*numbered("agent", 2, run=run), *numbered("agent/1.0", 2, run=run)])
    others = {run: journal.load(run) for run in ("r2", "r11")}
    assert journal.delete("r1")
    assert (journal.runs(), journal.load("r1")) == (["r2", "r11"], {})
    assert {run: journal.load(run) for run in ("r2", "r11")} == others


def runs_are_written_while_others_are_deleted(journal: Journal) -> None:
    barrier = Barrier(2, timeout=PATIENCE_S)

    def write() -> list[bool]:
        told = list[bool]()
        for row in numbered("agent", 40, run="kept"):
            barrier.wait()
            told.append(journal.append("kept", [row]))
        return told

    for number in range(40):
        journal.append(f"old {number}", numbered("agent", 3, run=f"old {number}"))
    with ThreadPoolExecutor(1) as pool, ExitStack() as failing:
        failing.callback(barrier.abort)
        writing = pool.submit(write)
        for number in range(40):
            barrier.wait()
            assert journal.delete(f"old {number}")
        assert writing.result() == [True] * 40
    assert journal.runs() == ["kept"]
    assert journal.load("kept") == {"agent": numbered("agent", 40, run="kept")}


JOURNAL_RULES: Final = rules_of(
    rules_for_cases(a_row_comes_back_byte_for_byte, RECORDS),
    strange_names_of_runs_and_strands_come_back,
    an_unknown_run_is_empty,
    appending_nothing_makes_no_run,
    one_append_carries_rows_of_several_strands,
    appending_the_same_rows_again_changes_nothing,
    a_row_named_twice_in_one_append_is_written_once,
    changing_what_was_loaded_leaves_the_journal_alone,
    closing_twice_is_fine,
    rules_for_cases(a_lost_append_writes_none_of_its_rows, LATE),
    a_row_that_breaks_its_strands_chain_is_lost,
    only_the_one_whose_last_row_is_new_gets_true,
    a_journal_goes_on_after_a_lost_append,
    of_eight_threads_at_one_place_exactly_one_wins,
    a_deleted_run_is_gone_and_can_begin_anew,
    deleting_an_unknown_run_changes_nothing,
    a_record_that_closes_a_strand_is_refused_once_that_has_grown,
    a_record_may_close_what_is_appended_with_it,
    a_key_of_that_name_in_an_output_closes_nothing,
)
"""What every journal must do."""
RULES_OF_SEVERAL_RUNS: Final = rules_of(
    runs_are_listed_oldest_first_and_kept_apart,
    deleting_a_run_leaves_the_others_as_they_are,
    runs_are_written_while_others_are_deleted,
)
"""What a journal that holds several runs must do besides."""
