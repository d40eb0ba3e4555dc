"""Signatures: a run's head, count, id and store under a key, so that even a full rewrite of its journal is found. Pure.

A signature is a `sealed` record in the strand `seal`, next to the run's strands, written each time a run ends or waits.
It names the store that the run is in and its tenant, so that a run which was put into another store is found. That runs
were copied from another store, a store notes under a key as well.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, cast

from agent_core.errors import DefinitionError
from agent_core.journal.control import CONTROL
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.record import Record, Row, Tape, chain_row, encode, genesis, run_head
from utools.lean_dataclass import dataclass

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
    def check(keys: Any) -> None:
        """DefinitionError for what is neither Keys nor None."""
        if keys is not None and not isinstance(keys, Keys):
            is_mapping = isinstance(keys, Mapping)
            given = ", ".join(map(str, cast(Mapping[Any, Any], keys))) if is_mapping else type(keys).__name__
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
        kid, key = self.signer, self.keys[self.signer]
        if len(key) < SHORTEST:
            length = "1 character" if len(key) == 1 else f"{len(key)} characters"
            make = 'python -c "import secrets; print(secrets.token_hex(32))"'
            message = f"the key {kid!r}, which signs, has {length}, and needs at least {SHORTEST}; {make} makes one"
            raise DefinitionError(message, where=VARIABLE)

    def mac(
        self, kid: str, run: str, head: str, count: int, store: str | None = None, tenant: str | None = None
    ) -> str:
        """Return the code of a seal; without a store that of one which names none."""
        if store is None:
            return self._mac(kid, f"{run}\0{head}\0{count}".encode())
        return self._mac(kid, encode({"run": run, "head": head, "count": count, "store": store, "tenant": tenant}))

    def mac_of_copy(self, kid: str, source: str, target: str) -> str:
        """Return the code of a note that runs of the store `source` were copied into `target`."""
        return self._mac(kid, encode({"copied": source, "into": target}))

    def _mac(self, kid: str, message: bytes) -> str:
        return hmac.new(self.keys[kid].encode(), message, sha256).hexdigest()

    @property
    def signer(self) -> str:
        """The id of the key that signs."""
        return next(iter(self.keys))


def split_own_strands(tape: Tape) -> tuple[Tape, Tape]:
    """Return the run's own strands, and the others: its signatures, and who stopped it and let it continue."""
    own = {path: rows for path, rows in tape.items() if path not in (SEAL, CONTROL)}
    return own, {path: rows for path, rows in tape.items() if path in (SEAL, CONTROL)}


def signed_strands(tape: Tape) -> Tape:
    """Return all strands that a signature covers."""
    return {path: rows for path, rows in tape.items() if path != SEAL}


def head_and_count(tape: Tape) -> tuple[str, int]:
    """Head and count of all rows of a tape."""
    strands = [(path, rows[-1].hash, len(rows)) for path, rows in tape.items() if rows]
    return run_head(strands), sum(count for _, _, count in strands)


def sign(run: str, tape: Tape, keys: Keys, identity: StoreIdentity | None = None) -> Row | None:
    """Return the signature of a run as it is now, in the store that it is in; None when its last signature says the
    same."""
    seals = tape.get(SEAL, [])
    head, count = head_and_count(signed_strands(tape))
    record: Record = {"kind": "sealed", "head": head, "count": count, "kid": keys.signer}
    if identity is not None and identity.store:
        record |= {"store": identity.store, "tenant": identity.tenant}
    record["mac"] = keys.mac(keys.signer, run, head, count, *_home_of(record))
    if seals and seals[-1].record() == record:
        return None
    return chain_row(SEAL, len(seals), seals[-1].hash if seals else genesis(run, SEAL), record)


def _home_of(seal: Record) -> tuple[Any, Any]:
    """Return what a seal has for the store and the tenant that it names."""
    return seal.get("store"), seal.get("tenant")


def describe_seal(tape: Tape, keys: Keys | None, fault: str | None, identity: StoreIdentity | None = None) -> str:
    """By which key a run is sealed, and whether that was checked; `fault` is what `signature_fault` found."""
    seals = tape.get(SEAL, [])
    if not seals:
        return "not sealed"
    seal = seals[-1].record()
    by = f"sealed by {seal.get('kid')}"
    if keys is None:
        return f"{by}, not checked: no key here"
    if fault is not None:
        return f"{by}, which does not hold"
    return f"{by}, which names no store" if identity is not None and "store" not in seal else by


def signature_fault(run: str, tape: Tape, keys: Keys, identity: StoreIdentity | None = None) -> str | None:
    """Return what is wrong with a run's last signature, in a sentence; None when it proves the run as it is.

    With the `identity` of the store that the run is in, a signature must be of a run of this store, or of one whose
    runs were copied here. One that names no store, as older ones do, is held to the rest.
    """
    seals = tape.get(SEAL, [])
    if not seals:
        return "it is not sealed, though a key is given"
    seal = seals[-1].record()
    match seal:
        case {"kind": "sealed", "head": str(head), "count": int(count), "kid": str(kid), "mac": str(mac)}:
            store, tenant = _home_of(seal)
        case _:
            return "its seal is not one that a host writes"
    if not isinstance(store, str | None) or not isinstance(tenant, str | None):
        return "its seal is not one that a host writes"
    if kid not in keys.keys:
        return f"it is sealed with the key {kid!r}, which is not given"
    if not hmac.compare_digest(mac.encode(), keys.mac(kid, run, head, count, store, tenant).encode()):
        return f"its seal was not made with the key {kid!r}"
    if (head, count) != head_and_count(signed_strands(tape)):
        return "it goes on, or ends, elsewhere than where it was sealed"
    return None if store is None or identity is None else _home_fault(store, tenant, identity, keys)


def _home_fault(store: str, tenant: str | None, identity: StoreIdentity, keys: Keys) -> str | None:
    """Return why a run that was sealed in a store, for a tenant, is not at home in another one."""
    if None not in (tenant, identity.tenant) and tenant != identity.tenant:
        return f"it was sealed as a run of the tenant {tenant}, and this is the store of {identity.tenant}"
    if store == identity.store:
        return None
    here = f"this is {identity.store}" if identity.store else "this one has no id"
    elsewhere = f"it was sealed in the store {store}, and {here}"
    if store not in identity.copies:
        return f"{elsewhere}; runs come here by `agent-core store copy`"
    if is_signed_copy(store, identity, keys):
        return None
    return f"{elsewhere}; no key given has signed that its runs were copied: repeat `agent-core store copy` with one"


def is_signed_copy(store: str, identity: StoreIdentity, keys: Keys) -> bool:
    """Return whether a store's note that runs of another one were copied into it is signed by one of the keys."""
    kid, mac = identity.copies.get(store, (None, None))
    if kid is None or mac is None or kid not in keys.keys:
        return False
    return hmac.compare_digest(mac.encode(), keys.mac_of_copy(kid, store, identity.store).encode())
