"""copy_runs(): runs from one store into another, record for record, each read again and compared once it is there."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent_core.errors import Damaged, Newer, Unreadable
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.signature import Keys
from engine_shim.errors import DefinitionError, EngineError, RunNotFound
from engine_shim.store.beside_runs import copy_trigger_times
from engine_shim.store.callbacks import read_callback, save_callback
from engine_shim.store.compare import begins_with, find_break
from engine_shim.store.ledger_copy import Carried, carry_ledger, note_copy
from engine_shim.store.run_store import DatabaseRunStore, RunStore
from engine_shim.store.token_rows import copy_tokens


class DamagedCopy(EngineError):
    """The records that the store to copy to holds of a run are not as they were written."""


class OtherRecords(EngineError):
    """The store to copy to holds other records of a run: it continued there, or in the store that it is copied from."""


@dataclass(slots=True)
class Copied:
    """The ids of the runs that were copied, and that were there already. Left out are those that somebody drives, of
    which the target holds `other` records, or `damaged` ones, and those that are `unread` in the source, each with why:
    damaged, erased, or of a newer version. `waiting` are the copied ones that wait for a person."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    driven: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    ledger: Carried | None = None
    """What became of the ledger of the source; None where there was nothing to do."""


def copy_runs(
    source: RunStore, target: RunStore, runs: Iterable[str] | None = None, *, keys: Keys | None = None
) -> Copied:
    """Copy these runs, or all, with the ledger, the tokens and the times of triggers. What was interrupted continues
    when it is done again.

    The seals of the runs name the store where they were made; the target notes that, and signs it with `keys`.
    RunNotFound for a run that the source does not hold; the runs before it are copied then. DefinitionError with
    nothing copied where the stores are those of two tenants.
    """
    copied = Copied()
    _refuse_encrypted(source, target)
    if isinstance(source, DatabaseRunStore) and isinstance(target, DatabaseRunStore):
        _note_origin(source, target, keys)
        if runs is None:
            copy_trigger_times(source.database, target.database)
            copy_tokens(source.database, target.database)
            copied.ledger = carry_ledger(source.database, target.database)
    for run in list_all_runs(source) if runs is None else runs:
        _copy_one(source, target, run, copied)
    return copied


def _refuse_encrypted(*stores: RunStore) -> None:
    """DefinitionError for a store that is encrypted: its keys are bound to it."""
    for store in stores:
        if isinstance(store, DatabaseRunStore) and store.contents.is_encrypted:
            message = f"{store.database.name} is encrypted, and cannot be copied run by run; copy the database itself"
            raise DefinitionError(message, where="store")


def _copy_one(source: RunStore, target: RunStore, run: str, copied: Copied) -> None:
    if source.leases.holder(run):
        copied.driven.append(run)
        return
    try:
        is_new = _copy_run(source, target, run)
    except OtherRecords:
        copied.other.append(run)
        return
    except DamagedCopy:
        copied.damaged.append(run)
        return
    except (Damaged, Newer, Unreadable) as error:
        copied.unread[run] = error.why if isinstance(error, Newer) else str(error)
        return
    (copied.new if is_new else copied.known).append(run)
    if (entry := target.entry(run)) is not None and entry.status == "waiting":
        copied.waiting.append(run)


def _note_origin(source: DatabaseRunStore, target: DatabaseRunStore, keys: Keys | None) -> None:
    target.database.prepare()
    origin, own = source.journal.identity, target.journal.identity
    if origin is None or own is None or origin.store in ("", own.store):
        return
    if None not in (origin.tenant, own.tenant) and origin.tenant != own.tenant:
        message = f"the runs are those of the tenant {origin.tenant}, and the store to copy to is that of {own.tenant}"
        raise DefinitionError(message, where="store")
    note_copy(target.database, origin, own, keys)


def list_all_runs(store: RunStore) -> list[str]:
    """Return the ids of all runs, also of those that other programs wrote, the oldest first."""
    return list(dict.fromkeys([*store.journal.runs(), *(entry.run for entry in reversed(store.entries()))]))


def _copy_run(source: RunStore, target: RunStore, run: str) -> bool:
    """Return whether there was something to copy."""
    rows = [row for _, row in source.tail(run)]
    entry = source.entry(run)
    if not rows and entry is None:
        raise RunNotFound(run)
    tape = check_chains(run, _in_strands(rows))
    held = target.journal.load(run)
    if not begins_with(tape, held):
        if find_break(run, held) is not None:
            raise DamagedCopy(run)
        raise OtherRecords(run)
    is_new = held != tape or target.entry(run) != entry
    if (submitter := source.submitter(run)) is not None:
        target.save_submission(run, submitter)  # before the run's end, whose entry in the ledger names the submitter
    if held != tape:
        target.journal.append(run, rows)  # all at once: what closes strands comes with them
    _copy_notes(source, target, run)
    if target.journal.load(run) != tape:
        raise OtherRecords(run)  # another program has written it there meanwhile
    return is_new


def _copy_notes(source: RunStore, target: RunStore, run: str) -> None:
    if (entry := source.entry(run)) is not None:
        target.save(entry)
    if (trace := source.trace(run)) is not None:
        target.save_trace(run, trace)
    if (due := source.due(run)) is not None:
        target.save_due(run, due)
    _copy_callback(source, target, run)


def _copy_callback(source: RunStore, target: RunStore, run: str) -> None:
    """Copy whom a run notifies, once its old events are there: it is told of those to come alone."""
    if not (isinstance(source, DatabaseRunStore) and isinstance(target, DatabaseRunStore)):
        return
    if (callback := read_callback(source.contents, run)) is not None:
        save_callback(target.contents, run, callback)


def _in_strands(rows: list[Row]) -> Tape:
    return by_path(sorted(rows, key=lambda row: (row.path, row.n)))
