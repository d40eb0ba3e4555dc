"""causes_of(): the strands from whose ends a visit of a workflow follows. Pure."""

from agent_core.effects import Visit
from agent_core.journal.path import attempt, child
from agent_core.journal.strand import Strand


def causes_of(strand: Strand, visit: Visit) -> tuple[str, ...]:
    """Return the strands whose ends let this visit begin."""
    own = child(strand.path, visit.node, visit.n)
    if visit.attempt:
        return (attempt(own, visit.attempt - 1),)
    earlier = [child(strand.path, node, n) for node, n in visit.after]
    return tuple(_last_attempt(strand, path) for path in earlier)


def _last_attempt(strand: Strand, path: str) -> str:
    k = 0
    while attempt(path, k + 1) in strand.run.strands:
        k += 1
    return attempt(path, k)
