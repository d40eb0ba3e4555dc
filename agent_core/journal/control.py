"""The rows that a caller appends: decisions, messages, signals, and who paused, resumed or cancelled a run. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from agent_core.decisions import (
    DECISIONS,
    NAMES,
    Approve,
    Decision,
    Deny,
    Done,
    Edit,
    Fail,
    Retry,
    Skip,
    encode_decision,
)
from agent_core.effects import ReadMessage, Signalled
from agent_core.encryption.record_cipher import Encrypt
from agent_core.errors import DecisionError, DecisionTaken
from agent_core.journal.chain import is_closed, is_finished
from agent_core.journal.facts import Received, Resolved, Sent, Waiting
from agent_core.journal.operations import Slot
from agent_core.journal.path import CONTROL, root_of
from agent_core.journal.reader import read_record
from agent_core.journal.record import Record, Row, Tape, chain_row, genesis
from agent_core.journal.started import read_started, run_strand
from agent_core.outputs import WaitingCall
from agent_core.records import AddedMessage, Started
from utools.json_text import digest_json
from utools.schema.json_value import NotJson, as_json
from utools.secrets.redaction import Redactor

Control = Literal["pause", "resume", "cancel"]
Role = Literal["user", "assistant"]
"""Who speaks in a message that somebody adds to a run."""
Decisions = Mapping[tuple[str, int], Decision]
"""Decisions by (strand, n) of the `waiting_calls` record that each answers."""


def check_mapping(decisions: Any) -> None:
    """DecisionError for decisions that are not by the place of their call."""
    if not isinstance(decisions, Mapping):
        raise DecisionError(f"decisions are a mapping such as {{(strand, n): Approve()}} (got {decisions!r})")


def decision_rows(
    tape: Tape,
    decisions: Decisions,
    *,
    by: str,
    at: str,
    redactor: Redactor | None = None,
    encrypt: Encrypt | None,
) -> list[Row]:
    """Return the `resolved` rows for these decisions; DecisionError for one that fits nothing that waits."""
    rows: list[Row] = []
    key: Any  # a caller may give anything
    for key, decision in decisions.items():
        match key:
            case (str(strand), int(n)):
                rows.append(_decision_row(tape, strand, n, _to_journal(decision, redactor), by, at, encrypt))
            case _:
                raise DecisionError(f"a decision belongs under (strand, n), not under {key!r}")
    return rows


def unrecorded_decisions(tape: Tape, decisions: Decisions, *, by: str, redactor: Redactor | None) -> Decisions:
    """Return those that the journal does not hold yet: an attempt that is made again brings what it brought before."""
    return {key: each for key, each in decisions.items() if not _is_recorded(tape, key, each, by, redactor)}


def _is_recorded(tape: Tape, key: Any, decision: Any, by: str, redactor: Redactor | None) -> bool:
    match key:
        case (str(strand), int(n)) if 0 <= n < len(rows := tape.get(strand, [])) - 1 and read_waiting(rows[n]):
            record = rows[n + 1].record()
        case _:
            return False
    if record.get("by") != by or record.get("decision") not in DECISIONS:
        return False
    told = encode_decision(_to_journal(decision, redactor))
    return digest_json(told) == digest_json({name: record.get(name) for name in told})


def _to_journal(decision: Any, redactor: Redactor | None) -> Decision:
    """Return the decision as a journal can hold it, without secrets."""
    match decision:
        case Edit(dict(args), schema=schema):
            try:
                plain = as_json(args)
            except NotJson as error:
                raise DecisionError(f"the edited arguments are not JSON: {error}", where="args") from None
            return Edit(plain if redactor is None else redactor.value(plain), schema=schema)
        case Deny(str(message)):
            plain = message.encode("utf-8", "backslashreplace").decode()
            return Deny(plain if redactor is None else redactor.text(plain))
        case Done(output):
            try:
                plain = as_json(output)
            except NotJson as error:
                raise DecisionError(f"the output of what was done is not JSON: {error}", where="output") from None
            return Done(plain if redactor is None else redactor.value(plain))
        case Approve() | Retry() | Skip() | Fail():
            return decision
        case _:
            expected = "Approve(), Deny(text), Edit({…}), Retry(), Skip(), Fail() or Done(output)"
            raise DecisionError(f"{decision!r} is no decision; write {expected}")


def waiting_calls(tape: Tape) -> list[WaitingCall]:
    """Return what waits, for a person or for an event, in order of strands."""
    ends = [rows[-1] for path, rows in sorted(tape.items()) if rows and not is_closed(tape, path)]
    return [_describe_waiting(row, waiting) for row in ends if (waiting := read_waiting(row)) is not None]


def calls_for_person(waiting: Iterable[WaitingCall]) -> list[WaitingCall]:
    """Return those of the waiting calls about which a person has to decide."""
    return [each for each in waiting if each["reason"] != "awaiting_event"]


def due_of(waiting: Iterable[WaitingCall]) -> str | None:
    """Return when the earliest wait for a time ends, in ISO 8601, UTC; None without one."""
    return min((each["until"] for each in waiting if "until" in each), default=None)


def describe_event(wait: Mapping[str, Any]) -> str:
    """Return for what a node waits, as in "for the signal 'paid', until 2026-12-01T08:00:00Z"."""
    signal = [f"for the signal {wait['signal']!r}"] if "signal" in wait else []
    return ", ".join([*signal, *([f"until {wait['until']}"] if "until" in wait else [])])


def read_waiting(row: Row) -> Waiting | None:
    """Return what a row says waits, a call for a person or a node for an event; None for any other row."""
    waiting = read_record(row.record()) if row.kind == "waiting" else None
    return waiting if isinstance(waiting, Waiting) and waiting.tool is not None else None


def _describe_waiting(row: Row, waiting: Waiting) -> WaitingCall:
    call: WaitingCall = {
        "strand": row.path,
        "n": row.n,
        "reason": waiting.reason,
        "tool": str(waiting.tool),
        "args": waiting.args,
    }
    if waiting.origins is not None:
        call["origins"] = dict(waiting.origins)
    if waiting.message:
        call["message"] = waiting.message
    if waiting.until is not None:
        call["until"] = waiting.until
    if waiting.signal is not None:
        call["signal"] = waiting.signal
    return call


def start_of(tape: Tape, strand: str) -> Started:
    """Return how the run began that a strand belongs to."""
    return cast(Started, read_started(tape[run_strand(tape, strand)][0]))


def control_row(run: str, tape: Tape, word: Control, *, by: str, at: str, encrypt: Encrypt | None) -> Row:
    """Return the row that says who stops a run, or lets it continue."""
    return _next_row(run, tape, {"kind": "resolved", "decision": word, "by": by, "at": at}, encrypt)


def message_row(run: str, tape: Tape, message: Record, *, by: str, at: str, encrypt: Encrypt | None) -> Row:
    """Return the row of a message, {role, content}, that somebody adds to a run."""
    return _next_row(run, tape, {"kind": "message", **message, "by": by, "at": at}, encrypt)


def signal_row(run: str, tape: Tape, name: str, data: Any, *, by: str, at: str, encrypt: Encrypt | None) -> Row:
    """Return the row of a signal that somebody sends to a run."""
    return _next_row(run, tape, {"kind": "signal", "name": name, "data": data, "by": by, "at": at}, encrypt)


def _next_row(run: str, tape: Tape, record: Record, encrypt: Encrypt | None) -> Row:
    rows = tape.get(CONTROL, [])
    return chain_row(CONTROL, len(rows), rows[-1].hash if rows else genesis(run, CONTROL), record, encrypt)


def last_control(tape: Tape) -> str | None:
    """Return the last request about a run: pause, resume or cancel; None when there was none."""
    facts = (read_record(row.record()) for row in reversed(tape.get(CONTROL, [])))
    return next((fact.decision for fact in facts if isinstance(fact, Resolved)), None)


def unread_messages(tape: Tape) -> list[ReadMessage]:
    """Return the messages that were added to a run and that no agent has read."""
    added = [row for row in tape.get(CONTROL, []) if row.kind == "message"]
    received = [row for rows in tape.values() for row in rows if added and row.kind == "received"]
    read = {message.get("n") for row in received for message in read_messages(row)}
    return [read_message(row) for row in added if row.n not in read]


def untaken_signals(tape: Tape) -> list[Signalled]:
    """Return the signals that were sent to a run and that no node has taken, the oldest first."""
    sent = [row for row in tape.get(CONTROL, []) if row.kind == "signal"]
    resolved = [row for rows in tape.values() for row in rows if sent and row.kind == "resolved"]
    taken = {fact.sent for row in resolved if isinstance(fact := read_record(row.record()), Resolved)}
    return [read_signal(row) for row in sent if row.n not in taken]


def open_rows(run: str, tape: Tape, encrypt: Encrypt | None = None) -> list[Row]:
    """Return the messages and signals that nothing in a recorded run has taken, as rows of `run`, which goes on from
    there."""
    left = {each.n for each in untaken_signals(tape)} | {each.get("n") for each in unread_messages(tape)}
    carried: Tape = {CONTROL: []}
    for row in tape.get(CONTROL, []):
        if row.n in left:
            carried[CONTROL].append(_next_row(run, carried, row.record(), encrypt))
    return carried[CONTROL]


def read_signal(row: Row) -> Signalled:
    """Return a signal that was sent to a run, as a node takes it."""
    fact = read_record(row.record())
    assert isinstance(fact, Sent)
    return Signalled(fact.name, fact.data, fact.by, fact.at, row.n)


def read_messages(row: Row) -> Sequence[ReadMessage]:
    """Return the messages that an agent received by a row."""
    fact = read_record(row.record())
    return fact.messages if isinstance(fact, Received) else ()


def read_message(row: Row) -> ReadMessage:
    """Return a message that was added to a run, as an agent receives it."""
    record = cast(AddedMessage, row.record())
    return {"role": record["role"], "content": record["content"], "by": record["by"], "n": row.n}


def cancel_rows(tape: Tape, *, at: str, encrypt: Encrypt | None) -> list[Row]:
    """Return the rows that end all waiting, since the run is to be cancelled."""
    ends = [tape[entry["strand"]][-1] for entry in waiting_calls(tape)]
    return [Slot(row.path, row.n + 1, row.hash, encrypt).row({"kind": "cancelled", "at": at}) for row in ends]


def _decision_row(
    tape: Tape, strand: str, n: int, decision: Decision, by: str, at: str, encrypt: Encrypt | None
) -> Row:
    rows = tape.get(strand, [])
    waiting = read_waiting(rows[n]) if 0 <= n < len(rows) else None
    if waiting is None:
        raise DecisionError(f"nothing waits at {strand}:{n}; {_list_waiting(tape)}", where="at")
    if is_closed(tape, strand):
        ended = "this run" if is_finished(tape, root_of(strand)) else "the run that this call belongs to"
        kind = DecisionTaken if len(rows) > n + 1 else DecisionError
        raise kind(f"{ended} has ended; nothing in it can be decided any more")
    if len(rows) > n + 1:
        raise DecisionTaken(f"{strand}:{n} is decided already, or was cancelled", where="at")
    if not waiting.is_for_person:
        event = describe_event(_describe_waiting(rows[n], waiting))
        raise DecisionError(f"{strand}:{n} waits {event}, not for a decision; {_list_waiting(tape)}", where="at")
    in_doubt = waiting.reason == "in_doubt"
    if in_doubt == isinstance(decision, Approve | Deny | Edit):
        expected = "retry, skip, fail or done" if in_doubt else "approve, deny or edit"
        raise DecisionError(f"{strand}:{n} waits for {expected}, not {NAMES[type(decision)]}", where="decision")
    record = {"kind": "resolved", **encode_decision(decision), "by": by, "at": at}
    return Slot(strand, n + 1, rows[n].hash, encrypt).row(record)


def _list_waiting(tape: Tape) -> str:
    slots = [f"{entry['strand']}:{entry['n']}" for entry in calls_for_person(waiting_calls(tape))]
    return f"waiting: {', '.join(slots)}" if slots else "no call in this run waits for a decision"
