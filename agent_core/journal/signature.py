"""Signatures: a run's head, count, id and store under a key, so that even a full rewrite of its journal is found. Pure.

A signature is a `sealed` record in the strand `seal`, next to the run's strands, written each time a run ends or waits.
It names the store that the run is in and its tenant, so that a run which was put into another store is found. That runs
were copied from another store, a store notes under a key as well.

There are two kinds. A `mac` is a code (HMAC-SHA-256) that whoever has the secret key can check, and make. A `sig` is an
Ed25519 signature, which everybody can check by the public key: over the line `agent-core/seal/1` and the record as
JSON without spaces, its keys sorted, with the `run`, without `kind`, `sig`, `timestamp` and `salt`. Its `root` is that
of the tree over the records, each salted by the secret `salt`, by which some of them can be shown alone.
"""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, cast

import orjson

from agent_core.errors import DefinitionError
from agent_core.evidence.ed25519 import INSTALL, PREFIX, decode_signature, is_installed
from agent_core.evidence.excerpts import Place, root_of_records
from agent_core.evidence.notes import read_base64
from agent_core.evidence.public_keys import TIME, Keyring, PublicKeys, Signature
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.path import CONTROL, SEAL
from agent_core.journal.record import Record, Row, Tape, chain_row, encode, genesis, run_head

VARIABLE: Final = "AGENT_CORE_JOURNAL_KEYS"
SHORTEST: Final = 16
"""Characters of a key that signs. A shorter one only verifies what was signed with it before."""
_UNSIGNED: Final = frozenset({"kind", "sig", "timestamp", "salt"})
_MADE: Final = frozenset({"kid", "at", "mac", "sig", "timestamp", "root", "salt"})
"""What the key that signs adds to a seal."""
_FIELDS: Final = frozenset({"kind", "head", "count", "kid", "store", "tenant"})


@dataclass(frozen=True, slots=True)
class Keys:
    """Signing keys. `keys` are secret ones by id: the first signs, any of them verifies. With a `keyring` its key signs
    instead, and its public keys verify as well."""

    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    keyring: Keyring | None = None

    def __repr__(self) -> str:
        return f"Keys({', '.join([*self.keys, *([] if self.keyring is None else [repr(self.keyring)])])})"

    @staticmethod
    def check(keys: Any) -> None:
        """DefinitionError for what is neither Keys nor None."""
        if keys is not None and not isinstance(keys, Keys):
            is_mapping = isinstance(keys, Mapping)
            given = ", ".join(map(str, cast(Mapping[Any, Any], keys))) if is_mapping else type(keys).__name__
            message = "must be Keys of agent_core, which has them by their ids: keys=Keys({'k1': KEY})"
            raise DefinitionError(message, where="keys", value=given)

    @classmethod
    def read(cls, text: str, keyring: Keyring | None = None) -> "Keys | None":
        """`kid:key,…` as AGENT_CORE_JOURNAL_KEYS holds it, with a keyring; None without any, DefinitionError when
        malformed."""
        entries = [entry.strip().partition(":") for entry in text.split(",") if entry.strip()]
        if any(not kid or not key for kid, _, key in entries):
            raise DefinitionError("must be kid:key, separated by commas", where=VARIABLE)
        if len({kid for kid, _, _ in entries}) < len(entries):
            raise DefinitionError("two keys have one id; give each an id of its own", where=VARIABLE)
        return cls({kid: key for kid, _, key in entries}, keyring) if entries or keyring is not None else None

    def check_keyring(self) -> None:
        """DefinitionError where something of the keyring cannot be read, or used."""
        if self.keyring is not None:
            self.keyring.check()

    def check_signer(self) -> None:
        """DefinitionError when the key that signs can be guessed, or the keyring cannot be used."""
        self.check_keyring()
        key = self.keys.get(kid := self.signer)
        if key is not None and len(key) < SHORTEST:
            length = "1 character" if len(key) == 1 else f"{len(key)} characters"
            make = 'python -c "import secrets; print(secrets.token_hex(32))"'
            message = f"the key {kid!r}, which signs, has {length}, and needs at least {SHORTEST}; {make} makes one"
            raise DefinitionError(message, where=VARIABLE)

    @property
    def is_slow(self) -> bool:
        """Whether signing waits for another process."""
        return self.keyring is not None and self.keyring.is_slow

    @property
    def signer(self) -> str:
        """The id of the key that signs; empty where none does."""
        signer = None if self.keyring is None else self.keyring.signer()
        return next(iter(self.keys), "") if signer is None else signer.kid

    @property
    def is_public(self) -> bool:
        """Whether others can check what the key that signs has signed."""
        return self.keyring is not None and self.keyring.signer() is not None

    def seal(self, run: str, record: Record, at: str) -> Record:
        """Return the record of a seal, signed at a time."""
        signer = None if self.keyring is None else self.keyring.signer()
        if signer is None:
            kid = next(iter(self.keys))
            record = {**record, "kid": kid}
            return {**record, "mac": self._mac(kid, _message_of_mac(run, record))}
        record = {**record, "kid": signer.kid, "at": at}
        signature = signer.sign(message_of_seal(run, record))
        assert self.keyring is not None
        stamp = self.keyring.stamp(base64.b64decode(signature.text))
        return {**record, "sig": signature.text, **({} if stamp is None else {"timestamp": stamp})}

    def refuse_seal(self, run: str, seal: Record) -> str | None:
        """Return why a seal was not made by one of these keys; None when it was."""
        kid = seal["kid"]
        if "sig" in seal:
            proven = self.find_time(seal)
            if proven is None and "timestamp" in seal and self.keyring is not None and self.keyring.judges_time:
                return "its timestamp is none of an authority that is trusted, or of another signature"
            return self.public.refuse(Signature(kid, seal["sig"]), message_of_seal(run, seal), seal["at"], proven)
        if kid not in self.keys:
            return f"it is sealed with the key {kid!r}, which is not given"
        if not hmac.compare_digest(seal["mac"].encode(), self._mac(kid, _message_of_mac(run, seal)).encode()):
            return f"its seal was not made with the key {kid!r}"
        return None

    def find_time(self, seal: Record) -> str | None:
        """Return the time by which a seal was there, as an authority says that is trusted; None without one."""
        code = decode_signature(seal.get("sig", ""))
        if code is None or self.keyring is None or "timestamp" not in seal:
            return None
        return self.keyring.find_time(seal["timestamp"], code)

    def sign_copy(self, source: str, target: str) -> tuple[str, str]:
        """Return what `sign_note` does of a note that runs of the store `source` were copied into `target`."""
        return self.sign_note(_message_of_copy(source, target))

    def refuse_copy(self, kid: str, code: str, source: str, target: str) -> str | None:
        """Return why such a note was not signed by one of these keys; None when it was."""
        return self.refuse_note(kid, code, _message_of_copy(source, target))

    def sign_note(self, message: bytes) -> tuple[str, str]:
        """Return the id of the key that signs, and its code of a message."""
        signer = None if self.keyring is None else self.keyring.signer()
        if signer is None:
            kid = next(iter(self.keys))
            return kid, self._mac(kid, message)
        return signer.sign(message)

    def refuse_note(self, kid: str, code: str, message: bytes) -> str | None:
        """Return why a message was not signed by one of these keys; None when it was."""
        if kid.startswith(PREFIX):
            return self.public.refuse(Signature(kid, code), message, None)
        if kid in self.keys and hmac.compare_digest(code.encode(), self._mac(kid, message).encode()):
            return None
        return f"it was not signed with the key {kid!r}"

    @property
    def public(self) -> PublicKeys:
        """The public keys that are trusted."""
        return PublicKeys() if self.keyring is None else self.keyring.public_keys()

    def _mac(self, kid: str, message: bytes) -> str:
        return hmac.new(self.keys[kid].encode(), message, sha256).hexdigest()


def message_of_seal(run: str, seal: Record) -> bytes:
    """Return what the signature of a seal is over."""
    signed = {name: value for name, value in seal.items() if name not in _UNSIGNED}
    return b"agent-core/seal/1\n" + orjson.dumps({**signed, "run": run}, option=orjson.OPT_SORT_KEYS)


def _message_of_mac(run: str, seal: Record) -> bytes:
    """Return what the code of a seal is over; one that names no store has an older form."""
    head, count = seal["head"], seal["count"]
    if "store" not in seal:
        return f"{run}\0{head}\0{count}".encode()
    return encode({"run": run, "head": head, "count": count, "store": seal["store"], "tenant": seal.get("tenant")})


def _message_of_copy(source: str, target: str) -> bytes:
    return encode({"copied": source, "into": target})


def split_own_strands(tape: Tape) -> tuple[Tape, Tape]:
    """Return the run's own strands, and the others: its signatures, and who stopped it and let it continue."""
    own = {path: rows for path, rows in tape.items() if path not in (SEAL, CONTROL)}
    return own, {path: rows for path, rows in tape.items() if path in (SEAL, CONTROL)}


def signed_strands(tape: Tape) -> Tape:
    """Return all strands that a signature covers."""
    return {path: rows for path, rows in tape.items() if path != SEAL}


def records_of(tape: Tape) -> dict[Place, bytes]:
    """Return the bytes of all records that a signature covers, by strand and number."""
    return {(path, row.n): row.data for path, rows in signed_strands(tape).items() for row in rows}


def is_encrypted(tape: Tape) -> bool:
    """Return whether a store holds ciphertext of a run: the secret of its tree follows from its key then."""
    return any(row.stored is not None for rows in tape.values() for row in rows)


def head_and_count(tape: Tape) -> tuple[str, int]:
    """Head and count of all rows of a tape."""
    strands = [(path, rows[-1].hash, len(rows)) for path, rows in tape.items() if rows]
    return run_head(strands), sum(count for _, _, count in strands)


def sign(
    run: str,
    tape: Tape,
    keys: Keys,
    identity: StoreIdentity | None = None,
    *,
    at: str = "",
    salt: bytes = b"",
    keeps_salt: bool = True,
) -> Row | None:
    """Return the signature of a run as it is now, in the store that it is in; None when its last signature says the
    same. `at` is the time, and `salt` a secret of this seal, for one that others can check; the seal of an encrypted
    run does not keep it."""
    seals = tape.get(SEAL, [])
    head, count = head_and_count(signed_strands(tape))
    record: Record = {"kind": "sealed", "head": head, "count": count}
    if identity is not None and identity.store:
        record |= {"store": identity.store, "tenant": identity.tenant}
    if seals and _says(seals[-1].record(), record, keys, run):
        return None
    if keys.is_public and salt:
        root = root_of_records(salt, records_of(tape))
        record |= {"root": root, **({"salt": base64.b64encode(salt).decode()} if keeps_salt else {})}
    return chain_row(SEAL, len(seals), seals[-1].hash if seals else genesis(run, SEAL), keys.seal(run, record, at))


def _says(seal: Record, record: Record, keys: Keys, run: str) -> bool:
    """Return whether a seal says this already, under the key that signs now."""
    made = {name: value for name, value in seal.items() if name not in _MADE}
    return made == record and is_sealed(seal) and seal["kid"] == keys.signer and keys.refuse_seal(run, seal) is None


def is_sealed(seal: Record) -> bool:
    """Return whether a record has the fields of a seal that a host writes."""
    match seal:
        case {"kind": "sealed", "head": str(), "count": int(), "kid": str(), "mac": str()}:
            is_whole = seal.keys() <= _FIELDS | {"mac"}
        case {"kind": "sealed", "head": str(), "count": int(), "kid": str(), "at": str(at), "sig": str()}:
            texts = ("timestamp", "root", "salt")
            is_whole = seal.keys() <= _FIELDS | {"at", "sig", *texts} and TIME.fullmatch(at) is not None
            is_whole = is_whole and all(isinstance(seal.get(name, ""), str) for name in texts)
        case _:
            return False
    return is_whole and all(isinstance(each, str | None) for each in _home_of(seal))


def _home_of(seal: Record) -> tuple[Any, Any]:
    """Return what a seal has for the store and the tenant that it names."""
    return seal.get("store"), seal.get("tenant")


def can_check(tape: Tape) -> bool:
    """Return whether the last seal of a run can be checked here: a signature by public key needs a library."""
    seals = tape.get(SEAL, [])
    return not seals or "sig" not in seals[-1].record() or is_installed()


def describe_seal(tape: Tape, keys: Keys | None, fault: str | None, identity: StoreIdentity | None) -> str:
    """By which key a run is sealed, and whether that was checked; `fault` is what `signature_fault` found."""
    seals = tape.get(SEAL, [])
    if not seals:
        return "not sealed"
    seal = seals[-1].record()
    by = f"sealed by {seal.get('kid')}"
    if not can_check(tape):
        return f"signed by {seal.get('kid')}, not checked: {INSTALL}"
    if keys is None:
        return f"{by}, not checked: no key here"
    if fault is not None:
        return f"{by}, which does not hold"
    if (time := keys.find_time(seal)) is not None:
        by = f"{by}, there by {time}"
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
    if not is_sealed(seal):
        return "its seal is not one that a host writes"
    if (why := keys.refuse_seal(run, seal)) is not None:
        return why
    if (seal["head"], seal["count"]) != head_and_count(signed_strands(tape)):
        return "it goes on, or ends, elsewhere than where it was sealed"
    has_salt = "root" in seal and not is_encrypted(tape)
    if has_salt and root_of_records(read_base64(seal.get("salt", "")) or b"", records_of(tape)) != seal["root"]:
        return "its records are not those of the tree that was sealed"
    store, tenant = _home_of(seal)
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
    kid, code = identity.copies.get(store, (None, None))
    return kid is not None and code is not None and keys.refuse_copy(kid, code, store, identity.store) is None
