"""What of two runs is compared: their records and results without times, heads, and what doubt had added.

A write in doubt leaves records behind that an undisturbed run has not: `waiting` and `resolved`, and, when it was
tried again, a second `asked`. They are folded away, and the strands that are named after later records renamed.
"""

from collections.abc import Iterator
from typing import Any

from agent_core.journal.approvals import settle_doubt
from agent_core.journal.record import Tape
from agent_core.outputs import Json
from agent_core.records import encode_answer

_TIMES = {
    "at",
    "seconds",
    "total_ms",
    "elapsed_ms",
    "timestamp",
    "started_at",
    "ended_at",
    "closes",
    "journal",
    "until",
}
Strands = dict[str, list[Json]]


def timeless(value: Any) -> Any:
    """The value without times, and without heads, which contain times."""
    match value:
        case {"kind": "run_finished", "output": _}:
            return timeless({key: each for key, each in value.items() if key != "output"})
        case dict():
            return {key: timeless(each) for key, each in value.items() if key not in _TIMES}
        case list():
            return [timeless(each) for each in value]
        case _:
            return value


def folded(tape: Tape) -> Strands:
    """The strands of a run as if nothing had ever been in doubt."""
    strands = {path: [row.record() for row in rows] for path, rows in tape.items()}
    walked = {path: list(_walked(records)) for path, records in strands.items()}
    places = {path: {n: new for new, (n, _) in enumerate(kept)} for path, kept in walked.items()}
    flows = {path for path, records in strands.items() if records[0].get("loop") == "flow"}
    renamed = {path: _renamed(path, places, flows) for path in strands}
    return {renamed[path]: [timeless(record) for _, record in kept] for path, kept in walked.items()}


def _walked(records: list[Json]) -> Iterator[tuple[int, Json]]:
    """The records that stay, each with the n of the one that it stands for."""
    n = 0
    while n < len(records):
        asked, *doubt = records[n : n + 3]
        if len(doubt) < 2 or doubt[0].get("reason") != "in_doubt":
            yield n, asked
            n += 1
        elif doubt[1]["kind"] == "cancelled":
            yield n, asked
            yield n + 2, doubt[1]
            n += 3
        elif doubt[1]["decision"] == "retry":
            n += 3
        else:
            yield n, asked
            yield n + 2, encode_answer(settle_doubt(doubt[1]))
            n += 3


def _renamed(path: str, places: dict[str, dict[int, int]], flows: set[str]) -> str:
    """The strand's name, had each record that a part of it is named after stood where it would have."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(path.split("/")[:depth])
        name, _, number = parts[depth].partition(".")
        if above in flows or above not in places:
            continue
        if name.isdecimal():
            parts[depth] = f"{places[above].get(int(name), name)}.{number}"
        else:
            parts[depth] = f"{name}.{places[above].get(int(number), number)}"
    return "/".join(parts)


def answered(run: str, tape: Tape) -> set[str]:
    """All that the journal holds an answer for: `STRAND INDEX` of questions, idempotency keys of calls."""
    known: set[str] = set()
    for path, rows in tape.items():
        records = [row.record() for row in rows]
        questions, n = 0, 0
        while n < len(records):
            if records[n]["kind"] != "asked" or records[n]["ask"] == "batch":
                n += 1
                continue
            name, end = f"{run}/{path}/{n}", _end(records, n)
            if records[n]["ask"] == "model":
                name, questions = f"{path} {questions}", questions + 1
            if end is not None:
                known.add(name)
            n = len(records) if end is None else end + 1
    return known


def _end(records: list[Json], n: int) -> int | None:
    """Where the act that is asked for at `n` came to its end; None when it has not yet."""
    for end in range(n + 1, len(records)):
        kind = records[end]["kind"]
        if kind in ("answered", "cancelled") or (kind == "resolved" and records[end]["decision"] != "retry"):
            return end
    return None
