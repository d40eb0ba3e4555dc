"""The shape of a workflow: its edges, which of them lead back, the loops that they close, and what is wrong. Pure.

An edge leads back when its target is on the depth-first path from the entries, in the definition's order. The body of
its loop is its target, the head, and all that stands between the head and its source.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from engine_shim.definition.errors import Problem, refuse
from engine_shim.definition.model import Definition
from engine_shim.definition.template import placeholders


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge as the run sees it. `index` is its place in the definition, or among those the placeholders imply."""

    index: int
    source: str
    target: str
    when: str | None = None
    ask: str | None = None
    on_error: bool = False
    back: bool = False

    @property
    def conditional(self) -> bool:
        return self.when is not None or self.ask is not None


@dataclass(frozen=True, slots=True)
class Loop:
    """What an edge that leads back closes. `body` holds its head and its source, too."""

    link: Edge
    body: frozenset[str]

    @property
    def head(self) -> str:
        return self.link.target


@dataclass(frozen=True, slots=True)
class Graph:
    """A sound graph. `order` is the definition's; `incoming` leaves out the edges that lead back."""

    order: tuple[str, ...]
    entries: frozenset[str]
    ends: frozenset[str]
    incoming: Mapping[str, tuple[Edge, ...]]
    outgoing: Mapping[str, tuple[Edge, ...]]
    loops: Mapping[int, Loop]
    levels: tuple[str, ...]
    """The nodes in an order in which each stands behind all that it waits for."""


def graph_of(definition: Definition) -> Graph:
    """The graph of a definition. DefinitionError for all that is wrong with its shape."""
    order = tuple(node.id for node in definition.nodes)
    links = _links(definition, order)
    outgoing = _by(order, links, lambda link: link.source)
    entries = _entries(definition, order, links)
    reached, back, finished = _walked(order, outgoing, entries)
    _refuse_unreached(definition, order, links, reached)
    links = [replace(link, back=link.index in back) for link in links]
    incoming = _by(order, [link for link in links if not link.back], lambda link: link.target)
    outgoing = _by(order, links, lambda link: link.source)
    loops = {link.index: _loop(link, incoming, outgoing) for link in links if link.back}
    refuse([*_entered(links, loops.values(), entries, definition), *_forked(outgoing, loops.values())])
    ends = frozenset(definition.ends or [name for name in order if not outgoing[name]])
    levels = tuple(reversed(finished))
    return Graph(order, frozenset(entries), ends, incoming, outgoing, loops, levels)


def _links(definition: Definition, order: Sequence[str]) -> list[Edge]:
    if definition.edges is not None:
        edges = enumerate(definition.edges)
        return [Edge(i, edge.source, edge.target, edge.when, edge.ask, edge.on == "error") for i, edge in edges]
    named = [
        (each.path[1], node.id)
        for index, node in enumerate(definition.nodes)
        for _, each in placeholders(node.config, f"nodes/{index}/config")
        if each.path[0] == "nodes" and each.path[1] in order and each.path[1] != node.id
    ]
    return [Edge(index, source, target) for index, (source, target) in enumerate(dict.fromkeys(named))]


def _by(order: Sequence[str], links: Iterable[Edge], key: Callable[[Edge], str]) -> dict[str, tuple[Edge, ...]]:
    found: dict[str, list[Edge]] = {name: [] for name in order}
    for link in links:
        found[key(link)].append(link)
    return {name: tuple(each) for name, each in found.items()}


def _entries(definition: Definition, order: Sequence[str], links: Sequence[Edge]) -> list[str]:
    if definition.entry is not None:
        return [name for name in order if name in definition.entry]
    targets = {link.target for link in links}
    return [name for name in order if name not in targets]


def _walked(
    order: Sequence[str], outgoing: Mapping[str, Sequence[Edge]], entries: Sequence[str]
) -> tuple[set[str], set[int], list[str]]:
    """Depth first from the entries: the nodes reached, the edges that lead back, and the nodes as they were left."""
    back: set[int] = set()
    left: dict[str, None] = {}
    on_path: dict[str, Iterator[Edge]] = {}
    for entry in entries:
        if entry in left:
            continue
        on_path[entry] = iter(outgoing[entry])
        while on_path:
            name = next(reversed(on_path))
            link = next(on_path[name], None)
            if link is None:
                del on_path[name]
                left[name] = None
            elif link.target in on_path:
                back.add(link.index)
            elif link.target not in left:
                on_path[link.target] = iter(outgoing[link.target])
    return set(left), back, list(left)


def _refuse_unreached(
    definition: Definition, order: Sequence[str], links: Sequence[Edge], reached: Iterable[str]
) -> None:
    missing = [name for name in order if name not in reached]
    if definition.edges is None and missing:
        message = " → ".join(_circle(missing, links))
        refuse([Problem("nodes", f"these nodes wait for one another: {message}; a loop needs edges and an entry")])
    if len(missing) == len(order):
        refuse([Problem("entry", "every node has an edge that leads to it; name here where a run starts")])
    places = {name: f"nodes/{order.index(name)}" for name in missing}
    refuse(Problem(place, f"no path of edges leads from an entry to {name!r}") for name, place in places.items())


def _circle(stuck: Sequence[str], links: Sequence[Edge]) -> list[str]:
    """One circle, in the direction of the run: each of these nodes waits for another one of them."""
    walked = [stuck[0]]
    while walked.count(walked[-1]) == 1:
        walked.append(next(link.source for link in links if link.target == walked[-1] and link.source in stuck))
    return walked[walked.index(walked[-1]) :][::-1]


def _loop(link: Edge, incoming: Mapping[str, Sequence[Edge]], outgoing: Mapping[str, Sequence[Edge]]) -> Loop:
    below = reach(link.target, lambda name: [each.target for each in outgoing[name] if not each.back])
    above = reach(link.source, lambda name: [each.source for each in incoming[name]])
    return Loop(link, frozenset(below & above))


def reach(start: str, steps: Callable[[str], Iterable[str]]) -> set[str]:
    """`start`, and all that can be reached from it."""
    found, queue = {start}, deque([start])
    while queue:
        for name in steps(queue.popleft()):
            if name not in found:
                found.add(name)
                queue.append(name)
    return found


def _entered(
    links: Sequence[Edge], loops: Iterable[Loop], entries: Sequence[str], definition: Definition
) -> Iterator[Problem]:
    """A loop starts at its head, however it is come to."""
    for loop in loops:
        inner = loop.body - {loop.head}
        message = f"enters the loop of {loop.head!r} and {loop.link.source!r} beside its head {loop.head!r}"
        for link in links:
            if link.target in inner and link.source not in loop.body:
                yield Problem(f"edges/{link.index}", f"{message}; let it lead to {loop.head!r}, or out of the loop")
        for index, name in enumerate(definition.entry or ()):
            if name in inner:
                yield Problem(f"entry/{index}", f"{name!r} {message}")


def _forked(outgoing: Mapping[str, Sequence[Edge]], loops: Iterable[Loop]) -> Iterator[Problem]:
    """Plain edges of one node all run: one that stays in a loop beside one that leaves it would never end well."""
    for links in outgoing.values():
        for one, other in combinations([link for link in links if not link.conditional], 2):
            for loop in loops:
                if one.on_error != other.on_error or one.source not in loop.body:
                    continue
                leaves = next((link for link in (one, other) if link.target not in loop.body), None)
                if leaves is not None and (one.target in loop.body or other.target in loop.body):
                    message = f"leaves the loop of {loop.head!r} while another edge without a condition stays in it"
                    yield Problem(f"edges/{leaves.index}", f"{message}; give it a `when`")
