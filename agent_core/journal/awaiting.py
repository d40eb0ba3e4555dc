"""Waiting for a time or a signal: what is written when a node waits, and when what it waits for has come. Pure."""

from collections.abc import Generator
from typing import Any

from agent_core.effects import AwaitEvent, Cancelled, Elapsed, Event, Signalled, Stop, Suspended
from agent_core.journal.operations import Listen, Operation
from agent_core.journal.record import Record
from agent_core.journal.strand import Strand
from agent_core.outputs import WaitingCall
from agent_core.records import EventResolved, EventWaiting, SignalTaken


def await_event(strand: Strand, effect: AwaitEvent) -> Generator[Operation, Any, Event | Stop]:
    """Return what came, from the tape or from the driver; Suspended where the run is let go until it comes."""
    n = strand.n
    strand.write(_encode_wait(effect))
    record = strand.take("resolved", "cancelled")
    if record is not None:
        return decode_event(record)
    came: Event | Cancelled | None = yield Listen(strand.flush(), strand.slot(), effect.until, effect.signal)
    match came:
        case None:
            return Suspended("awaiting_event", (_describe_wait(effect, strand.path, n),))
        case Cancelled(at):
            strand.write({"kind": "cancelled", "at": at})
        case Elapsed() | Signalled():
            strand.write(encode_event(came))
    return came


def _encode_wait(effect: AwaitEvent) -> EventWaiting:
    record: EventWaiting = {
        "kind": "waiting",
        "reason": "awaiting_event",
        "tool": effect.call.tool,
        "args": effect.call.args,
    }
    if effect.until is not None:
        record["until"] = effect.until
    if effect.signal is not None:
        record["signal"] = effect.signal
    return record


def _describe_wait(effect: AwaitEvent, strand: str, n: int) -> WaitingCall:
    """Return what a caller reads of a wait."""
    waiting: WaitingCall = {
        "strand": strand,
        "n": n,
        "tool": effect.call.tool,
        "args": effect.call.args,
        "reason": "awaiting_event",
    }
    if effect.until is not None:
        waiting["until"] = effect.until
    if effect.signal is not None:
        waiting["signal"] = effect.signal
    return waiting


def encode_event(event: Event) -> EventResolved:
    """Return the `resolved` record of an event; `decode_event` is its inverse."""
    if isinstance(event, Elapsed):
        return {"kind": "resolved", "decision": "elapsed", "at": event.at}
    record: SignalTaken = {
        "kind": "resolved",
        "decision": "signalled",
        "signal": event.name,
        "data": event.data,
        "by": event.by,
        "at": event.at,
    }
    if event.n is not None:
        record["n"] = event.n
    return record


def decode_event(record: Record) -> Event | Cancelled:
    """Return what a `resolved` or `cancelled` record after a wait says."""
    match record:
        case {"kind": "cancelled"}:
            return Cancelled(record["at"])
        case {"decision": "elapsed"}:
            return Elapsed(record["at"])
        case _:
            return Signalled(record["signal"], record["data"], record["by"], record["at"], record.get("n"))
