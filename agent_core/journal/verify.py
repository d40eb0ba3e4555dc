"""Whether a recorded run is whole: its chains, the strands that its records close, and its head."""

from dataclasses import dataclass
from typing import Any, Final, get_args

from agent_core.journal.record import Kind, within
from agent_core.journal.source import Source, open_source

_KINDS: Final = frozenset(get_args(Kind))
_NOTHING: Final = "it is no record"


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found out.

    `first_bad` is {"strand", "n", "line"} of the first damage, each None where it is not known (only a JSONL
    file has lines). `head` and `count` are those of the run, or of the strand asked for as its node emits them.
    `why` says in a sentence what keeps the run from being ok.
    """

    ok: bool
    complete: bool
    torn: bool
    first_bad: dict[str, Any] | None
    head: str
    count: int
    why: str | None


def verify(
    source: Source,
    *,
    run_id: str | None = None,
    strand: str | None = None,
    head: str | None = None,
    count: int | None = None,
) -> Verification:
    """Whether a run is as it was written, and finished or at the `head` that a node emitted.

    `strand` narrows this to one node's strand and those below it. Damage is told, never raised; `JournalError`
    is raised when there is no such source or run, or when `run_id` is needed to tell several runs apart.
    """
    contents = open_source(source, run_id)
    root = strand if strand is not None else next((path for path in contents.tape if "/" not in path), "")
    tape = {path: rows for path, rows in contents.tape.items() if strand is None or within(path, strand)}
