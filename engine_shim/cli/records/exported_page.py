"""unpack_page(): the journal in a page that `export` wrote, as a file of its own; find_excerpt(): the excerpt;
find_other(): what a file is that holds neither."""

import atexit
import json
import shutil
import tempfile
from pathlib import Path

import typer

EXCERPT = ".json"
"""How the name of an excerpt's file ends."""
PAGE = ".html"
_LONGEST = 2**24
"""Bytes of a file that is looked at for what it is."""
AN_EXCERPT = "an excerpt, which shows its records itself; `agent-core verify FILE --key FILE.pub` checks it"
_PROOF = (
    "what `ledger proof` wrote, for programs that read proofs of RFC 6962; `agent-core export RUN --records` writes "
    "the same into an excerpt, which `verify` and `verify_evidence.py` check"
)
_CHECKPOINT = "a checkpoint; `agent-core verify --all --checkpoint FILE` holds a store against it"
_STATEMENT = "a signed in-toto statement; a program that reads DSSE envelopes checks it by the public key"
_RECEIPTS = "a list of receipts of calls; a program that reads agent receipts checks them by the public key"
_KEYS = "a file of public keys; name it by --key"


def find_excerpt(path: Path) -> str | None:
    """Return the excerpt in a file, or in a page of it; None for another file, or none. PageDamaged for a page whose
    excerpt cannot be read any more."""
    if path.suffix not in (EXCERPT, PAGE) or not path.is_file():
        return None
    if path.suffix == EXCERPT:
        return path.read_text("utf-8", "surrogateescape")
    from engine_shim.web.run_page import read_excerpt_page

    return read_excerpt_page(path.read_bytes().decode(errors="backslashreplace"), path.name)


def unpack_page(page: Path) -> Path:
    """Write the journal of a page to a file that is gone when the process ends.

    BadParameter for a page without one, PageDamaged for one whose journal cannot be read any more.
    """
    from engine_shim.web.run_page import read_run_page

    try:
        text = page.read_bytes().decode(errors="backslashreplace")  # bytes that are no text are damage of their line
    except OSError as error:
        raise typer.BadParameter(f"{page} cannot be read: {error}") from None
    journal = read_run_page(text, page.name)
    if journal is None:
        raise typer.BadParameter(f"{page} is no run that `agent-core export` wrote: it holds no journal")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, f"{page.stem}.jsonl")
    path.write_bytes(journal)
    return path


def find_other(path: Path) -> str | None:
    """Return what a file is that a command wrote for others to check, and what checks it; None for a journal, and for
    what no command wrote."""
    if path.suffix in (".jsonl", ".db", ".sqlite", PAGE) or not path.is_file() or path.stat().st_size > _LONGEST:
        return None
    text = path.read_text("utf-8", "replace")
    if "-----BEGIN PUBLIC KEY-----" in text:
        return _KEYS
    if text.startswith("agent-core/") and "\n\n\u2014 " in text:
        return _CHECKPOINT
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match held:
        case {"format": "agent-core/excerpt/1"}:
            return AN_EXCERPT
        case {"format": "agent-core/ledger-proof/1"}:
            return _PROOF
        case {"payload": str(), "payloadType": str()}:
            return _STATEMENT
        case [{"type": [*_, "AgentReceipt"]}, *_]:
            return _RECEIPTS
        case _:
            return None
