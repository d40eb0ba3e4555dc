"""Schedule: the nodes that may start, brought up to date whenever a visit starts or finishes. Pure.

A node waits for all its live edges, and does not run when all of them are dead. What leaves a loop waits until the loop
is over: while anything in it is undecided, it may still go round again. So which nodes may start depends on the graph
and the set of finished visits alone, not on the order in which they finished.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from heapq import heappop, heappush

from engine_shim.definition.graph import Edge, Graph

_NOBODY: frozenset[str] = frozenset()
_Queue = list[tuple[int, int, str]]
"""A heap of nodes: their depth, their place in the definition, their name."""


class Schedule:
    """Counts, for each node, the edges and loops that it still waits for; each change touches what follows from it.

    A node is decided when it has finished, or will not run. `taken` has the edges that the finished nodes take,
    `again` the heads of loops that go round once more, each with the node whose edge leads back to it.
    """

    def __init__(
        self, graph: Graph, exclusive: Set[str] = _NOBODY, depth: Callable[[Set[str]], int] | None = None
    ) -> None:
        """`exclusive` are the nodes that `first` can leave out. `depth`, of the nodes that one has waited for, says
        which comes first; without it the definition's order does."""
        self.graph, self._exclusive, self._depth = graph, exclusive, depth
        self.started: set[str] = set()
        self.taken: dict[str, tuple[Edge, ...]] = {}
        self.again: dict[str, str] = {}
        self._order = {name: index for index, name in enumerate(graph.order)}
        self._level = {name: index for index, name in enumerate(graph.levels)}
        self._decided: set[str] = set()
        self._undecided_edges = {name: len(graph.incoming[name]) for name in graph.order}
        self._live_edges = dict.fromkeys(graph.order, 0)
        self._taken_edges: set[int] = set()
        self._behind: dict[str, frozenset[str]] = {}
        self._loops_of, self._left_by = _loops_by_node(graph)
        self._undecided_nodes = {index: len(loop.body) for index, loop in graph.loops.items()}
        self._open_loops = {name: len(loops) for name, loops in self._left_by.items()}
        self._leaving: dict[int, list[str]] = {index: [] for index in graph.loops}
        for name, loops in self._left_by.items():
            for index in loops:
                self._leaving[index].append(name)
        self._ready: set[str] = set()
        self._queues: tuple[_Queue, _Queue] = ([], [])
        self._update(graph.levels)

    def ready(self) -> list[str]:
        """Return the nodes that may start, in the definition's order."""
        return sorted(self._ready, key=self._order.__getitem__)

    def first(self, *, exclusive: bool = True) -> str | None:
        """Return the first of them by depth; unless `exclusive`, the first of those that are not."""
        heads = [queue[0] for queue in self._queues[: 1 + exclusive] if self._drop_stale(queue)]
        return min(heads)[2] if heads else None

    def begin(self, name: str) -> None:
        """Note that a visit of the node starts."""
        self.started.add(name)
        self.again.pop(name, None)
        self._update([name])

    def finish(self, name: str, edges: Sequence[Edge]) -> None:
        """The node has finished, and takes these of its edges.

        One that leads back starts its target alone, and makes all between target and source undecided again.
        """
        loops = [self.graph.loops[edge.index] for edge in edges if edge.back]
        if not loops:
            self.taken[name], old = tuple(edges), self.taken.get(name, ())
            self._update([name, *self._count_live(old, -1), *self._count_live(edges, 1)])
            return
        changed: list[str] = []
        for loop in loops:
            for inner in loop.body:
                changed += [inner, *self._count_live(self.taken.pop(inner, ()), -1)]
            self.started -= loop.body
            self.again[loop.head] = name
        self._update(changed)

    def finished_before(self, name: str) -> frozenset[str]:
        """Return the nodes whose ends let this one start: those on its edges, and behind edges that are not taken."""
        if (source := self.again.get(name)) is not None:
            return frozenset((source,))
        return self._finished_behind(name)

    def waited_for(self, name: str) -> Set[str]:
        """Return the nodes whose ends a node waits for that may start: those of `finished_before`, and of loops that it
        leaves."""
        before = self.finished_before(name)
        left = () if name in self.again else self._left_by.get(name, ())
        return before.union(*(self.graph.loops[index].body for index in left))

    def leading_to(self, name: str) -> list[str]:
        """Return the nodes that took an edge to this one, in the order of the edges."""
        if (source := self.again.get(name)) is not None:
            return [source]
        edges = self.graph.incoming[name]
        return list(dict.fromkeys(edge.source for edge in edges if edge.index in self._taken_edges))

    def _drop_stale(self, queue: _Queue) -> bool:
        """Return whether anything is left in a queue without the nodes that may no longer start, or have another depth
        now."""
        while queue and (queue[0][2] not in self._ready or queue[0][0] != self._depth_of(queue[0][2])):
            heappop(queue)
        return bool(queue)

    def _depth_of(self, name: str) -> int:
        return 0 if self._depth is None else self._depth(self.waited_for(name))

    def _count_live(self, edges: Iterable[Edge], change: int) -> Iterator[str]:
        """Count edges as taken, or as taken no more; gives their targets."""
        for edge in edges:
            self._live_edges[edge.target] += change
            (self._taken_edges.add if change > 0 else self._taken_edges.discard)(edge.index)
            yield edge.target

    def _update(self, names: Iterable[str]) -> None:
        """Look again at these nodes, and at whatever follows from a change: each node after all that it waits for."""
        queue = sorted({self._level[name] for name in names})
        queued = set(queue)
        while queue:
            level = heappop(queue)
            queued.discard(level)
            name = self.graph.levels[level]
            decided = self._is_decided(name)
            if decided != (name in self._decided):
                for other in {self._level[each] for each in self._set_decided(name, decided)} - queued:
                    queued.add(other)
                    heappush(queue, other)
            if self._may_start(name):
                if name not in self._ready:
                    self._ready.add(name)
                    heappush(self._queues[name in self._exclusive], (self._depth_of(name), self._order[name], name))
            else:
                self._ready.discard(name)

    def _is_decided(self, name: str) -> bool:
        if name in self.taken:
            return True
        waits = name in self.started or name in self.again or name in self.graph.entries
        return not (waits or self._live_edges[name] or self._undecided_edges[name])

    def _may_start(self, name: str) -> bool:
        if name in self.again:
            return True
        waits = name in self.started or self._undecided_edges[name] or self._open_loops.get(name)
        return not waits and (self._live_edges[name] > 0 or name in self.graph.entries)

    def _set_decided(self, name: str, decided: bool) -> Iterator[str]:
        """Gives the nodes that this may change."""
        if decided:
            self._decided.add(name)
        else:
            self._decided.discard(name)
        self._behind.pop(name, None)
        if decided and name not in self.taken:
            self._behind[name] = self._finished_behind(name)
        change = -1 if decided else 1
        for edge in self.graph.outgoing[name]:
            if not edge.back:
                self._undecided_edges[edge.target] += change
                yield edge.target
        for index in self._loops_of.get(name, ()):
            was_over = not self._undecided_nodes[index]
            self._undecided_nodes[index] += change
            if was_over == bool(self._undecided_nodes[index]):
                for other in self._leaving[index]:
                    self._open_loops[other] += change
                    yield other

    def _finished_behind(self, name: str) -> frozenset[str]:
        sources = dict.fromkeys(edge.source for edge in self.graph.incoming[name])
        found = [frozenset((each,)) if each in self.taken else self._behind[each] for each in sources]
        return found[0] if len(found) == 1 else frozenset().union(*found)


def _loops_by_node(graph: Graph) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the loops that each node is part of, and those that the edges to it leave."""
    inside: dict[str, list[int]] = {}
    left: dict[str, dict[int, None]] = {}
    for index, loop in graph.loops.items():
        for name in loop.body:
            inside.setdefault(name, []).append(index)
            for edge in graph.outgoing[name]:
                if not edge.back and edge.target not in loop.body:
                    left.setdefault(edge.target, {})[index] = None
    return inside, {name: list(loops) for name, loops in left.items()}
