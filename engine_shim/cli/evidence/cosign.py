"""The command ledger cosign: a second host follows the log of another one, and signs what it has seen."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from agent_core.evidence.checkpoints import Checkpoint, cosign, find_log_fault
from agent_core.evidence.key_files import replace_text
from agent_core.evidence.merkle import is_consistent, prove_consistency, root_of
from agent_core.evidence.notes import Note, NoteError
from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.tiles import TileReader
from engine_shim.cli import output
from engine_shim.cli.evidence.ledger import read_checkpoint, require_signer
from engine_shim.cli.records.audit import keys_of
from utools.files.atomic import changing

if TYPE_CHECKING:
    import httpx2

TOKEN: Final = "AGENT_CORE_LEDGER_TOKEN"
"""The variable with the token that the other host asks for, with the scope `read`."""
PATIENCE_S: Final = 30.0
MOST_BYTES: Final = 32 * 2**20


def cosign_log(url: str, kept: Path, key: Path | None, *, as_json: bool) -> int:
    """Fetch how the log at a URL is now, and sign it if it has only grown since what was kept, which it replaces.

    BadParameter where no key of the log is given, and where it cannot be fetched.
    """
    if key is None:
        raise typer.BadParameter("cosign needs --key FILE.pub: the public keys of the host whose log it is")
    trusted, signer = keys_of(None, key), require_signer()
    keys = PublicKeys() if trusted is None else trusted.public
    if not kept.parent.is_dir():
        raise typer.BadParameter(f"--to {kept} cannot be written: there is no directory {kept.parent}")
    while True:  # until nothing else was seen meanwhile, which this look would replace by less
        last = _read_last(kept)
        note, now, why = _look_at(url, keys, last)
        if why is not None or _replace(kept, last, cosign(note, signer.kid, signer, int(time.time()))):
            break
    known = 0 if last is None else last.size
    if as_json:
        output.document({"ok": why is None, "why": why, "log": now.origin, "old": known, "new": now.size})
    elif why is None:
        output.line(f"ok: {now.origin} has {now.size:,} entries, {known:,} of them seen before; signed into {kept}")
    else:
        output.line(f"NOT ok: {why}")
    return output.OK if why is None else output.AUDIT


def _read_last(kept: Path) -> Checkpoint | None:
    return read_checkpoint(kept)[1] if kept.exists() else None


def _replace(kept: Path, last: Checkpoint | None, note: Note) -> bool:
    """Write what was seen, unless something else than the last was seen meanwhile. It locks the directory, on which
    other commands wait, for no longer than that."""
    with changing(kept):
        if _read_last(kept) != last:
            return False
        try:
            replace_text(kept, note.write())
        except OSError as error:
            raise typer.BadParameter(f"--to {kept} cannot be written: {error.strerror}") from None
    return True


def _look_at(url: str, keys: PublicKeys, last: Checkpoint | None) -> tuple[Note, Checkpoint, str | None]:
    """Return what `_look` does of the log at a URL. BadParameter where it cannot be fetched."""
    import httpx2

    token = os.environ.get(TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = f"{url.rstrip('/')}/ledger/"
    try:
        with httpx2.Client(headers=headers, timeout=PATIENCE_S) as client:
            return _look(lambda path: _fetch(client, base + path), keys, last)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise typer.BadParameter(f"{base} cannot be fetched: {error or type(error).__name__}") from None


def _look(
    fetch: Callable[[str], bytes], keys: PublicKeys, last: Checkpoint | None
) -> tuple[Note, Checkpoint, str | None]:
    """Return the checkpoint of a log, and why it is not one that follows from the last one that was seen."""
    try:
        note = Note.read(fetch("checkpoint").decode("utf-8", "replace"))
        now = Checkpoint.read(note.text)
    except NoteError as error:
        raise typer.BadParameter(f"the log has no checkpoint: {error}") from None
    return note, now, find_log_fault(note, keys) or _find_break(now, last, fetch)


def _find_break(now: Checkpoint, last: Checkpoint | None, fetch: Callable[[str], bytes]) -> str | None:
    """Return why a log did not grow out of the last one that was seen."""
    if last is not None and last.origin != now.origin:
        return f"the log is {now.origin}, and the one that was seen is {last.origin}"
    if last is not None and last.size > now.size:
        was = f"the log has {now.size:,} entries, and had {last.size:,}"
        return f"{was}: it was cut off, or an older copy of the store was put back"
    reader = TileReader(now.size, lambda tile: fetch(tile.path))
    try:
        if root_of(now.size, reader.find) != now.root:
            return "the tiles of the log do not have the root that its checkpoint has"
        proof = [] if last is None else prove_consistency(last.size, now.size, reader.find)
    except ValueError as error:
        return f"the tiles of the log: {error}"
    if last is not None and not is_consistent(last.size, now.size, last.root, now.root, proof):
        which = f"the first {last.size:,} entries of the log are not those that were seen"
        return f"{which}: it was written anew, or an older copy of the store went on"
    return None


def _fetch(client: "httpx2.Client", url: str) -> bytes:
    """Return what is at a URL. BadParameter for an answer that is none."""
    with client.stream("GET", url) as answer:
        if answer.status_code != 200:
            answer.read()
            raise typer.BadParameter(f"{url} answered {answer.status_code}: {answer.text[:200]}")
        data = bytearray()
        for piece in answer.iter_bytes():
            data += piece
            if len(data) > MOST_BYTES:
                raise typer.BadParameter(f"{url} answers with more than {MOST_BYTES:,} bytes")
    return bytes(data)
