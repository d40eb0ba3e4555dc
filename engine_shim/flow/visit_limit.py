"""Which visit starts next, where `max_visits` says how many there may be. Pure.

The visits nearest to the start come first, those as near in the definition's order, whichever branch is faster. So far
from the limit branches run side by side; close to it, a visit waits for those that could come before it.
"""

from collections.abc import Iterator

from agent_core.effects import Json
from engine_shim.flow.state import State, VisitState

Place = tuple[int, int]
"""Where a visit stands among all: its distance from the start, and its node's number."""


def next_node(state: State) -> str | None:
    """The node whose visit starts now; None while none may."""
    most = state.definition.max_visits
    if most is None:
        return state.schedule.first(exclusive=not state.nested_must_wait)
    ready = _first_ready(state)
    if ready is None or not _is_within(state, ready, most):
        return None
    name = state.graph.order[ready[1]]
    return None if state.is_nested(name) and state.nested_must_wait else name


def exceeded(state: State) -> Json | None:
    """The error of a run in which nothing more may start, though a node is ready; None for any other run."""
    most, ready = state.definition.max_visits, _first_ready(state)
    if most is None or ready is None:
        return None
    name = state.graph.order[ready[1]]
    message = f"{name!r} was to run next, and the run has had {most} node visits, which is all that max_visits allows"
    return {"kind": "max_visits", "message": message, "where": name}


def _first_ready(state: State) -> Place | None:
    return min(((state.rank_of(name), state.index[name]) for name in state.schedule.ready()), default=None)


def _is_within(state: State, place: Place, most: int) -> bool:
    """Whether fewer than `most` visits come before this one, whatever those that are open lead to."""
    rank, _ = place
    nearest = min((visit.rank for visit in _open_visits(state)), default=rank)
    later = max(0, rank - nearest) * len(state.nodes)
    if len(state.visits) + later < most:
        return True
    before = sum((visit.rank, state.index[visit.node]) < place for visit in state.visits.values())
    return before + later < most


def _open_visits(state: State) -> Iterator[VisitState]:
    """The visits that may still lead to others."""
    state.open = {key for key in state.open if not state.visits[key].is_closed}
    return (state.visits[key] for key in state.open)
