"""The command key: the private key that signs runs, and the file of public keys beside it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import typer

from agent_core.evidence.ed25519 import check_installed, make_key
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.public_keys import PublicKey, PublicKeys, Signer
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.run.clock import write_time
from agent_core.run.secrets import verifying_keys
from engine_shim.cli import output
from engine_shim.cli.timespec import read_since
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from utools.files.atomic import changing

OVERLAP: Final = timedelta(days=1)
"""How long a key that was rotated away may still sign: a process that has begun to sign with it comes to its end."""


def make(file: Path, days: int | None, *, as_json: bool) -> int:
    """Write a new private key and its public one. BadParameter where one of the files is there already."""
    check_installed("key")
    if file.is_dir():
        raise typer.BadParameter(f"{file} is a directory; name a file in it, such as {file / 'desk.key'}")
    beside = public_file(file)
    for each in (file, beside):
        if each.exists():
            hint = f"`agent-core key rotate {file}` puts a new key in its place" if each == file else "move it away"
            raise typer.BadParameter(f"{each} is there already; {hint}")
    try:
        key = _valid_from_now(make_key_file(file), days)
        replace_text(beside, PublicKeys.of(key).write())
    except OSError as error:
        raise typer.BadParameter(f"{error.filename or file} cannot be written: {error.strerror}") from None
    _tell([key], file, as_json=as_json)
    if not as_json:
        output.line(f"export {KEY_VARIABLE}={file.absolute()}")
        output.line(f"whoever is to check runs needs {beside}: `agent-core verify RUN --key {beside}`")
    return output.OK


def show(file: Path | None, *, as_json: bool) -> int:
    """Print the public keys of a file, or those of this host. BadParameter where there are none."""
    if file is not None:
        keys = _files_of(file).public_keys()
    else:
        load_environment(find_host_config())
        host = verifying_keys()
        keys = PublicKeys() if host is None else host.public
    if not keys.keys:
        raise typer.BadParameter(f"{KEY_VARIABLE} is not set here; name the FILE of a key")
    return output.answer([_as_data(key) for key in keys.keys.values()], keys.write().rstrip(), as_json=as_json)


def rotate(file: Path, days: int | None, *, as_json: bool) -> int:
    """Put a new private key into a file. Its public file has both keys first, so that a death in between loses nothing
    that was signed."""
    pem = make_key()
    signer = KeyFiles(pem).signer()
    assert signer is not None
    with changing(public_file(file)):
        old, known = _signer_of(file), _files_of(file).public_keys()
        now = datetime.now(UTC)
        before = known.keys[old.kid]
        ends = min(filter(None, (before.until, write_time(now + OVERLAP))))
        new = _valid_from_now(PublicKey(signer.public), days, now)
        kept = {**known.keys, old.kid: replace(before, until=ends), new.kid: new}
        replace_text(public_file(file), PublicKeys(kept).write())
        replace_text(file, pem, 0o600)
    _tell([kept[old.kid], new], file, as_json=as_json)
    if not as_json:
        output.line(f"{file} signs with {new.kid}; give {public_file(file)} to whoever checks runs")
    return output.OK


def revoke(file: Path, identity: str, since: str | None, reason: str | None, *, as_json: bool) -> int:
    """Note in the public file that a key is revoked. BadParameter for a key that is not in it."""
    target = file if file.suffix == ".pub" else public_file(file)
    with changing(target):
        known = _files_of(file).public_keys()
        if identity not in known.keys:
            raise typer.BadParameter(f"{target} has no key {identity!r}, only {', '.join(known.keys)}")
        if reason is not None and (not reason.strip() or len(reason.splitlines()) != 1):
            raise typer.BadParameter("--reason is one line")
        at = read_since(since) or datetime.now(UTC)
        key = replace(known.keys[identity], revoked=write_time(at), reason=None if reason is None else reason.strip())
        replace_text(target, PublicKeys({**known.keys, identity: key}).write())
    _tell([key], file, as_json=as_json)
    if not as_json:
        output.line(f"give {target} to whoever checks runs; what this key signed is proven no more")
    return output.OK


def _files_of(file: Path) -> KeyFiles:
    """Return the keys of a private key's file, or of one of public keys."""
    check_installed("key")
    return KeyFiles(trusted=str(file)) if file.suffix == ".pub" else KeyFiles(str(file))


def _signer_of(file: Path) -> Signer:
    signer = _files_of(file).signer()
    if signer is None:
        raise typer.BadParameter(f"{file} has public keys; name the file of the private one")
    return signer


def _valid_from_now(key: PublicKey, days: int | None, now: datetime | None = None) -> PublicKey:
    now = now or datetime.now(UTC)
    return replace(key, since=write_time(now), until=None if days is None else write_time(now + timedelta(days=days)))


def _tell(keys: Sequence[PublicKey], file: Path, *, as_json: bool) -> None:
    if as_json:
        output.document({"file": str(file), "keys": [_as_data(key) for key in keys]})
        return
    for key in keys:
        output.line("  ".join(filter(None, (key.kid, _describe(key)))))


def _describe(key: PublicKey) -> str:
    if key.revoked is not None:
        return f"revoked, since {key.revoked}"
    return ", ".join(
        part for part in (key.since and f"valid from {key.since}", key.until and f"until {key.until}") if part
    )


def _as_data(key: PublicKey) -> dict[str, Any]:
    told = {"valid_from": key.since, "valid_until": key.until, "revoked_since": key.revoked, "reason": key.reason}
    return {"id": key.kid, **told, "pem": PublicKeys.of(PublicKey(key.raw)).write().partition("\n")[2]}
