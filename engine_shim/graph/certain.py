"""Which nodes have certainly run when another one starts, or at the end, whatever the conditions come to. Pure.

A node's guard is the set of choices that must all be made for it to run: (node, alternative). Where branches meet that
cover all alternatives of a node, that choice drops out; where they do not, the node's own running is the choice.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from engine_shim.graph.definition import Definition
from engine_shim.graph.problem import Problem
from engine_shim.graph.shape import Graph, Link, reach
from engine_shim.graph.template import Placeholder, placeholders

Guard = frozenset[tuple[str, int]]
ALWAYS: Guard = frozenset()
NONE, MET = -1, -2
"""No edge is taken; and what stands for the ways to a node that cannot be told by choices."""


@dataclass(frozen=True, slots=True)
class Certain:
    """`before` has for each node those that have run when it starts; `guards` what has to be chosen for it to run."""

    before: Mapping[str, frozenset[str]]
    guards: Mapping[str, Guard]

    @property
    def at_the_end(self) -> frozenset[str]:
        return frozenset(name for name, guard in self.guards.items() if guard == ALWAYS)


def certain(graph: Graph) -> Certain:
    """What is certain of a graph, by its conditions alone; a loop counts as it stands when it is left."""
    alternatives = {name: _alternatives(graph, name) for name in graph.order}
    before: dict[str, frozenset[str]] = {}
    guards: dict[str, Guard] = {}
    for name in graph.levels:
        ways = [(_guard(link, guards, alternatives), link) for link in graph.incoming[name]]
        met = {guard for guard, _ in ways} | ({ALWAYS} if name in graph.entries else set())
        guards[name] = guard = _merged(name, met, alternatives)
        ran = [(way, before[link.source] | {link.source}) for way, link in ways]
        sure = [names for way, names in ran if way <= guard]
        common = [] if name in graph.entries or not ran else [frozenset.intersection(*(names for _, names in ran))]
        before[name] = frozenset().union(*sure, *common)
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


def _guard(link: Link, guards: Mapping[str, Guard], alternatives: Mapping[str, Mapping[int, int]]) -> Guard:
    known = alternatives[link.source]
    chosen = known[link.index]
    return guards[link.source] | ({(link.source, chosen)} if len(set(known.values())) > 1 else ALWAYS)


def _merged(name: str, met: Iterable[Guard], alternatives: Mapping[str, Mapping[int, int]]) -> Guard:
    """The guard of a node that several branches lead to."""
    guards = set(met)
    while more := _covered(guards, alternatives) - guards:
        guards |= more
    least = [guard for guard in guards if all(guard <= other for other in guards)]
    return least[0] if least else frozenset({(name, MET)})


def _covered(guards: Set[Guard], alternatives: Mapping[str, Mapping[int, int]]) -> set[Guard]:
    """What guards share that together hold every alternative of a choice."""
    return {
        guard - {(source, chosen)}
        for guard in guards
        for source, chosen in guard
        if chosen != MET
        and all(guard - {(source, chosen)} | {(source, other)} in guards for other in alternatives[source].values())
    }
