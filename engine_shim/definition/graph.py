"""Graph: the edges of a workflow, which of them lead back, the loops that they close, and what is wrong. Pure.

An edge leads back when its target is on the depth-first path from the entries, in the definition's order. The body of
its loop is its target, the head, and every node on a path from the head to the edge's source.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from engine_shim.definition.errors import Problem, refuse
from engine_shim.definition.model import Definition

EdgesByNode = Mapping[str, Sequence["Edge"]]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge as the run sees it. `index` is its number in the definition, or among those the placeholders imply."""

    index: int
    source: str
    target: str
    when: str | None = None
    ask: str | None = None
    on_error: bool = False
    model: str | None = None
    back: bool = False

    @property
    def conditional(self) -> bool:
        return self.when is not None or self.ask is not None


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop that an edge closes which leads back. `body` holds its head and its source, too."""

    edge: Edge
    body: frozenset[str]

    @property
    def head(self) -> str:
        return self.edge.target


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
    """The nodes in an order in which each comes after all that it waits for."""


def graph_of(definition: Definition) -> Graph:
    """Return the graph of a definition. DefinitionErrors for all that is wrong with its edges."""
    order = tuple(node.id for node in definition.nodes)
    edges = _read_edges(definition, order)
    outgoing = _group(order, edges, lambda edge: edge.source)
    entries = _find_entries(definition, order, edges)
    back, finished = _search(outgoing, entries)
    _refuse_unreached(definition, order, edges, finished)
    edges = [replace(edge, back=True) if edge.index in back else edge for edge in edges]
    incoming = _group(order, [edge for edge in edges if not edge.back], lambda edge: edge.target)
    outgoing = _group(order, edges, lambda edge: edge.source)
    loops = {edge.index: _find_loop(edge, incoming, outgoing, set(entries)) for edge in edges if edge.back}
    if loops:
        refuse([*_loops_entered_beside_the_head(edges, loops.values(), definition), *_split_forks(outgoing, loops)])
    ends = frozenset(definition.ends or [name for name in order if not outgoing[name]])
    levels = tuple(reversed(finished))
    return Graph(order, frozenset(entries), ends, incoming, outgoing, loops, levels)


def reach(start: str, steps: Callable[[str], Iterable[str]]) -> set[str]:
    """`start`, and all that can be reached from it."""
    found, queue = {start}, [start]
    while queue:
        for name in steps(queue.pop()):
            if name not in found:
                found.add(name)
                queue.append(name)
    return found


# ── edges ────────────────────────────────────────────────────────────────────────────────────────


def _read_edges(definition: Definition, order: Sequence[str]) -> list[Edge]:
    """Return the edges of the definition; without any, those that the placeholders imply."""
    if definition.edges is not None:
        edges = enumerate(definition.edges)
        return [
            Edge(i, edge.source, edge.target, edge.when, edge.ask, edge.on == "error", edge.model) for i, edge in edges
        ]
    nodes = frozenset(order)
    read = [(placed.require().path, placed.node.id) for placed in definition.placeholders if placed.node is not None]
    named = [
        (path[1], reader) for path, reader in read if path[0] == "nodes" and path[1] in nodes and path[1] != reader
    ]
    return [Edge(index, source, target) for index, (source, target) in enumerate(dict.fromkeys(named))]


def _group(order: Sequence[str], edges: Iterable[Edge], key: Callable[[Edge], str]) -> dict[str, tuple[Edge, ...]]:
    found: dict[str, list[Edge]] = {name: [] for name in order}
    for edge in edges:
        found[key(edge)].append(edge)
    return {name: tuple(each) for name, each in found.items()}


def _find_entries(definition: Definition, order: Sequence[str], edges: Sequence[Edge]) -> list[str]:
    if definition.entry is not None:
        chosen = frozenset(definition.entry)
        return [name for name in order if name in chosen]
    targets = {edge.target for edge in edges}
    return [name for name in order if name not in targets]


def _search(outgoing: EdgesByNode, entries: Sequence[str]) -> tuple[set[int], list[str]]:
    """Search depth first from the entries: the edges that lead back, and the nodes in the order they were left."""
    back: set[int] = set()
    left: dict[str, None] = {}
    on_path: dict[str, Iterator[Edge]] = {}
    for entry in entries:
        if entry in left:
            continue
        on_path[entry] = iter(outgoing[entry])
        while on_path:
            name = next(reversed(on_path))
            edge = next(on_path[name], None)
            if edge is None:
                del on_path[name]
                left[name] = None
            elif edge.target in on_path:
                back.add(edge.index)
            elif edge.target not in left:
                on_path[edge.target] = iter(outgoing[edge.target])
    return back, list(left)


def _find_loop(edge: Edge, incoming: EdgesByNode, outgoing: EdgesByNode, entries: Set[str]) -> Loop:
    head = edge.target
    body = reach(edge.source, lambda name: () if name == head else [each.source for each in incoming[name]])
    if not body.isdisjoint(entries - {head}):  # a way in beside the head: what lies on it is not in the loop
        body &= reach(head, lambda name: [each.target for each in outgoing[name] if not each.back])
    return Loop(edge, frozenset(body))


# ── faults ───────────────────────────────────────────────────────────────────────────────────────


def _refuse_unreached(
    definition: Definition, order: Sequence[str], edges: Sequence[Edge], reached: Iterable[str]
) -> None:
    known = set(reached)
    missing = {name: index for index, name in enumerate(order) if name not in known}
    if definition.edges is None and definition.entry is None and missing:
        circle = " → ".join(_find_circle(missing, edges))
        refuse([Problem("nodes", f"these nodes wait for one another: {circle}; a loop needs edges and an entry")])
    if len(missing) == len(order):
        refuse([Problem("entry", "every node has an edge that leads to it; name here where a run starts")])
    refuse(
        Problem(f"nodes/{index}", f"no path of edges leads from an entry to {name!r}")
        for name, index in missing.items()
    )


def _find_circle(stuck: Mapping[str, object], edges: Sequence[Edge]) -> list[str]:
    """Return one circle, in the direction of the run: each of these nodes waits for another one of them."""
    waits_for: dict[str, str] = {}
    for edge in edges:
        if edge.source in stuck:
            waits_for.setdefault(edge.target, edge.source)
    walked: dict[str, None] = {}
    name = next(iter(stuck))
    while name not in walked:
        walked[name] = None
        name = waits_for[name]
    path = [*walked, name]
    return path[path.index(name) :][::-1]


def _loops_entered_beside_the_head(
    edges: Sequence[Edge], loops: Iterable[Loop], definition: Definition
) -> Iterator[Problem]:
    """Yield the edges that enter a loop elsewhere than at its head."""
    by_target: dict[str, list[Edge]] = {}
    for edge in edges:
        by_target.setdefault(edge.target, []).append(edge)
    for loop in loops:
        inner = loop.body - {loop.head}
        message = f"enters the loop of {loop.head!r} and {loop.edge.source!r} elsewhere than at its head {loop.head!r}"
        entering = [edge for name in inner for edge in by_target[name] if edge.source not in loop.body]
        for edge in sorted(entering, key=lambda edge: edge.index):
            yield Problem(f"edges/{edge.index}", f"{message}; let it lead to {loop.head!r}, or out of the loop")
        for index, name in enumerate(definition.entry or ()):
            if name in inner:
                yield Problem(f"entry/{index}", f"{name!r} {message}")


def _split_forks(outgoing: EdgesByNode, loops: Mapping[int, Loop]) -> Iterator[Problem]:
    """Yield plain edges that leave a loop in which another one of the same node stays: all of them are taken."""
    for loop in loops.values():
        for name in loop.body:
            for on_error in (False, True):
                plain = [edge for edge in outgoing[name] if not edge.conditional and edge.on_error == on_error]
                leaving = [edge for edge in plain if edge.target not in loop.body]
                message = f"leaves the loop of {loop.head!r} while another edge without a condition stays in it"
                for edge in leaving if len(leaving) < len(plain) else ():
                    yield Problem(f"edges/{edge.index}", f"{message}; give it a `when`")
