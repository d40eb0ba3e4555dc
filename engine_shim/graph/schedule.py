"""schedule(): which nodes may start, from the definition and the set of finished ones, and nothing else. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from engine_shim.errors import DefinitionError
from engine_shim.graph.definition import Definition, Node
from engine_shim.graph.template import placeholders


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes in the definition's order, and for each those that it waits for."""

    order: tuple[str, ...]
    before: Mapping[str, frozenset[str]]

    def ranks(self) -> dict[str, tuple[int, int]]:
        """A place for every node, the same on every run: how deep it stands, then the definition's order."""
        depth: dict[str, int] = {}
        while len(depth) < len(self.order):
            for name in self.order:
                if name not in depth and self.before[name] <= depth.keys():
                    depth[name] = max((depth[other] + 1 for other in self.before[name]), default=0)
        return {name: (depth[name], index) for index, name in enumerate(self.order)}


def schedule(graph: Graph, finished: Set[str]) -> list[str]:
    """The nodes that are not finished and whose every predecessor is, in the definition's order."""
    return [name for name in graph.order if name not in finished and graph.before[name] <= finished]


def graph_of(definition: Definition) -> Graph:
    """The graph of a definition; DefinitionError for a circle, or a placeholder to a node that need not run before."""
    order = tuple(node.id for node in definition.nodes)
    nodes = enumerate(definition.nodes)
    referenced = {node.id: _references(node, f"nodes/{index}/config", order) for index, node in nodes}
    if definition.edges is None:
        graph = Graph(order, referenced)
    else:
        edges = definition.edges
        graph = Graph(order, {name: frozenset(edge.source for edge in edges if edge.target == name) for name in order})
    _refuse_circles(graph)
    if definition.edges is not None:
        _refuse_early_references(graph, referenced)
    return graph


def _references(node: Node, where: str, known: Sequence[str]) -> frozenset[str]:
    """The other nodes whose outputs a node's config names."""
    named = {path[1] for _, path in placeholders(node.config, where) if path[0] == "nodes"}
    return frozenset(named.intersection(known) - {node.id})


def _refuse_circles(graph: Graph) -> None:
    finished: set[str] = set()
    while ready := schedule(graph, finished):
        finished.update(ready)
    stuck = [name for name in graph.order if name not in finished]
    if stuck:
        told = " → ".join(_circle(graph, stuck))
        raise DefinitionError(f"these nodes wait for one another, and loops are not built yet: {told}", where="nodes")


def _circle(graph: Graph, stuck: Sequence[str]) -> list[str]:
    """One circle, in the direction of the run: each stuck node waits for another one."""
    walked = [stuck[0]]
    while walked.count(walked[-1]) == 1:
        walked.append(next(name for name in stuck if name in graph.before[walked[-1]]))
    return walked[walked.index(walked[-1]) :][::-1]


def _refuse_early_references(graph: Graph, referenced: Mapping[str, Set[str]]) -> None:
    """With edges given, a placeholder may only name a node that has run by then."""
    for index, name in enumerate(graph.order):
        missing = sorted(referenced[name] - _ancestors(graph, name))
        if missing:
            told = f"takes the output of {missing[0]!r}, but no path of edges leads from there to {name!r}; add an edge"
            raise DefinitionError(told, where=f"nodes/{index}/config")


def _ancestors(graph: Graph, name: str) -> set[str]:
    found: set[str] = set()
    queue = list(graph.before[name])
    while queue:
        other = queue.pop()
        if other not in found:
            found.add(other)
            queue.extend(graph.before[other])
    return found
