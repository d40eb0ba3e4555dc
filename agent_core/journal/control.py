"""A person's decisions, as the records that carry them. Pure: who appends them is the caller's affair."""

from collections.abc import Mapping
from typing import Final, Literal

from agent_core.effects import Approve, Decision, Deny, Edit, Fail, Retry, Skip, decision_record
from agent_core.errors import DecisionError
from agent_core.journal.operations import Slot
from agent_core.journal.record import Record, Row, Tape, chained, genesis
from utools.jsonvalue import NotJson, as_json
from utools.secrets.redaction import Redactor

CONTROL: Final = "control"
"""The strand beside a run's own in which stands who stopped it and let it go on, and when."""
Control = Literal["pause", "resume", "cancel"]
Decisions = Mapping[tuple[str, int], Decision]
"""Decisions by (strand, n) of the `waiting` record that each answers."""


def decided(tape: Tape, decisions: Decisions, *, by: str, at: str, redactor: Redactor | None = None) -> list[Row]:
    """The `resolved` rows for these decisions; DecisionError for one that fits nothing that waits, or is none."""
    rows = []
    for place, decision in decisions.items():
        match place:
            case (str(strand), int(n)):
                rows.append(_resolved(tape, strand, n, _sound(decision, redactor), by, at))
            case _:
                raise DecisionError(f"a decision stands under (strand, n), not under {place!r}")
    return rows


def _sound(decision: Decision, redactor: Redactor | None) -> Decision:
    """The decision as a journal can hold it, without secrets."""
    match decision:
        case Edit(dict(args)):
            try:
                plain = as_json(args)
            except NotJson as error:
                raise DecisionError(f"the edited arguments are not JSON: {error}") from None
            return Edit(plain if redactor is None else redactor.value(plain))
        case Deny(str(message)):
            return Deny(message.encode("utf-8", "backslashreplace").decode())
        case Approve() | Retry() | Skip() | Fail():
            return decision
        case _:
            told = "Approve(), Deny(text), Edit({…}), Retry(), Skip() or Fail()"
            raise DecisionError(f"{decision!r} is no decision; write {told}")


def waiting(tape: Tape) -> list[Record]:
    """What waits for a person, in order of strands: {strand, n, reason, tool, args}."""
    last = {path: rows[-1] for path, rows in sorted(tape.items()) if rows}
    records = {path: row.record() for path, row in last.items()}
    return [
        {"strand": path, "n": last[path].n, "reason": record["reason"], "tool": record["tool"], "args": record["args"]}
        for path, record in records.items()
        if record["kind"] == "waiting" and "tool" in record
    ]


def controlled(run: str, tape: Tape, word: Control, *, by: str, at: str) -> Row:
    """The row that says who stops a run, or lets it go on."""
    rows = tape.get(CONTROL, [])
    record = {"kind": "resolved", "decision": word, "by": by, "at": at}
    return chained(CONTROL, len(rows), rows[-1].hash if rows else genesis(run, CONTROL), record)


def withdrawn(tape: Tape, *, at: str) -> list[Row]:
    """The rows that end all waiting, since the run is to be cancelled."""
    ends = [tape[entry["strand"]][-1] for entry in waiting(tape)]
    return [Slot(row.path, row.n + 1, row.hash).row({"kind": "cancelled", "at": at}) for row in ends]


def _resolved(tape: Tape, strand: str, n: int, decision: Decision, by: str, at: str) -> Row:
    rows = tape.get(strand, [])
    record = rows[n].record() if 0 <= n < len(rows) else None
    if record is None or record["kind"] != "waiting" or "tool" not in record:
        raise DecisionError(f"nothing waits at {strand}:{n}; {_what_waits(tape)}")
    if tape[strand.partition("/")[0]][-1].record()["kind"] == "run_finished":
        raise DecisionError("this run has ended; nothing in it can be decided any more")
    if len(rows) > n + 1:
        raise DecisionError(f"{strand}:{n} is decided already, or was cancelled")
    in_doubt = record["reason"] == "in_doubt"
    if in_doubt == isinstance(decision, Approve | Deny | Edit):
        fitting = "retry, skip or fail" if in_doubt else "approve, deny or edit"
        raise DecisionError(f"{strand}:{n} waits for {fitting}, not {type(decision).__name__.lower()}")
    told = {"kind": "resolved", **decision_record(decision), "by": by, "at": at}
    return Slot(strand, n + 1, rows[n].hash).row(told)


def _what_waits(tape: Tape) -> str:
    places = [f"{entry['strand']}:{entry['n']}" for entry in waiting(tape)]
    return f"waiting: {', '.join(places)}" if places else "nothing in this run waits"
