"""Which nodes have certainly run when another one starts, or at the end, whatever the conditions come to. Pure.

A node's guard has the choices that must all be made for it to run, (node, alternative), each behind those that its
node needs to run itself: so what certainly ran with it is told by the beginnings of its guard. Where branches meet that
cover all alternatives of a node, that choice drops out; where they do not, the node's own running is the choice.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import takewhile

from engine_shim.definition.errors import Problem
from engine_shim.definition.graph import Edge, Graph, reach
from engine_shim.definition.model import Definition
from engine_shim.definition.template import Placeholder, placeholders

PathCondition = tuple[tuple[str, int], ...]
ALWAYS: PathCondition = ()
NONE, MET = -1, -2
"""No edge is taken; and what stands for the ways to a node that cannot be told by choices."""


@dataclass(frozen=True, slots=True)
class Certain:
    """`before` has for each node those that have run when it starts; `guards` what has to be chosen for it to run."""

    before: Mapping[str, frozenset[str]]
    guards: Mapping[str, PathCondition]

    @property
    def at_the_end(self) -> frozenset[str]:
        return frozenset(name for name, guard in self.guards.items() if guard == ALWAYS)


def certain(graph: Graph) -> Certain:
    """What is certain of a graph, by its conditions alone; a loop counts as it stands when it is left."""
    alternatives = {name: _alternatives(graph, name) for name in graph.order}
    before: dict[str, frozenset[str]] = {}
    above: dict[str, frozenset[str]] = {}
    guards: dict[str, PathCondition] = {}
    for name in graph.levels:
        links = graph.incoming[name]
        met = {_guard(link, guards, alternatives) for link in links} | ({ALWAYS} if name in graph.entries else set())
        guards[name] = guard = _merged(name, met, alternatives)
        above[name] = frozenset().union(*(above[link.source] | {link.source} for link in links))
        sure = {other for other in above[name] if guard[: len(guards[other])] == guards[other]}
        ways = [] if name in graph.entries else [before[link.source] | {link.source} for link in links]
        before[name] = frozenset(sure.union(frozenset.intersection(*ways) if ways else ()))
    return Certain(before, guards)


def too_early(definition: Definition, graph: Graph) -> Iterator[Problem]:
    """Placeholders that name a node which may not have run by then, or that cannot have."""
    known = certain(graph)
    for index, node in enumerate(definition.nodes):
        for where, each in placeholders(node.config, f"nodes/{index}/config"):
            if each.path[0] == "nodes" and each.path[1] in graph.order:
                yield from _judged(each, where, node.id, graph, known.before[node.id])
    for where, each in placeholders(definition.outputs, "outputs"):
        if each.path[0] == "nodes" and not each.optional and each.path[1] in set(graph.order) - known.at_the_end:
            yield Problem(where, f"{each}: {each.path[1]!r} may not have run at the end; {_optional(each)}")


def _judged(each: Placeholder, where: str, node: str, graph: Graph, before: frozenset[str]) -> Iterator[Problem]:
    source = each.path[1]
    if source in before or (source == node and not each.optional):
        return
    later = [link.target for link in graph.outgoing[source]]
    if not any(node in reach(name, lambda n: [link.target for link in graph.outgoing[n]]) for name in later):
        yield Problem(where, f"{each}: no path of edges leads from {source!r} to {node!r}; add an edge")
    elif not each.optional:
        yield Problem(where, f"{each}: {source!r} may not have run when {node!r} starts; {_optional(each)}")


def _optional(each: Placeholder) -> str:
    return f"write {{{{{'.'.join(each.path)}?}}}} to get null then"


def _alternatives(graph: Graph, name: str) -> dict[int, int]:
    """The alternative that each edge of a node belongs to; those that go round a loop again are none."""
    found: dict[int, int] = {}
    for failed in (False, True):
        group = [link for link in graph.outgoing[name] if link.on_error == failed]
        plain = [link for link in group if not link.conditional]
        for link in [link for link in group if not link.back]:
            found[link.index] = plain[0].index if link in plain else link.index
        if not failed and name in graph.ends and group and not plain:
            found[NONE] = NONE
        if failed and group and not any(not link.on_error for link in graph.outgoing[name]):
            found[NONE] = NONE
    return found


def _guard(
    link: Edge, guards: Mapping[str, PathCondition], alternatives: Mapping[str, Mapping[int, int]]
) -> PathCondition:
    known = alternatives[link.source]
    chosen = known[link.index]
    return (*guards[link.source], (link.source, chosen)) if len(set(known.values())) > 1 else guards[link.source]


def _merged(name: str, met: Iterable[PathCondition], alternatives: Mapping[str, Mapping[int, int]]) -> PathCondition:
    """The guard of a node that several branches lead to."""
    guards = set(met)
    queue = list(guards)
    while queue:
        guard = queue.pop()
        above = guard[:-1]
        if above not in guards and _covered(guard, guards, alternatives):
            guards.add(above)
            queue.append(above)
    ends = zip(min(guards), max(guards), strict=False)  # what these two share, all share
    shared = tuple(one for one, _ in takewhile(lambda each: each[0] == each[1], ends))
    return shared if shared in guards else (*shared, (name, MET))


def _covered(guard: PathCondition, guards: Set[PathCondition], alternatives: Mapping[str, Mapping[int, int]]) -> bool:
    """Whether the other alternatives of a guard's last choice are there as well."""
    *above, (source, chosen) = guard
    return chosen != MET and all((*above, (source, other)) in guards for other in alternatives[source].values())
