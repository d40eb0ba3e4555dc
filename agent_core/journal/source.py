"""Where a recorded run is read from: a file, a journal or rows."""

import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from agent_core.errors import Damaged, JournalError
from agent_core.journal import jsonl_format as lines
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.jsonl import JsonlJournal, read_file
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.sqlite import SqliteJournal, is_database
from agent_core.journal.store import Journal

EXPECTED = 'neither the lines of one, {"run", "strand", "n", "hash", "record"} each, nor an SQLite database'
"""What a file that is no journal lacks."""
REWRITTEN = (
    "was written anew, with other line ends, white space or escapes, or a byte order mark, as mail and editors do: "
    "only the bytes that were exported can be checked"
)
Source = str | os.PathLike[str] | Journal | Iterable[Row]
"""The path of a JSONL or SQLite file, a journal, or the rows of one run."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that no journal wrote, or that a newer version did (`is_newer`), and its position as far as known."""

    why: str
    strand: str | None = None
    n: int | None = None
    line: int | None = None
    is_newer: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """One run of a source, and the store that it is in. `lines` has the line numbers of a JSONL file, row for row like
    `tape`."""

    run: str
    tape: Tape
    lines: dict[str, list[int]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    torn: bool = False
    identity: StoreIdentity | None = None


def load_run(source: Source, run_id: str | None = None) -> tuple[str, Tape]:
    """Return the id and the rows of a run, not yet checked against their chains; a torn tail is left out.

    `run_id` is needed for rows, and where a source holds several runs. Raises `JournalError` when there is
    no such source or run, or when it cannot be read.
    """
    contents = open_source(source, run_id)
    if contents.faults:
        raise JournalError(contents.faults[0].why)
    return contents.run, contents.tape


def open_source(source: Source, run_id: str | None = None, identity: StoreIdentity | None = None) -> Contents:
    """Return what `load_run` gives, with the damage reported instead of raised. Whoever opens many runs of one journal
    gives the `identity` of its store, which is read for each run otherwise."""
    match source:
        case str() | os.PathLike():
            return _read_file_run(Path(source), run_id)
        case JsonlJournal():
            return _read_file_run(source.path, run_id)
        case Iterable():
            if run_id is None:
                raise JournalError("rows do not tell which run they belong to: give run_id")
            return Contents(run_id, by_path(source))
        case _ if not hasattr(source, "runs"):
            raise JournalError(f"a source is a journal, the path of its file, or the rows of a run, not {source!r}")
        case _:
            return _read_journal(source, "the journal", run_id, identity)


def _read_file_run(path: Path, run_id: str | None) -> Contents:
    if not os.path.exists(path):
        raise JournalError(f"there is no journal {path}")
    if not is_database(path):
        return _read_lines(path, run_id)
    with closing(SqliteJournal(path)) as journal:
        return _read_journal(journal, str(path), run_id)


def _read_journal(journal: Journal, name: str, run_id: str | None, identity: StoreIdentity | None = None) -> Contents:
    try:
        runs = journal.runs() if run_id is None else [run_id]
        tape = journal.load(runs[0]) if len(runs) == 1 else {}
        identity = (identity or journal.identity) if tape else None
    except Damaged as error:
        return Contents(run_id or "", {}, faults=(Fault(str(error), error.path, error.n),))
    except JournalError as error:
        return Contents(run_id or "", {}, faults=(Fault(str(error)),))
    if not tape:
        raise JournalError(_explain_missing(name, run_id, journal.runs()))
    return Contents(runs[0], tape, identity=identity)


def _read_lines(path: Path, run_id: str | None) -> Contents:
    data = read_file(path)
    found = list(lines.read_lines(data))
    runs = list(dict.fromkeys([line.run for line in found if line.row]))
    if run_id is not None and runs and run_id not in runs:
        raise JournalError(_explain_missing(str(path), run_id, runs))
    run = run_id if run_id is not None else next(iter(runs), "")
    tape: Tape = {}
    numbers: dict[str, list[int]] = {}
    faults: list[Fault] = []
    texts: list[bytes] = []
    strand, rows, places = None, list[Row](), list[int]()
    for line in found:
        if line.row is None:
            texts = texts or data.split(b"\n")
            why = _explain_line(path, texts[line.number - 1], line.number, is_journal=bool(runs))
            faults.append(Fault(why, line=line.number))
        elif line.run != run:
            why = f"line {line.number} of {path} belongs to another run, {line.run!r}"
            faults.append(Fault(why, line.row.path, line.row.n, line.number))
        else:
            if line.row.path != strand:
                strand = line.row.path
                rows, places = tape.setdefault(strand, []), numbers.setdefault(strand, [])
            rows.append(line.row)
            places.append(line.number)
    return Contents(run, tape, numbers, tuple(faults), torn=data[-1:] not in (b"", b"\n"))


def _explain_line(path: Path, text: bytes, number: int, *, is_journal: bool) -> str:
    """Return what is wrong with a line that is not as a journal writes it."""
    if _is_rewritten(text):
        return f"line {number} of {path} {REWRITTEN}"
    return f"line {number} of {path} is no journal line" if is_journal else f"{path} is no journal: it holds {EXPECTED}"


def _is_rewritten(line: bytes) -> bool:
    """Return whether a line says all that one of a journal does, though in other bytes."""
    try:
        found = orjson.loads(line.removeprefix(BOM_UTF8))
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and found.keys() >= {"run", "strand", "n", "hash", "record"}


def _explain_missing(name: str, run_id: str | None, runs: Sequence[str]) -> str:
    some = ", ".join(runs[:5]) + (", …" if len(runs) > 5 else "")
    if not runs:
        return f"{name} holds no run"
    if run_id is not None:
        return f"{name} holds no run {run_id!r}; it holds {some}"
    return f"{name} holds {len(runs)} runs, say which by run_id: {some}"
