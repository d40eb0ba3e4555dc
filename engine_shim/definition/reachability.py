"""Reachability: the nodes that have certainly run when another one starts, or at the end. Pure.

It holds whatever the conditions of the edges come to. A node's path condition lists the choices that must all be made
for it to run, (node, alternative), each after those that its node needs to run itself. So a node has certainly run
before another one below it when its path condition is a beginning of the other's. Where branches meet that cover all
alternatives of a node, that choice drops out; where they do not, the joining node's own running is the choice.

Sets of nodes are the bits of integers, and path conditions share their beginnings: there are as many of them as nodes.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import reduce

from engine_shim.definition.errors import Problem
from engine_shim.definition.graph import Edge, Graph, reach
from engine_shim.definition.model import Definition
from engine_shim.definition.template import Placeholder

NO_EDGE, JOINED = -1, -2
"""Alternatives that are no edges: that none is taken; that the node runs at all, where branches cover no choice."""


@dataclass(eq=False, slots=True)
class PathCondition:
    """The choices above, and one more: that `source` takes its alternative `chosen`. There is one object for each."""

    above: "PathCondition | None" = None
    source: str = ""
    chosen: int = 0
    depth: int = 0
    longer: "dict[tuple[str, int], PathCondition]" = field(default_factory=dict)
    nodes: int = 0
    """The nodes with this path condition, as bits."""

    def add(self, source: str, chosen: int) -> "PathCondition":
        """This condition and one more choice."""
        if (source, chosen) not in self.longer:
            self.longer[source, chosen] = PathCondition(self, source, chosen, self.depth + 1)
        return self.longer[source, chosen]

    def beginnings(self) -> "Iterator[PathCondition]":
        """Return the condition itself, and all that it begins with."""
        each: PathCondition | None = self
        while each is not None:
            yield each
            each = each.above


@dataclass(frozen=True, slots=True)
class Reachability:
    """`before` has for each node, as bits, the nodes that have run when it starts."""

    index: Mapping[str, int]
    before: Mapping[str, int]
    at_the_end: frozenset[str]

    def has_run(self, name: str, *, before: str) -> bool:
        """Return whether a node has certainly run when another one starts."""
        return bool(self.before[before] >> self.index[name] & 1)


def reachability_of(graph: Graph) -> Reachability:
    """Return what is certain of a graph; a loop counts as it is when it is left."""
    index = {name: number for number, name in enumerate(graph.order)}
    alternatives = {name: _alternatives(graph, name) for name in graph.order}
    always = PathCondition()
    conditions: dict[str, PathCondition] = {}
    before: dict[str, int] = {}
    above: dict[str, int] = {}
    for name in graph.levels:
        edges, is_entry = graph.incoming[name], name in graph.entries
        found = {_condition(edge, conditions, alternatives) for edge in edges} | ({always} if is_entry else set())
        conditions[name] = condition = _merge(name, found, alternatives)
        sources = {edge.source: 1 << index[edge.source] for edge in edges}
        above[name] = _union(above[source] | bit for source, bit in sources.items())
        needed = _union(each.nodes for each in condition.beginnings())
        common = 0 if is_entry else _intersection(before[source] | bit for source, bit in sources.items())
        before[name] = above[name] & needed | common
        condition.nodes |= 1 << index[name]
    at_the_end = frozenset(name for name, condition in conditions.items() if condition is always)
    return Reachability(index, before, at_the_end)


def unmet_references(definition: Definition, graph: Graph, known: Reachability) -> Iterator[Problem]:
    """Placeholders that name a node which may not have run by then, or cannot have."""
    for placed in definition.placeholders:
        where, node, each = placed.where, placed.node, placed.require()
        if each.path[0] != "nodes" or each.path[1] not in graph.outgoing:
            continue
        name = each.path[1]
        if node is not None:
            yield from _reference_problems(each, where, node.id, graph, known)
        elif not each.optional and name not in known.at_the_end:
            yield Problem(where, f"{each}: {name!r} may not have run at the end; {_advice(each, where)}")


def _reference_problems(
    each: Placeholder, where: str, node: str, graph: Graph, known: Reachability
) -> Iterator[Problem]:
    source = each.path[1]
    if known.has_run(source, before=node) or (source == node and not each.optional):
        return
    below = reach(source, lambda name: [edge.target for edge in graph.outgoing[name]])
    if not any(edge.target == node for name in below for edge in graph.outgoing[name]):
        yield Problem(where, f"{each}: no path of edges leads from {source!r} to {node!r}; add an edge")
    elif not each.optional:
        yield Problem(where, f"{each}: {source!r} may not have run when {node!r} starts; {_advice(each, where)}")


def _advice(each: Placeholder, where: str) -> str:
    if where.endswith("/foreach"):
        return "foreach needs a list, so let every path lead through it, or take the list from another node"
    return f"write {each._replace(optional=True)} to get null then"


def _alternatives(graph: Graph, name: str) -> dict[int, int]:
    """Return the alternative that each edge of a node belongs to; edges that lead back belong to none."""
    found: dict[int, int] = {}
    for failed in (False, True):
        group = [edge for edge in graph.outgoing[name] if edge.on_error == failed]
        plain = [edge.index for edge in group if not edge.conditional]
        for edge in [edge for edge in group if not edge.back]:
            found[edge.index] = edge.index if edge.conditional else plain[0]
        if not failed and name in graph.ends and group and not plain:
            found[NO_EDGE] = NO_EDGE
        if failed and group and not any(not edge.on_error for edge in graph.outgoing[name]):
            found[NO_EDGE] = NO_EDGE
    return found


def _condition(
    edge: Edge, conditions: Mapping[str, PathCondition], alternatives: Mapping[str, Mapping[int, int]]
) -> PathCondition:
    """Return what must be chosen for an edge to be taken."""
    known, above = alternatives[edge.source], conditions[edge.source]
    return above.add(edge.source, known[edge.index]) if len(set(known.values())) > 1 else above


def _merge(name: str, found: Iterable[PathCondition], alternatives: Mapping[str, Mapping[int, int]]) -> PathCondition:
    """Return the path condition of a node that several branches lead to."""
    conditions = set(found)
    queue = list(conditions)
    while queue:
        condition = queue.pop()
        above = condition.above
        if above is not None and above not in conditions and _is_covered(condition, above, conditions, alternatives):
            conditions.add(above)
            queue.append(above)
    shared = reduce(_common_beginning, conditions)
    return shared if shared in conditions else shared.add(name, JOINED)


def _is_covered(
    last: PathCondition,
    above: PathCondition,
    conditions: Set[PathCondition],
    alternatives: Mapping[str, Mapping[int, int]],
) -> bool:
    """Return whether the other alternatives of a condition's last choice are there as well."""
    others = alternatives[last.source].values()
    return last.chosen != JOINED and all(above.longer.get((last.source, other)) in conditions for other in others)


def _common_beginning(one: PathCondition, other: PathCondition) -> PathCondition:
    while one is not other:
        if one.depth < other.depth:
            one, other = other, one
        assert one.above is not None  # the shortest condition has no choices, and all begin with it
        one = one.above
    return one


def _union(sets: Iterable[int]) -> int:
    return reduce(int.__or__, sets, 0)


def _intersection(sets: Iterable[int]) -> int:
    return reduce(int.__and__, sets)
