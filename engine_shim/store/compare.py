"""compare_run(): whether a run that was copied into another store is the same in both."""

from collections.abc import Mapping
from typing import Final, Literal

from agent_core.errors import JournalError
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Tape
from engine_shim.store.run_store import RunStore

Comparison = Literal["same", "continued", "incomplete", "missing", "parted", "damaged", "listed otherwise"]
COMPARISONS: Final[Mapping[Comparison, str]] = {
    "same": "is the same",
    "continued": "has continued since it was copied",
    "incomplete": "lacks records: the run has continued in the other store, or the copy was interrupted",
    "missing": "was not copied",
    "parted": "has other records: the run has continued in both stores",
    "damaged": "is not as it was written",
    "listed otherwise": "has the same records, and is listed with another status, workflow or time",
}
"""What each means, said of the run in the store that it was copied to."""


def compare_run(source: RunStore, target: RunStore, run: str) -> Comparison:
    """Hold a run of the source against the same run in the target."""
    there, here = source.journal.load(run), target.journal.load(run)
    entry = target.entry(run)
    if not here and entry is None:
        return "missing"
    if there == here:
        return "same" if entry == source.entry(run) else "listed otherwise"
    if begins_with(here, there):
        return "continued"
    if begins_with(there, here):
        return "incomplete"
    return "parted" if find_break(run, here) is None else "damaged"


def find_break(run: str, tape: Tape) -> str | None:
    """Return where the records of a run do not follow from each other; None where they do."""
    try:
        check_chains(run, tape)
    except JournalError as error:
        return str(error)
    return None


def begins_with(tape: Tape, beginning: Tape) -> bool:
    """Return whether a tape has all records of another one, each in its place."""
    return all(tape.get(path, [])[: len(rows)] == rows for path, rows in beginning.items())
