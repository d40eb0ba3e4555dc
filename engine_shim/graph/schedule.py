"""schedule(): which nodes may start, from the definition and the set of finished ones, and nothing else. Pure."""

from collections.abc import Mapping, Set
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
    """The graph of a definition; DefinitionError for a placeholder to an unknown node, or a circle."""
    order = tuple(node.id for node in definition.nodes)
    referenced = {node.id: _references(node, index, set(order)) for index, node in enumerate(definition.nodes)}
    if definition.edges is None:
        before = {name: frozenset(names) for name, names in referenced.items()}
    else:
        before = {name: frozenset(e.source for e in definition.edges if e.target == name) for name in order}
    graph = Graph(order, before)
    _refuse_circles(graph)
    if definition.edges is not None:
        _refuse_early_references(graph, referenced, order)
    return graph


def _references(node: Node, index: int, known: Set[str]) -> set[str]:
    """The nodes whose outputs a node's config names."""
    names = set()
    for where, path in placeholders(node.config, f"nodes/{index}/config"):
        if path[0] != "nodes":
            continue
        if path[1] not in known or path[1] == node.id:
            told = f"no such node before this one; there are {', '.join(sorted(known - {node.id})) or 'none'}"
            raise DefinitionError(told, where=where, value=f"{{{{{'.'.join(path)}}}}}")
        names.add(path[1])
    return names


def _refuse_circles(graph: Graph) -> None:
    finished: set[str] = set()
    while ready := schedule(graph, finished):
        finished.update(ready)
    if stuck := [name for name in graph.order if name not in finished]:
        raise DefinitionError(f"these nodes wait for one another: {', '.join(stuck)}", where="nodes")


def _refuse_early_references(graph: Graph, referenced: Mapping[str, set[str]], order: tuple[str, ...]) -> None:
    """With edges given, a placeholder may only name a node that has run by then."""
    for index, name in enumerate(order):
        missing = sorted(referenced[name] - _ancestors(graph, name))
        if missing:
            told = f"the node {missing[0]!r} need not have run before {name!r}: no path of edges leads there"
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
