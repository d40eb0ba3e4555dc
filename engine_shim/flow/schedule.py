"""schedule(): which nodes may start, from the graph and the set of finished visits, and nothing else. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine_shim.definition.graph import Edge, Graph, Loop


@dataclass(slots=True)
class Progress:
    """How far a run has come: what was begun, which edges the finished nodes took, and which nodes start once more,
    each with the node whose edge leads back to it."""

    graph: Graph
    begun: set[str] = field(default_factory=set)
    taken: dict[str, tuple[int, ...]] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)

    def finish(self, name: str, links: Sequence[Edge]) -> None:
        """The node has finished, and these of its edges are taken. One that leads back starts its target alone, and
        makes all between target and source undecided again."""
        self.taken[name] = tuple(link.index for link in links)
        for link in links:
            if link.back:
                loop = self.graph.loops[link.index]
                for inner in loop.body:
                    self.taken.pop(inner, None)
                self.begun -= loop.body
                self.again[loop.head] = name


def schedule(progress: Progress) -> list[str]:
    """The nodes that may start, in the definition's order.

    A node waits for all its live edges; it does not run when all are dead. What leaves a loop waits until the loop is
    over: while anything in it is undecided, it may still go round again.
    """
    graph = progress.graph
    ready = set(progress.again)
    decided = _decided(progress)
    for name in graph.order:
        links = graph.incoming[name]
        if name in progress.begun or name in ready or not all(link.source in decided for link in links):
            continue
        live = any(link.index in progress.taken.get(link.source, ()) for link in links)
        if (live or name in graph.entries) and all(loop.body <= decided for loop in _left(graph, name, links)):
            ready.add(name)
    return [name for name in graph.order if name in ready]


def _decided(progress: Progress) -> set[str]:
    """The nodes that have finished, and those that will not run."""
    graph, decided = progress.graph, set(progress.taken)
    for name in graph.levels:
        links = graph.incoming[name]
        if name in progress.begun or name in progress.again or name in graph.entries:
            continue
        live = any(link.index in progress.taken.get(link.source, ()) for link in links)
        if not live and all(link.source in decided for link in links):
            decided.add(name)
    return decided


def _left(graph: Graph, name: str, links: Sequence[Edge]) -> Iterator[Loop]:
    """The loops that some of these edges to a node leave."""
    for loop in graph.loops.values():
        if name not in loop.body and any(link.source in loop.body for link in links):
            yield loop
