"""causes_of(): the strands from whose ends a visit of a workflow follows. Pure."""

from agent_core.effects import Visit
from agent_core.journal.path import attempt, child, last_attempt
from agent_core.journal.strand import Strand


def causes_of(strand: Strand, visit: Visit) -> tuple[str, ...]:
    """Return the strands whose ends let this visit begin."""
    own = child(strand.path, visit.node, visit.n)
    if visit.attempt:
        return (attempt(own, visit.attempt - 1),)
    earlier = [child(strand.path, node, n) for node, n in visit.after]
    return tuple(last_attempt(path, strand.run.strands) for path in earlier)
