"""erase_runs(): the contents of runs, destroyed; what proves that they were there stays.

In an encrypted store the keys of the runs are destroyed. Then the key of the store is replaced, and the operator's, so
that copies of wrapped keys in free pages, logs and backups open nothing; no row is rewritten. In any other store the
records are deleted. Each erasure is entered in the ledger, signed where there is a key.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from agent_core.encryption.record_cipher import KEY_BYTES
from agent_core.errors import JournalError
from agent_core.journal.record import encode
from agent_core.journal.signature import Keys
from agent_core.statuses import ENDED
from engine_shim.errors import DefinitionError, RunBusy, RunNotFound
from engine_shim.store.content_keys import SUBJECT, unwrap, wrap
from engine_shim.store.database import Database, Reader
from engine_shim.store.forks import find_forks
from engine_shim.store.ledger import ERASED, Entry, enter_erasure, read_entry, walk_entries, was_deleted
from engine_shim.store.run_store import DatabaseRunStore
from utools.calls.store_encrypted import SUBJECT as ANSWERS
from utools.context.store_encrypted import subject_of
from utools.databases.transaction import Transaction

_CONTENTS: Final = ("passing_events", "run_callbacks", "run_traces")
"""What is beside the records of a run, and says what it was about."""
_KEYS: Final = "SELECT subject, wrapped FROM content_keys WHERE wrapped IS NOT NULL"
_FORGET: Final = "UPDATE content_keys SET wrapped = NULL WHERE subject = ?"
_FORGET_SUBJECT: Final = "DELETE FROM content_keys WHERE subject = ?"
"""A conversation may begin anew under its name."""
NOT_PROMISED: Final = (
    "the records were deleted; backups of the store may still have them, and so may its write-ahead log, that of a "
    "database server, and the disk below: only an encrypted store can promise more"
)


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """Who erases, when, and why."""

    by: str
    at: str
    why: str | None = None


@dataclass(slots=True)
class Erased:
    """The runs that were erased just now, and those that were so already. `left` is what the operator has to do."""

    runs: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    left: str = ""


def erase_runs(
    store: DatabaseRunStore,
    runs: Sequence[str],
    request: ErasureRequest,
    keys: Keys | None,
    subjects: Sequence[str] = (),
) -> Erased:
    """Destroy the contents of runs that have ended, and those of other `subjects`, such as conversations.

    RunNotFound, RunBusy for a run that is driven, and DefinitionError for one that has not ended, or where the
    operator's key has to be renewed first; nothing is erased then. What was interrupted is finished when it is done
    again.
    """
    erased = plan_erasure(store, runs)
    remembered = _find_conversations(store.database, erased.runs, subjects)
    forks = find_forks(store, [*erased.runs, *erased.before])
    if store.contents.is_encrypted:
        erased.left = _destroy_keys(store, [*erased.runs, *subjects], erased.runs, request, keys)
    else:
        for run in erased.runs:
            _delete(store, run, request, keys)
        for run in erased.before:
            if not was_deleted(store.database, run):  # the erasure was interrupted
                store.forget(run)
        _clear_answers(store)
        erased.left = NOT_PROMISED
    erased.left = "; ".join(filter(None, (erased.left, *_name_copies(remembered, forks))))
    return erased


def plan_erasure(store: DatabaseRunStore, runs: Sequence[str]) -> Erased:
    """Return which runs would be erased, and which were before. Raises as `erase_runs`."""
    plan = Erased()
    for run in dict.fromkeys(runs):
        (plan.before if was_erased(store.database, run) else plan.runs).append(run)
    for run in plan.runs:
        _check_erasable(store, run)
    return plan


def renew_keys(store: DatabaseRunStore) -> str:
    """Replace the key of an encrypted store, and the operator's, so that older ones open nothing any more; gives what
    is left to the operator to do. No row of a journal is rewritten."""
    with store.database.writing() as db:
        store.database.lock(db, SUBJECT)
        _renew(store, db)
    return _drop_older(store)


def find_runs(store: DatabaseRunStore, *, conversation: str | None = None, submitter: str | None = None) -> list[str]:
    """Return the runs of a conversation, or those that somebody handed in, the oldest first."""
    table, column, value = (
        ("run_submissions", "submitter", submitter)
        if conversation is None
        else ("run_turns", "conversation", conversation)
    )
    query = f"SELECT run FROM {table} WHERE {column} = ? ORDER BY run"
    return [run for (run,) in store.database.rows(table, query, value)]


def was_erased(database: Reader, run: str) -> bool:
    """Return whether the ledger says that a run was erased, and no other run has taken its id since."""
    query = "SELECT data FROM ledger WHERE run = ? ORDER BY seq DESC LIMIT 2"
    entries = [read_entry(data) for (data,) in database.rows("ledger", query, run)]
    match [entry["kind"] for entry in entries if entry is not None]:
        case ["erased", *_]:
            return True
        case ["deleted", "erased"]:
            return not database.rows("rows", "SELECT 1 FROM rows WHERE run = ? LIMIT 1", run)
        case _:
            return False


def list_erasures(database: Reader) -> Iterator[Entry]:
    """Return the entries of the ledger that tell of erasures, the oldest first."""
    return (entry for entry in walk_entries(database) if entry["kind"] == ERASED)


def find_erasure_faults(database: Reader, keys: Keys) -> Iterator[dict[str, Any]]:
    """Yield the erasures that none of the keys has signed."""
    for entry in list_erasures(database):
        signed = {name: value for name, value in entry.items() if name not in ("kid", "code", "store", "tenant")}
        kid, code = str(entry.get("kid", "")), str(entry.get("code", ""))
        why = keys.refuse_note(kid, code, _message_of(signed)) if kid else "it is not signed"
        if why is not None:
            yield {"run": entry["run"], "why": f"its erasure at {entry['at']} is not proven: {why}"}


def _find_conversations(database: Database, runs: Sequence[str], subjects: Sequence[str]) -> list[str]:
    """Return the conversations that some runs are turns of, but for those that are erased themselves."""
    query = f"SELECT DISTINCT conversation FROM run_turns WHERE run IN {database.dialect.values}"
    found = database.rows("run_turns", query, database.dialect.pack(list(runs)))
    return sorted(name for (name,) in found if name is not None and subject_of(name) not in subjects)


def _name_copies(conversations: Sequence[str], forks: Sequence[str]) -> Iterator[str]:
    """Yield what else holds what was erased, and how it is erased."""
    if conversations:
        yield f"the conversations {', '.join(conversations)} remember what was said there: --conversation erases it"
    if forks:
        yield f"the runs {', '.join(forks)} were forked from there, and hold what was recorded before: erase them too"


def _check_erasable(store: DatabaseRunStore, run: str) -> None:
    entry = store.entry(run)
    if entry is None:
        if not store.journal.load(run):
            raise RunNotFound(run)
        return  # of another program, which is not driven by this store's leases
    if (driver := store.leases.holder(run)) is not None:
        raise RunBusy(run, driver)
    if entry.status not in ENDED:
        message = f"run {run!r} has not ended: it is {entry.status}; cancel it first"
        raise DefinitionError(message, where="run", value=run)


def _destroy_keys(
    store: DatabaseRunStore, subjects: Sequence[str], runs: Sequence[str], request: ErasureRequest, keys: Keys | None
) -> str:
    """Destroy keys of contents, and replace those that have wrapped them; gives what is left to the operator."""
    database = store.database
    if subjects:
        with database.writing() as db:
            database.lock(db, SUBJECT)
            for subject in (*subjects, ANSWERS):
                db.execute(_FORGET if subject in runs else _FORGET_SUBJECT, (subject,))
            for run in runs:
                enter_erasure(database, db, run, partial(_complete, request=request, keys=keys))
                _clear(db, run)
            _renew(store, db)
        _clear_answers(store)
    return _drop_older(store)


def _drop_older(store: DatabaseRunStore) -> str:
    """Destroy what is older than the operator's key that is in use; no other renewal is under way meanwhile."""
    with store.database.writing() as db:
        store.database.lock(db, SUBJECT)
        return store.contents.operator_key(db).drop_older(_wrapped_key(store, db))


def _wrapped_key(store: DatabaseRunStore, db: Transaction) -> bytes:
    found = db.execute("SELECT wrapped FROM store_keys ORDER BY n DESC LIMIT 1").fetchone()
    if found is None:
        raise JournalError(f"{store.database.name} holds nothing that is encrypted")
    return bytes(found[0])


def _renew(store: DatabaseRunStore, db: Transaction) -> None:
    """Give the store a new key under a new one of the operator's, and wrap the keys of its contents by that."""
    contents = store.contents
    contents.operator_key(db).renew(_wrapped_key(store, db))
    n, old = contents.read_store_key(db)
    new = secrets.token_bytes(KEY_BYTES)
    db.execute("INSERT INTO store_keys (n, wrapped) VALUES (?, ?)", (n + 1, contents.operator_key(db).wrap(new)))
    found = db.execute(_KEYS).fetchall()
    rows = [(wrap(new, subject, unwrap(old, subject, bytes(by))), n + 1, subject) for subject, by in found]
    if rows:
        db.executemany("UPDATE content_keys SET wrapped = ?, store_key = ? WHERE subject = ?", rows)
    db.execute("DELETE FROM store_keys WHERE n <= ?", (n,))


def _delete(store: DatabaseRunStore, run: str, request: ErasureRequest, keys: Keys | None) -> None:
    """Delete the records of a run; the ledger keeps its head."""
    with store.database.writing(f"entry {run}") as db:
        enter_erasure(store.database, db, run, partial(_complete, request=request, keys=keys))
    store.forget(run)


def _clear(db: Transaction, run: str) -> None:
    for table in _CONTENTS:
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    db.execute("UPDATE run_turns SET conversation = NULL WHERE run = ?", (run,))


def _clear_answers(store: DatabaseRunStore) -> None:
    """Delete what is kept of tools' answers: it may be what an erased run has read."""
    if store.database.shared is not None:
        with store.database.writing() as db:
            db.execute("DELETE FROM kept_answers")


def _complete(entry: Entry, request: ErasureRequest, keys: Keys | None) -> Entry:
    """Return the entry of an erasure: who, why, and a signature over all of it, where there is a key."""
    entry = {**entry, "by": request.by, "why": request.why, "at": request.at}
    if keys is None or not keys.signer:
        return entry
    kid, code = keys.sign_note(_message_of(entry))
    return {**entry, "kid": kid, "code": code}


def _message_of(entry: Entry) -> bytes:
    return b"agent-core/erasure/1\n" + encode(dict(sorted(entry.items())))
