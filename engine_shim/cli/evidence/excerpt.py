"""The command export --records: some records of a run, with what proves them to a stranger."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from agent_core.audit.excerpt import make_excerpt
from agent_core.audit.verify import verify
from agent_core.errors import JournalError
from agent_core.evidence.ed25519 import check_installed
from agent_core.evidence.excerpts import Place
from agent_core.evidence.public_keys import Signer
from agent_core.journal.identity import read_identity
from agent_core.journal.record import Tape
from agent_core.journal.signature import signed_strands
from engine_shim.cli import output, terminal
from engine_shim.cli.evidence.ledger import find_signer
from engine_shim.cli.records.recorded import Recorded, find_recorded
from engine_shim.store.ledger_tree import LedgerTree, origin_of
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress
from utools.lazy_pattern import lazy_compile

_WANTED: Final = lazy_compile(r"(?P<strand>[^:]+)(:(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?)?")


def export_excerpt(
    run: str, wanted: Sequence[str], address: StoreAddress | None, target: str | None, *, as_json: bool
) -> int:
    """Write an excerpt of a run, and say where it is. BadParameter for records that it does not have."""
    check_installed("--records")
    recorded = find_recorded(run, address)
    name, tape = load_sound(recorded)
    places = [place for each in wanted for place in _find_places(each, tape)]
    text = make_excerpt(name, tape, frozenset(places), _find_in_log(recorded, name))
    return write_file(name, text, target or f"{name}.json", as_json=as_json, told={"records": len(set(places))})


def write_file(run: str, text: str, path: str, *, as_json: bool, told: Mapping[str, Any] | None = None) -> int:
    """Write what is given to others of a run, and say where it is. BadParameter for a place that cannot be written."""
    if path == "-":
        terminal.out().write(text)
        return output.OK
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}") from None
    if as_json:
        output.document({"run": run, "path": path, **(told or {})})
    else:
        output.line(path)
    return output.OK


def load_sound(recorded: Recorded) -> tuple[str, Tape]:
    """Return a run's id and rows, of which each is as it was written. JournalError for a run that is damaged."""
    name, tape = recorded.load()
    found = verify(recorded.source, run_id=recorded.run_id)
    if found.first_bad:
        raise JournalError(f"the run {name!r} is damaged, and nothing is said of it to others: {found.why}")
    return name, tape


def _find_places(wanted: str, tape: Tape) -> Iterator[Place]:
    """Yield the places that a person names: a whole strand, one record of it, or several. BadParameter for none."""
    strands = signed_strands(tape)
    match = _WANTED.fullmatch(wanted)
    if match is None or match["strand"] not in strands:
        known = ", ".join(sorted(strands)[:8])
        raise typer.BadParameter(f"--records {wanted}: write STRAND, STRAND:N or STRAND:N-M; strands are {known}")
    count = len(strands[match["strand"]])
    first = int(match["first"] or 0)
    last = int(match["last"] or match["first"] or count - 1)
    if not first <= last < count:
        raise typer.BadParameter(f"--records {wanted}: the strand has the records 0 to {count - 1}")
    yield from ((match["strand"], n) for n in range(first, last + 1))


def _find_in_log(recorded: Recorded, run: str) -> dict[str, Any] | None:
    """Return what proves that the log of the store has the run; None for a run in a file."""
    if recorded.store is None:
        return None
    return _prove(recorded.store, run, find_signer())


def _prove(store: DatabaseRunStore, run: str, signer: Signer) -> dict[str, Any]:
    tree = LedgerTree(store.database)
    checkpoint = tree.checkpoint(origin_of(read_identity(store.database.rows).store))
    proof = tree.prove(run, checkpoint.size)
    return {
        "entry": proof.data.decode(),
        "index": proof.index,
        "hashes": [base64.b64encode(each).decode() for each in proof.hashes],
        "checkpoint": checkpoint.sign(signer).write(),
    }
