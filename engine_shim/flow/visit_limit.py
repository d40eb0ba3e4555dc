"""Which visit starts next, where `max_visits` says how many there may be. Pure.

Those come first that have waited for the fewest others one after another, and of those the first in the definition's
order, whichever branch is faster. So far from the limit branches run side by side; close to it, a visit waits for those
that could come before it.
"""

from agent_core.outputs import Json
from engine_shim.flow.state import State


def next_node(state: State) -> str | None:
    """Return the node whose visit starts now; None while none may."""
    most = state.definition.max_visits
    if most is None:
        return state.schedule.first(exclusive=not state.nested_must_wait)
    name = state.schedule.first()
    if name is None or not _is_within(state, name, most):
        return None
    return None if state.is_nested(name) and state.nested_must_wait else name


def exceeded(state: State) -> Json | None:
    """Return the error of a run in which nothing more may start, though a node is ready; None for any other run."""
    most, name = state.definition.max_visits, state.schedule.first()
    if most is None or name is None:
        return None
    message = f"{name!r} was to run next, and the run has had {most} node visits, which is all that max_visits allows"
    return {"kind": "max_visits", "message": message, "where": name}


def _is_within(state: State, name: str, most: int) -> bool:
    """Return whether fewer than `most` visits come before the node's next one, whatever those that are open lead to."""
    depth, nearest = state.depth_of(name), state.nearest_open()
    later = 0 if nearest is None else max(0, depth - nearest) * len(state.nodes)
    if len(state.visits) + later < most:
        return True
    place = depth, state.index[name]
    before = sum((visit.depth, state.index[visit.node]) < place for visit in state.visits.values())
    return before + later < most
