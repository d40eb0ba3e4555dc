"""What a fork would do once more: the writes that it leaves out, and where their approvals are asked again. Pure."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from agent_core.effects import Json
from agent_core.errors import DefinitionError
from agent_core.journal.path import item, last_segment, parent_of, parse_segment
from agent_core.journal.record import Record, Row, Tape

Place = tuple[str, int]
"""A strand, and the number of a record in it."""


class MadeWrite(NamedTuple):
    """A write that was made, or may have been: the record that asked for it, and what was called."""

    strand: str
    n: int
    tool: str
    args: Json

    def __str__(self) -> str:
        return f"{self.strand}:{self.n} {self.tool}"


def find_repeats(source: Tape, forked: Tape) -> list[MadeWrite]:
    """The writes of a run that a fork of it does not have: whoever goes on with the fork may make them again."""
    return [write for path, rows in source.items() for write in _made_writes(path, rows, len(forked.get(path, ())))]


def _made_writes(path: str, rows: list[Row], kept: int) -> Iterator[MadeWrite]:
    """The writes of a strand whose answers are not among the first `kept` rows."""
    last: MadeWrite | None = None
    for row in rows:
        record = row.record()
        if _is_write(record):
            last = MadeWrite(path, row.n, record["tool"], record["args"])
        elif last is not None and record["kind"] in ("answered", "waiting", "cancelled"):
            if row.n >= kept:
                yield last
            last = None
    if last is not None:
        yield last


def _is_write(record: Record) -> bool:
    return bool(record["kind"] == "asked" and record["ask"] == "tool" and record["effect"] == "write")


def before_approval(tape: Tape, place: Place) -> list[Place]:
    """The place itself or, where a person had let through what is done there, that person's decisions.

    So whatever is done again is approved again; who approved a nested run approved what goes on in it. DefinitionError
    where calls were approved together and a write among them was answered before the place: nobody can be asked about
    the others without making it twice.
    """
    strand, n = place
    rows = tape[strand]
    if _is_item(strand) and rows[0].record()["kind"] == "asked":  # what all items of the batch follow from
        n, strand = parse_segment(last_segment(strand)).number, parent_of(strand)
        rows = tape[strand]
    if not _is_within_call(rows, n):
        return [place]
    step = _records_of_step(rows, n)
    decided = next((k for k, record in step if record["kind"] == "resolved"), None)
    if decided is None:
        return [place]
    since = [record for k, record in step if k > decided]
    if any(_is_write(asked) and answered["kind"] == "answered" for asked, answered in pairwise(since)):
        message = f"these calls were approved together, and one that writes was made; fork at {strand}:{decided}"
        raise DefinitionError(f"{message}, where all of them are decided again", where=f"{strand}:{n}")
    together = rows[decided - 1].record().get("tools", ())
    return [(item(strand, decided - 1, index), 1) for index in range(len(together))] or [(strand, decided)]


def _is_item(strand: str) -> bool:
    return "/" in strand and parse_segment(last_segment(strand)).name is None


def _is_within_call(rows: list[Row], n: int) -> bool:
    """Whether a call is made at this record, which a person may have let through.

    None is at a question and its answer, at what was judged of it, at an end, and at the decision itself.
    """
    record = rows[n].record()
    if record["kind"] in ("answered", "cancelled") and n:
        record = rows[n - 1].record()
    if record["kind"] == "decided":
        return bool(record.get("edited"))
    return record["kind"] not in ("resolved", "received", "run_finished") and record.get("ask") != "model"


def _records_of_step(rows: list[Row], n: int) -> list[tuple[int, Record]]:
    """The records before n, from the judgement of the reply that they follow from; each with its number."""
    step: list[tuple[int, Record]] = []
    for row in reversed(rows[:n]):
        record = row.record()
        step.append((row.n, record))
        if record["kind"] == "decided" and not record.get("edited"):
            break
    return step[::-1]
