"""Excerpts: some records of a run, with what proves to a stranger that they stand in it, and nothing of the others."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from agent_core.errors import DefinitionError
from agent_core.evidence.checkpoints import Checkpoint, find_log_fault
from agent_core.evidence.excerpts import (
    FORMAT,
    Place,
    encode_entry,
    find_record_fault,
    leaves_of,
    prove_leaves,
    salt_of,
)
from agent_core.evidence.merkle import compute_root, hash_leaf, root_by_inclusion
from agent_core.evidence.notes import Note, NoteError, read_base64
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Tape
from agent_core.journal.signature import Keys, is_sealed, records_of

FIELDS: Final = frozenset({"format", "run", "seal", "records", "ledger"})
Part = Literal["excerpt", "seal", "records", "ledger"]
OF_LEDGER: Final = frozenset({"entry", "index", "hashes", "checkpoint"})


@dataclass(frozen=True, slots=True)
class ExcerptVerification:
    """What an excerpt proves.

    Attributes:
        ok: Whether all of it holds.
        why: What does not, else None.
        part: Where that is: `excerpt` (the file as a whole), `seal`, `records` or `ledger`; None if it is ok.
        run: The run's id.
        shown: How many records it shows.
        count: How many the run has.
        kid: The key that signed the run.
        at: When that was, by the signer's own word.
        log: The name of the log that has the run; None where the excerpt says nothing of one.
        status: How the run ended, or that it waits, as the log says.
    """

    ok: bool
    why: str | None
    part: Part | None = None
    run: str = ""
    shown: int = 0
    count: int = 0
    kid: str = ""
    at: str = ""
    log: str | None = None
    status: str | None = None


class _Broken(ValueError):
    """What of an excerpt does not hold, and in which part of it."""

    part: Part = "excerpt"


@contextmanager
def _within(part: Part) -> Iterator[None]:
    """Say of what does not hold that it is in this part."""
    try:
        yield
    except _Broken as broken:
        broken.part = part
        raise


def make_excerpt(
    run: str,
    tape: Tape,
    wanted: Collection[Place],
    ledger: Mapping[str, Any] | None,
    secret: bytes | None = None,
) -> str:
    """Return an excerpt of a run that is sealed, in JSON.

    Args:
        run: The run's id.
        tape: Its rows; it is verified already.
        wanted: Strand and number of each record that is shown.
        ledger: The entry of the log about it, {entry, index, hashes, checkpoint}, or None.
        secret: The salt of an encrypted run, which its seal does not keep.

    Raises:
        DefinitionError: For a run whose last seal names no tree, or that has gone on since; and for a record that it
            does not have.
    """
    seal: Record = tape[SEAL][-1].record() if SEAL in tape else {}
    kept = read_base64(seal.pop("salt", ""))
    secret = secret or kept
    if "root" not in seal or not secret:
        why = "its seal names no tree over its records: only a run that AGENT_CORE_SIGNING_KEY sealed is shown in part"
        raise DefinitionError(why, where=run)
    records = records_of(tape)
    for place in wanted:
        if place not in records:
            raise DefinitionError("has no such record", where=run, value=f"{place[0]}:{place[1]}")
    leaves = leaves_of(secret, records)
    if compute_root(leaves.values()).hex() != seal["root"]:
        why = "has gone on since it was sealed: it is shown in part once it waits again, or has ended"
        raise DefinitionError(why, where=run)
    numbers = [number for number, place in enumerate(leaves) if place in wanted]
    proofs = prove_leaves([*leaves.values()], numbers)
    places = [*leaves]
    shown = [
        encode_entry(places[number], records[places[number]], number, salt_of(secret, places[number]), hashes)
        for number, hashes in zip(numbers, proofs, strict=True)
    ]
    document = {"format": FORMAT, "run": run, "seal": seal, "records": shown, "ledger": ledger}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def verify_excerpt(text: str, keys: Keys) -> ExcerptVerification:
    """Return what an excerpt proves.

    Args:
        text: The excerpt, in JSON.
        keys: Whose signatures are taken; the public ones count.
    """
    try:
        return _verify(_read(text), keys)
    except _Broken as broken:
        return ExcerptVerification(False, str(broken), broken.part)


def _verify(excerpt: Mapping[str, Any], keys: Keys) -> ExcerptVerification:
    run, seal, records = excerpt["run"], excerpt["seal"], excerpt["records"]
    with _within("seal"):
        _check_seal(run, seal, keys)
    with _within("records"):
        _check_records(records, bytes.fromhex(seal["root"]), seal["count"])
    with _within("ledger"):
        log, status = (None, None) if excerpt["ledger"] is None else _check_ledger(excerpt["ledger"], run, seal, keys)
    shown, count, kid, at = len(records), seal["count"], seal["kid"], seal["at"]
    return ExcerptVerification(True, None, None, run, shown, count, kid, at, log, status)


def _check_seal(run: str, seal: Any, keys: Keys) -> None:
    if not isinstance(seal, dict) or "root" not in seal or "salt" in seal or "mac" in seal or not is_sealed(seal):
        raise _Broken("its seal is not one that an excerpt has")
    _need(_is_int(seal["count"]) and _is_hex(seal["root"]), "its seal is not one that an excerpt has")
    try:
        why = keys.refuse_seal(run, seal)
    except (UnicodeEncodeError, TypeError):
        why = "its seal has what no JSON of a record has"
    _need(why is None, str(why))


def _check_records(records: Any, root: bytes, count: int) -> None:
    _need(isinstance(records, list) and bool(records), "it shows no record")
    for entry in records:
        fault = find_record_fault(entry, root, count) if isinstance(entry, dict) else "a record is no object"
        _need(fault is None, str(fault))
    in_order = all(one["index"] < other["index"] for one, other in pairwise(records))
    _need(in_order, "its records are not in their order")


def _check_ledger(ledger: Any, run: str, seal: Record, keys: Keys) -> tuple[str, str | None]:
    """Return the name of the log that has the run, and the status that it has there."""
    match ledger:
        case {"entry": str(data), "index": int(index), "hashes": list(hashes), "checkpoint": str(note)}:
            _need(ledger.keys() == OF_LEDGER and _is_int(index), "the part about the log has other fields")
        case _:
            raise _Broken("the part about the log has other fields")
    try:
        signed = Note.read(note)
        checkpoint = Checkpoint.read(signed.text)
        leaf = hash_leaf(data.encode())
        why = find_log_fault(signed, keys.public)
    except (NoteError, UnicodeEncodeError) as error:
        raise _Broken(f"the checkpoint of the log: {error}") from None
    _need(why is None, f"the checkpoint of the log: {why}")
    path = [read_base64(each) if isinstance(each, str) else None for each in hashes]
    known = [each for each in path if each is not None and len(each) == 32]
    _need(len(known) == len(path), "a hash of the log is not in Base64, or of another length")
    found = root_by_inclusion(index, checkpoint.size, leaf, known)
    _need(found == checkpoint.root, "the log that was signed does not have the entry")
    entry = _load(data)
    _need(isinstance(entry, dict) and entry.get("run") == run, "the entry of the log is about another run")
    _need(entry.get("root") == seal["root"], "the log has the run with other records")
    status = entry.get("status")
    return checkpoint.origin, status if isinstance(status, str) else None


def _read(text: str) -> Mapping[str, Any]:
    """Return an excerpt's fields."""
    excerpt = _load(text)
    _need(isinstance(excerpt, dict) and excerpt.keys() == FIELDS, "it is no excerpt")
    _need(excerpt["format"] == FORMAT and isinstance(excerpt["run"], str), "it is no excerpt of this format")
    return dict(excerpt)


def _load(text: str) -> Any:
    """Return what a text in JSON says; each key of an object is there once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        _need(len(found) == len(pairs), "it has a key twice")
        return found

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=int)  # which refuses NaN: it is no JSON
    except _Broken:
        raise
    except (ValueError, RecursionError):
        raise _Broken("it is no JSON") from None


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise _Broken(why)


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_hex(text: str) -> bool:
    return len(text) == 64 and not set(text) - set("0123456789abcdef")
