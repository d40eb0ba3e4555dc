"""Signatures: a run's head, count and id under a key, so that even a full rewrite of its journal is found. Pure.

A signature is a `sign` record in the strand `seal`, next to the run's strands, written each time a run ends or waits.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from agent_core.errors import DefinitionError
from agent_core.journal.control import CONTROL
from agent_core.journal.record import Record, Row, Tape, chain_row, genesis, run_head

SEAL: Final = "seal"
VARIABLE: Final = "AGENT_CORE_JOURNAL_KEYS"
SHORTEST: Final = 16
"""Characters of a key that signs. A shorter one only verifies what was signed with it before."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Signing keys by id. The first one signs, any of them verifies."""

    keys: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Keys({', '.join(self.keys)})"

    @staticmethod
    def check(keys: object) -> None:
        """DefinitionError for what is neither Keys nor None."""
        if keys is not None and not isinstance(keys, Keys):
            given = ", ".join(map(str, keys)) if isinstance(keys, Mapping) else type(keys).__name__
            message = "must be Keys of agent_core, which has them by their ids: keys=Keys({'k1': KEY})"
            raise DefinitionError(message, where="keys", value=given)

    @classmethod
    def read(cls, text: str) -> "Keys | None":
        """`kid:key,…` as AGENT_CORE_JOURNAL_KEYS holds it; None when it is empty, DefinitionError when malformed."""
        entries = [entry.strip().partition(":") for entry in text.split(",") if entry.strip()]
        if any(not kid or not key for kid, _, key in entries):
            raise DefinitionError("must be kid:key, separated by commas", where=VARIABLE)
        return cls({kid: key for kid, _, key in entries}) if entries else None

    def check_signer(self) -> None:
        """DefinitionError when the key that signs can be guessed."""
        kid, key = next(iter(self.keys.items()))
        if len(key) < SHORTEST:
            length = "1 character" if len(key) == 1 else f"{len(key)} characters"
            make = 'python -c "import secrets; print(secrets.token_hex(32))"'
            message = f"the key {kid!r}, which signs, has {length}, and needs at least {SHORTEST}; {make} makes one"
            raise DefinitionError(message, where=VARIABLE)

    def mac(self, kid: str, run: str, head: str, count: int) -> str:
        message = f"{run}\0{head}\0{count}".encode()
        return hmac.new(self.keys[kid].encode(), message, sha256).hexdigest()


def split_own_strands(tape: Tape) -> tuple[Tape, Tape]:
    """The run's own strands, and the others: its signatures, and who stopped it and let it go on."""
    own = {path: rows for path, rows in tape.items() if path not in (SEAL, CONTROL)}
    return own, {path: rows for path, rows in tape.items() if path in (SEAL, CONTROL)}


def signed_strands(tape: Tape) -> Tape:
    """All strands that a signature covers."""
    return {path: rows for path, rows in tape.items() if path != SEAL}


def head_and_count(tape: Tape) -> tuple[str, int]:
    """Head and count of all rows of a tape."""
    strands = [(path, rows[-1].hash, len(rows)) for path, rows in tape.items() if rows]
    return run_head(strands), sum(count for _, _, count in strands)


def sign(run: str, tape: Tape, keys: Keys) -> Row | None:
    """The signature of a run as it is now; None when its last signature says the same."""
    seals = tape.get(SEAL, [])
    head, count = head_and_count(signed_strands(tape))
    kid = next(iter(keys.keys))
    record: Record = {
        "kind": "sealed",
        "head": head,
        "count": count,
        "kid": kid,
        "mac": keys.mac(kid, run, head, count),
    }
    if seals and seals[-1].record() == record:
        return None
    return chain_row(SEAL, len(seals), seals[-1].hash if seals else genesis(run, SEAL), record)


def describe_seal(tape: Tape, keys: Keys | None, fault: str | None) -> str:
    """By which key a run is sealed, and whether that was checked; `fault` is what `signature_fault` found."""
    seals = tape.get(SEAL, [])
    if not seals:
        return "not sealed"
    by = f"sealed by {seals[-1].record().get('kid')}"
    if keys is None:
        return f"{by}, not checked: no key here"
    return by if fault is None else f"{by}, which does not hold"


def signature_fault(run: str, tape: Tape, keys: Keys) -> str | None:
    """What is wrong with a run's last signature, in a sentence; None when it proves the run as it is."""
    seals = tape.get(SEAL, [])
    if not seals:
        return "it is not sealed, though a key is given"
    match seals[-1].record():
        case {"kind": "sealed", "head": str(head), "count": int(count), "kid": str(kid), "mac": str(mac)}:
            pass
        case _:
            return "its seal is not one that a host writes"
    if kid not in keys.keys:
        return f"it is sealed with the key {kid!r}, which is not given"
    if not hmac.compare_digest(mac.encode(), keys.mac(kid, run, head, count).encode()):
        return f"its seal was not made with the key {kid!r}"
    if (head, count) != head_and_count(signed_strands(tape)):
        return "it goes on, or ends, elsewhere than where it was sealed"
    return None
