"""Which edges a node takes once it has ended, from their conditions and what it gave. Pure."""

from dataclasses import dataclass

from engine_shim.definition.graph import Edge
from engine_shim.errors import DefinitionError
from engine_shim.flow.state import State, Visited
from utools.query import QueryError, holds, query


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A model has to say first whether this edge is taken."""

    link: Edge


Taken = tuple[Edge, ...] | Unjudged | None


def taken(state: State, visited: Visited, *, failed: bool) -> Taken:
    """The edges to take; None when a failure is nobody's to handle, so that the run fails.

    Of edges with a condition the first that holds wins, and the plain ones are the default; without any, all plain ones
    are taken. A failed node takes its `on: error` edges; one with `on_error: continue` and none of those goes on as if
    it had not failed. DefinitionError when no edge holds and the node is no end, or when a condition cannot be read.
    """
    links = state.progress.graph.outgoing[visited.node]
    if failed:
        handling = _chosen(state, visited, [link for link in links if link.on_error])
        if handling or state.nodes[visited.node].on_error == "fail":
            return handling
    usual = [link for link in links if not link.on_error]
    chosen = _chosen(state, visited, usual)
    if chosen is None and usual and visited.node not in state.progress.graph.ends:
        told = f"no edge out of {visited.node!r} holds; give it a plain edge, or list it in `ends`"
        raise DefinitionError(told, where=f"edges/{usual[-1].index}")
    return chosen or ()


def _chosen(state: State, visited: Visited, links: list[Edge]) -> Taken:
    conditional = [link for link in links if link.conditional]
    if conditional:
        names = state.names({**visited.seen, visited.node: visited.n})
        data = {"output": visited.output, "nodes": names["nodes"], "external": names["external"]}
        for link in conditional:
            if link.ask is not None and link.index not in visited.judged:
                return Unjudged(link)
            if visited.judged.get(link.index) or (link.ask is None and _holds(link, data)):
                return (link,)
    return tuple(link for link in links if not link.conditional) or None


def _holds(link: Edge, data: dict[str, object]) -> bool:
    try:
        return holds(query(link.when or "", data, clock=lambda: 0.0))
    except QueryError as error:
        raise DefinitionError(f"this condition cannot be judged: {error}", where=f"edges/{link.index}/when") from None
