"""The rows that a person appends: decisions, messages, and who paused, resumed or cancelled a run. Pure."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from agent_core.decisions import NAMES, Approve, Decision, Deny, Edit, Fail, Retry, Skip, encode_decision
from agent_core.errors import DecisionError, DecisionTaken
from agent_core.journal.chain import is_closed, is_finished
from agent_core.journal.operations import Slot
from agent_core.journal.path import parent_of, root_of
from agent_core.journal.record import Record, Row, Tape, chain_row, genesis
from utools.schema.json_value import NotJson, as_json
from utools.secrets.redaction import Redactor

CONTROL: Final = "control"
"""The strand next to a run's own strands that says who stopped the run and let it go on, and when."""
Control = Literal["pause", "resume", "cancel"]
Role = Literal["user", "assistant"]
"""Who speaks in a message that somebody adds to a run."""
Decisions = Mapping[tuple[str, int], Decision]
"""Decisions by (strand, n) of the `waiting_calls` record that each answers."""


def decision_rows(tape: Tape, decisions: Decisions, *, by: str, at: str, redactor: Redactor | None = None) -> list[Row]:
    """The `resolved` rows for these decisions; DecisionError for one that fits nothing that waits."""
    rows: list[Row] = []
    key: Any  # a caller may give anything
    for key, decision in decisions.items():
        match key:
            case (str(strand), int(n)):
                rows.append(_decision_row(tape, strand, n, _to_journal(decision, redactor), by, at))
            case _:
                raise DecisionError(f"a decision belongs under (strand, n), not under {key!r}")
    return rows


def _to_journal(decision: Any, redactor: Redactor | None) -> Decision:
    """The decision as a journal can hold it, without secrets."""
    match decision:
        case Edit(dict(args), schema=schema):
            try:
                plain = as_json(args)
            except NotJson as error:
                raise DecisionError(f"the edited arguments are not JSON: {error}") from None
            return Edit(plain if redactor is None else redactor.value(plain), schema=schema)
        case Deny(str(message)):
            plain = message.encode("utf-8", "backslashreplace").decode()
            return Deny(plain if redactor is None else redactor.text(plain))
        case Approve() | Retry() | Skip() | Fail():
            return decision
        case _:
            expected = "Approve(), Deny(text), Edit({…}), Retry(), Skip() or Fail()"
            raise DecisionError(f"{decision!r} is no decision; write {expected}")


def waiting_calls(tape: Tape) -> list[Record]:
    """What waits for a person, in order of strands: {strand, n, reason, tool, args, origins?, message?}."""
    last = {path: rows[-1] for path, rows in sorted(tape.items()) if rows and not is_closed(tape, path)}
    records = {path: row.record() for path, row in last.items()}
    told = ("reason", "tool", "args", "origins", "message")
    return [
        {"strand": path, "n": last[path].n, **{key: record[key] for key in told if key in record}}
        for path, record in records.items()
        if record["kind"] == "waiting" and "tool" in record
    ]


def start_of(tape: Tape, strand: str) -> Record:
    """How the run began that a strand belongs to."""
    while strand not in tape or tape[strand][0].record()["kind"] != "run_started":
        strand = parent_of(strand)
    return tape[strand][0].record()


def control_row(run: str, tape: Tape, word: Control, *, by: str, at: str) -> Row:
    """The row that says who stops a run, or lets it go on."""
    return _next_row(run, tape, {"kind": "resolved", "decision": word, "by": by, "at": at})


def message_row(run: str, tape: Tape, message: Record, *, by: str, at: str) -> Row:
    """The row of a message, {role, content}, that somebody adds to a run."""
    return _next_row(run, tape, {"kind": "message", **message, "by": by, "at": at})


def _next_row(run: str, tape: Tape, record: Record) -> Row:
    rows = tape.get(CONTROL, [])
    return chain_row(CONTROL, len(rows), rows[-1].hash if rows else genesis(run, CONTROL), record)


def last_control(tape: Tape) -> str | None:
    """The last request about a run: pause, resume or cancel; None when there was none."""
    records = (row.record() for row in reversed(tape.get(CONTROL, [])))
    return next((str(record["decision"]) for record in records if record["kind"] == "resolved"), None)


def unread_messages(tape: Tape) -> list[Record]:
    """The messages that were added to a run and that no agent has read, {role, content, by, n} each."""
    added = [row for row in tape.get(CONTROL, []) if row.kind == "message"]
    received = [row.record() for rows in tape.values() for row in rows if added and row.kind == "received"]
    read = {message.get("n") for record in received for message in record["messages"]}
    return [read_message(row) for row in added if row.n not in read]


def read_message(row: Row) -> Record:
    """A message that was added to a run, as an agent receives it."""
    record = row.record()
    return {**{key: record[key] for key in ("role", "content", "by")}, "n": row.n}


def cancel_rows(tape: Tape, *, at: str) -> list[Row]:
    """The rows that end all waiting, since the run is to be cancelled."""
    ends = [tape[entry["strand"]][-1] for entry in waiting_calls(tape)]
    return [Slot(row.path, row.n + 1, row.hash).row({"kind": "cancelled", "at": at}) for row in ends]


def _decision_row(tape: Tape, strand: str, n: int, decision: Decision, by: str, at: str) -> Row:
    rows = tape.get(strand, [])
    record = rows[n].record() if 0 <= n < len(rows) else None
    if record is None or record["kind"] != "waiting" or "tool" not in record:
        raise DecisionError(f"nothing waits at {strand}:{n}; {_list_waiting(tape)}")
    if is_closed(tape, strand):
        ended = "this run" if is_finished(tape, root_of(strand)) else "the run that this call belongs to"
        kind = DecisionTaken if len(rows) > n + 1 else DecisionError
        raise kind(f"{ended} has ended; nothing in it can be decided any more")
    if len(rows) > n + 1:
        raise DecisionTaken(f"{strand}:{n} is decided already, or was cancelled")
    in_doubt = record["reason"] == "in_doubt"
    if in_doubt == isinstance(decision, Approve | Deny | Edit):
        expected = "retry, skip or fail" if in_doubt else "approve, deny or edit"
        raise DecisionError(f"{strand}:{n} waits for {expected}, not {NAMES[type(decision)]}")
    return Slot(strand, n + 1, rows[n].hash).row({"kind": "resolved", **encode_decision(decision), "by": by, "at": at})


def _list_waiting(tape: Tape) -> str:
    slots = [f"{entry['strand']}:{entry['n']}" for entry in waiting_calls(tape)]
    return f"waiting: {', '.join(slots)}" if slots else "nothing in this run waits"
