"""What a journal says of the calls of a run: which were refused, which wrote, and what the tools answered. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from agent_core.journal.path import item
from agent_core.journal.record import Record, Tape
from engine_shim.evals.cases import AWAITING
from utools.tool import Effect


class Refusal(NamedTuple):
    """A call that was not let through, and the finish reason that stands for why."""

    tool: str
    args: Any
    reason: str


class Made(NamedTuple):
    """A call that was made, and the record of its answer; None where there is none."""

    tool: str
    args: dict[str, Any]
    effect: Effect
    answer: Record | None


def find_refused(tape: Tape) -> list[Refusal]:
    """The calls that were refused, or wait for a person, in every strand."""
    return [
        Refusal(call["tool"], call["args"], AWAITING if call["verdict"] == "wait" else call["reason"])
        for record in _records(tape)
        for call in (record.get("calls", ()) if record["kind"] == "decided" else ())
        if call["verdict"] != "run"
    ]


def find_writes(tape: Tape) -> list[str]:
    """The tools of the calls that wrote, or may have."""
    return [each["tool"] for each in _records(tape) if _is_call(each) and each["effect"] == "write"]


def find_made(tape: Tape, strand: str) -> Iterator[Made]:
    """The calls of one agent that were made, in its order."""
    records = [row.record() for row in tape.get(strand, ())]
    for n, record in enumerate(records):
        if _is_call(record):
            later = (each for each in records[n + 1 :] if each["kind"] in ("answered", "resolved", "cancelled"))
            answer = next(later, None)
            yield Made(record["tool"], record["args"], record["effect"], answer)
        elif record["kind"] == "asked" and record["ask"] == "batch":
            for index in range(len(record["tools"])):
                yield from find_made(tape, item(strand, n, index))


def _is_call(record: Record) -> bool:
    return bool(record["kind"] == "asked" and record["ask"] == "tool")


def _records(tape: Tape) -> Iterator[Record]:
    return (row.record() for rows in tape.values() for row in rows)
