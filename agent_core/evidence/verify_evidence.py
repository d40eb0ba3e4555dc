"""Verifies excerpts of runs, by public keys alone: a program that needs Python and `cryptography`, and nothing of ours.

    python verify_evidence.py KEYS.pub EXCERPT...

An excerpt, as JSON or as a page, shows some records of a run. That it is ok means: a key of the file, valid at that
time, has signed the run; each record stands in it, where it says; and, where the excerpt has that part, a log signed by
such a key has the run. The exit code is 0 if all are ok, else 1. The formats are described in the README beside this
file.
"""

import base64
import binascii
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = "agent-core/excerpt/1"
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
PEM = re.compile(r"-----BEGIN PUBLIC KEY-----([^-]*)-----END PUBLIC KEY-----")
NAME = re.compile(r"[^\s+\x00-\x1f]{1,255}")
LINE = re.compile(r"— (\S+) ([A-Za-z0-9+/=]+)")
ED25519 = bytes.fromhex("302a300506032b6570032100")
MOST = 2**62


class Fault(Exception):
    """What does not hold, and in which part of an excerpt."""

    part = "excerpt"


def need(holds: Any, why: str) -> None:
    """Raise a Fault unless something holds."""
    if not holds:
        raise Fault(why)


@contextmanager
def within(part: str) -> Iterator[None]:
    """Say of a Fault that it is in this part: seal, records or ledger."""
    try:
        yield
    except Fault as fault:
        fault.part = part
        raise


def read_base64(text: Any, length: int | None = None) -> bytes:
    """Return the bytes of a text in the one form of Base64."""
    need(isinstance(text, str), "a text in Base64 is none")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Fault(f"this is no Base64: {text[:40]!r}") from None
    need(base64.b64encode(data).decode() == text, "a text in Base64 is not in its one form")
    need(length is None or len(data) == length, "a text in Base64 has another length than it must")
    return data


def compact(value: Any) -> bytes:
    """Return JSON without spaces, keys sorted."""
    return encode(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def encode(text: str) -> bytes:
    """Return the bytes of a text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Fault("there is half a character in it") from None


def read_json(text: str) -> Any:
    """Return what a text in JSON says; each key of an object is there once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        need(len(found) == len(pairs), "it has a key twice")
        return found

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=int)  # which refuses NaN: it is no JSON
    except (ValueError, RecursionError):
        raise Fault("it is no JSON") from None


def is_int(value: Any) -> bool:
    """Return whether a value is a whole number, and no boolean."""
    return type(value) is int and abs(value) <= MOST


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────


def read_keys(text: str) -> dict[str, dict[str, Any]]:
    """Return the keys of a file by their ids, each with its bytes and what stands in front of it."""
    keys: dict[str, dict[str, Any]] = {}
    end = 0
    for block in PEM.finditer(text):
        lines = [line.partition(":") for line in text[end : block.start()].splitlines() if line.strip()]
        told = {name.strip(): value.strip() for name, _, value in lines if not name.startswith("#")}
        end = block.end()
        der = read_base64("".join(block[1].split()))
        need(der.startswith(ED25519) and len(der) == len(ED25519) + 32, "the file has a key that is not Ed25519")
        raw = der[len(ED25519) :]
        kid = f"ed25519:{hashlib.sha256(raw).hexdigest()[:16]}"
        need(told.get("key", kid) == kid, f"the file calls a key {told.get('key')} that is {kid}")
        keys[kid] = {"raw": raw, **told}
    need(keys, "the file has no public key")
    return keys


def is_signed(key: dict[str, Any], signature: bytes, message: bytes) -> bool:
    """Return whether the key has signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(key["raw"]).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def check_valid(kid: str, key: dict[str, Any], at: str | None) -> None:
    """Fault for a key that is revoked, or was not valid at a time."""
    need("revoked since" not in key, f"the key {kid} is revoked, since {key.get('revoked since')}")
    if at is not None:
        need(key.get("valid from", at) <= at <= key.get("valid until", at), f"the key {kid} was not valid at {at}")


# ── trees ─────────────────────────────────────────────────────────────────────────────────────────────


def hash_leaf(data: bytes) -> bytes:
    """Return the hash of a leaf (RFC 6962)."""
    return hashlib.sha256(b"\0" + data).digest()


def climb(index: int, size: int, digest: bytes, hashes: list[bytes]) -> bytes:
    """Return the root that the hashes beside its path give a leaf (RFC 6962, 2.1.1)."""
    need(0 <= index < size <= MOST, "a place is outside of its tree")
    sides: list[bool] = []  # from the root down: whether the leaf is on the right
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + (1 << ((end - begin - 1).bit_length() - 1))
        sides.append(index >= middle)
        begin, end = (middle, end) if index >= middle else (begin, middle)
    need(len(sides) == len(hashes), "a proof has another number of hashes than it must")
    for is_right, beside in zip(reversed(sides), hashes, strict=True):
        pair = beside + digest if is_right else digest + beside
        digest = hashlib.sha256(b"\1" + pair).digest()
    return digest


def read_hashes(hashes: Any) -> list[bytes]:
    """Return the hashes of a proof."""
    need(isinstance(hashes, list), "a proof is no list of hashes")
    return [read_base64(each, 32) for each in hashes]


# ── an excerpt ────────────────────────────────────────────────────────────────────────────────────────


def check_seal(run: str, seal: Any, keys: dict[str, dict[str, Any]]) -> bytes:
    """Return the root of the tree over the run's records, as a key has signed it."""
    need(isinstance(seal, dict), "the seal is no object")
    texts = {"kind", "head", "kid", "at", "sig", "root"}
    needed, known = texts | {"count"}, texts | {"count", "store", "tenant", "timestamp"}
    need(needed <= seal.keys() <= known, "the seal has other fields")
    need(all(isinstance(seal[name], str) for name in texts) and is_int(seal["count"]), "the seal has other values")
    need(all(isinstance(seal.get(name), str | None) for name in ("store", "tenant")), "the seal has other values")
    need(isinstance(seal.get("timestamp", ""), str), "the seal has other values")
    need(seal["kind"] == "sealed" and TIME.fullmatch(seal["at"]), "the seal has other values")
    need(re.fullmatch(r"[0-9a-f]{64}", seal["root"]), "the seal has other values")
    kid, key = seal["kid"], keys.get(seal["kid"])
    need(key is not None, f"it is signed with the key {kid!r}, which is not given")
    assert key is not None
    signed = {name: value for name, value in seal.items() if name not in ("kind", "sig", "timestamp")}
    message = b"agent-core/seal/1\n" + compact({**signed, "run": run})
    need(is_signed(key, read_base64(seal["sig"], 64), message), f"its signature was not made with the key {kid!r}")
    check_valid(kid, key, seal["at"])
    return bytes.fromhex(seal["root"])


def check_record(entry: Any, root: bytes, size: int) -> int:
    """Return the place of a record among all of its run, once it is proven to stand there."""
    fields = {"strand", "n", "index", "salt", "record", "hashes"}
    need(isinstance(entry, dict) and entry.keys() == fields, "a record has other fields")
    need(isinstance(entry["strand"], str) and isinstance(entry["record"], str), "a record has other values")
    need(is_int(entry["n"]) and is_int(entry["index"]), "a record has other values")
    place = compact([entry["strand"], entry["n"]])
    leaf = hash_leaf(read_base64(entry["salt"], 16) + place + b"\n" + encode(entry["record"]))
    found = climb(entry["index"], size, leaf, read_hashes(entry["hashes"]))
    need(found == root, f"record {entry['n']} of strand {entry['strand']!r} does not stand in the run that was sealed")
    return int(entry["index"])


def check_ledger(ledger: Any, run: str, seal: dict[str, Any], keys: dict[str, dict[str, Any]]) -> str:
    """Return what the log says of a run, once it is proven that a log signed by a key has it."""
    fields = {"entry", "index", "hashes", "checkpoint"}
    need(isinstance(ledger, dict) and ledger.keys() == fields, "the part about the log has other fields")
    need(isinstance(ledger["entry"], str) and isinstance(ledger["checkpoint"], str), "the log has other values")
    need(is_int(ledger["index"]), "the log has other values")
    origin, size, root = read_checkpoint(ledger["checkpoint"], keys)
    found = climb(ledger["index"], size, hash_leaf(encode(ledger["entry"])), read_hashes(ledger["hashes"]))
    need(found == root, "the log that was signed does not have the entry")
    entry = read_json(ledger["entry"])
    need(isinstance(entry, dict) and entry.get("run") == run, "the entry of the log is about another run")
    need(entry.get("root") == seal["root"], "the log has the run with other records")
    return f"; {entry.get('status')} in the log {origin} of {size} entries"


def read_checkpoint(note: str, keys: dict[str, dict[str, Any]]) -> tuple[str, int, bytes]:
    """Return name, size and root of a log, once one of the keys has signed them."""
    text, blank, below = note.rpartition("\n\n")
    text, data = f"{text}\n", encode(f"{text}\n")
    parts, lines = text.split("\n"), below.split("\n")
    need(blank and len(parts) == 4 and lines.pop() == "" and 0 < len(lines) <= 100, "the checkpoint is no signed note")
    origin, size, root = parts[:3]
    need(NAME.fullmatch(origin), "the log has a name that none can have")
    need(re.fullmatch(r"0|[1-9][0-9]{0,18}", size) and int(size) <= MOST, "the log has a size that none can have")
    signatures: list[tuple[str, bytes]] = []
    for line in lines:
        found = LINE.fullmatch(line)
        need(found and NAME.fullmatch(found[1]), "a line of the checkpoint is no signature")
        assert found is not None
        signatures.append((found[1], read_base64(found[2])))
        need(len(signatures[-1][1]) > 4, "a line of the checkpoint is no signature")
    refused: str | None = None
    for kid, key in keys.items():
        tag = hashlib.sha256(origin.encode() + b"\n\1" + key["raw"]).digest()[:4]
        own = [code[4:] for name, code in signatures if name == origin and code[:4] == tag]
        if own and all(len(code) == 64 and is_signed(key, code, data) for code in own):
            try:
                check_valid(kid, key, None)
            except Fault as fault:
                refused = str(fault)
            else:
                return origin, int(size), read_base64(root, 32)
    raise Fault(refused or "the checkpoint is signed with no key that is given")


def verify(text: str, keys: dict[str, dict[str, Any]]) -> str:
    """Return what an excerpt shows, in a sentence. Fault for one that does not hold."""
    excerpt = read_json(text)
    fields = {"format", "run", "seal", "records", "ledger"}
    need(isinstance(excerpt, dict) and excerpt.keys() == fields, "it is no excerpt")
    need(excerpt["format"] == FORMAT and isinstance(excerpt["run"], str), "it is no excerpt of this format")
    run, seal, records = excerpt["run"], excerpt["seal"], excerpt["records"]
    with within("seal"):
        root = check_seal(run, seal, keys)
    with within("records"):
        need(isinstance(records, list) and records, "it shows no record")
        places = [check_record(entry, root, seal["count"]) for entry in records]
        need(all(one < other for one, other in pairwise(places)), "its records are not in their order")
    with within("ledger"):
        log = "" if excerpt["ledger"] is None else check_ledger(excerpt["ledger"], run, seal, keys)
    return f"{len(records)} of {seal['count']} records of the run {run}, sealed by {seal['kid']} at {seal['at']}{log}"


def read_excerpt(text: str) -> str:
    """Return the excerpt in a file: the file, or what a page holds."""
    _, is_page, rest = text.partition('<script type="application/json" id="excerpt">')
    held = read_json(rest.partition("</script>")[0]) if is_page else text
    need(isinstance(held, str), "the page holds no excerpt")
    return str(held)


def main(words: list[str]) -> int:
    """Verify files, and say of each what it shows."""
    if len(words) < 2:
        sys.stdout.write(f"{__doc__}\n")
        return 1
    failed = False
    try:
        with open(words[0], encoding="utf-8") as file:
            keys = read_keys(file.read())
    except (Fault, UnicodeDecodeError, OSError) as fault:
        sys.stdout.write(f"{words[0]}: no public keys: {fault}; the file of keys comes first, then the excerpts\n")
        return 1
    for name in words[1:]:
        try:
            with open(name, encoding="utf-8") as file:
                sys.stdout.write(f"{name}: ok: {verify(read_excerpt(file.read()), keys)}\n")
        except (Fault, UnicodeDecodeError, OSError) as fault:
            failed = True
            sys.stdout.write(f"{name}: NOT ok: {getattr(fault, 'part', 'file')}: {fault}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
