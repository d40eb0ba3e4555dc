"""write_excerpt(): some records of a store's run for a stranger, with what proves that the store's log has the run."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agent_core.audit.excerpt import make_excerpt
from agent_core.errors import DefinitionError
from agent_core.evidence.excerpts import Place
from agent_core.evidence.public_keys import Signer
from agent_core.journal.identity import read_identity
from agent_core.journal.record import Tape
from agent_core.journal.signature import signed_strands
from engine_shim.store.ledger_tree import LedgerTree, origin_of
from engine_shim.store.run_store import DatabaseRunStore
from utools.lazy_pattern import lazy_compile

WANTED: Final = "query/records"
"""Where the records are named that the run does not have."""
_WANTED: Final = lazy_compile(r"(?P<strand>[^:]+)(:(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?)?")
_ENTRIES: Final = "SELECT 1 FROM ledger WHERE run = ?"


def write_excerpt(
    run: str, tape: Tape, wanted: Sequence[str], store: DatabaseRunStore | None, signer: Signer | None
) -> str:
    """Return an excerpt of a run, in JSON.

    Args:
        run: The run's id.
        tape: Its rows; they are verified already.
        wanted: What is shown: `STRAND` for all of its records, `STRAND:N` for one, `STRAND:N-M` for several.
        store: The store that the run is in, whose log has it; None for a run in a file.
        signer: The key that signs the log's checkpoint; None leaves the log out.

    Raises:
        DefinitionError: For records that the run does not have, and for a run that cannot be shown in part.
    """
    places = frozenset(place for each in wanted for place in _find_places(each, tape))
    ledger = None if store is None or signer is None else _prove(store, run, signer)
    secret = None if store is None else store.contents.find_salt(run)
    return make_excerpt(run, tape, places, ledger, secret)


def _find_places(wanted: str, tape: Tape) -> Iterator[Place]:
    """Yield the places that a person names."""
    strands = signed_strands(tape)
    match = _WANTED.fullmatch(wanted)
    if match is None or match["strand"] not in strands:
        known = ", ".join(sorted(strands)[:8])
        message = f"write STRAND, STRAND:N or STRAND:N-M; strands are {known}"
        raise DefinitionError(message, where=WANTED, value=wanted)
    count = len(strands[match["strand"]])
    first = int(match["first"] or 0)
    last = int(match["last"] or match["first"] or count - 1)
    if not first <= last < count:
        raise DefinitionError(f"the strand has the records 0 to {count - 1}", where=WANTED, value=wanted)
    yield from ((match["strand"], n) for n in range(first, last + 1))


def _prove(store: DatabaseRunStore, run: str, signer: Signer) -> dict[str, Any] | None:
    """Return what proves that the log of a store has a run; None if it has no entry about it, as of a run that was
    copied without its ledger."""
    if not store.database.rows("ledger", _ENTRIES, run):
        return None
    tree = LedgerTree(store.database)
    checkpoint = tree.checkpoint(origin_of(read_identity(store.database.rows).store))
    proof = tree.prove(run, checkpoint.size)
    return {
        "entry": proof.data.decode(),
        "index": proof.index,
        "hashes": [base64.b64encode(each).decode() for each in proof.hashes],
        "checkpoint": checkpoint.sign(signer).write(),
    }
