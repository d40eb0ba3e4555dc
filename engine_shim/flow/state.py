"""The state of a workflow run: its visits, what each could know, and what is left to spend. Pure.

What a visit sees are the outputs of the visits that it comes after, never of a branch beside it: so the order in which
branches end changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from agent_core.effects import Json, ToolCall
from agent_core.loop.budget import Budget, Limits
from engine_shim.definition.graph import Edge, graph_of
from engine_shim.definition.model import Definition, Node
from engine_shim.flow.schedule import Progress
from utools.schema.compiled import compile_schema

Key = tuple[str, int]
"""A visit: its node, and the how-manieth of that node it is."""


@dataclass(slots=True)
class Visited:
    """One visit of a node. Times are active seconds since the run's start; `seen` has the latest visit of each node
    that this one comes after. `failure` is how it failed, `error` the same when nobody handles that."""

    node: str
    n: int
    after: tuple[Key, ...]
    seen: dict[str, int]
    rank: int
    start: float
    seconds: float = 0.0
    output: Any = None
    given: bool = False
    failure: Json | None = None
    error: Json | None = None
    waiting: tuple[Json, ...] = ()
    judged: dict[int, bool] = field(default_factory=dict)
    """What a model said of the edges that ask, by their index."""

    def give(self, output: Any) -> None:
        """What the node's `outputs` are from now on."""
        self.output, self.given = output, True


class State:
    """How far a run has come, from its `run_started` record, of which it keeps no more than it needs."""

    def __init__(self, started: Json) -> None:
        self.run, self.at = started["run"], started["at"]
        self.external, self.env, self.handed = started["external"], started["env"], started.get("handed", {})
        self.schemas = {code: compile_schema(tool["schema"]) for code, tool in started["tools"].items()}
        self.tools = {code: {**tool, "schema": None, "preset": {}} for code, tool in started["tools"].items()}
        self.definition = Definition.model_validate(started["definition"])
        self.nodes: dict[str, Node] = {node.id: node for node in self.definition.nodes}
        self.index = {name: index for index, name in enumerate(self.nodes)}
        self.progress = Progress(graph_of(self.definition))
        self.visits: dict[Key, Visited] = {}
        self.latest: dict[str, int] = {}
        self.rounds: dict[str, int] = {}
        self.under_way: set[Key] = set()
        self.unjudged: list[tuple[Visited, Edge]] = []
        self.judging: dict[Key, tuple[Visited, Edge]] = {}
        self.cancelled = False
        limits = Limits(**started.get("limits") or {})
        self.budget = Budget(limits, **(started.get("spent") or {}))

    @property
    def turn_taken(self) -> bool:
        """Whether no nested run may start now: under limits each waits for all that is under way, so that what is left
        is spent once, and whose turn it is does not depend on which branch ends first."""
        limits = self.budget.limits
        limited = any(limit is not None for limit in (limits.tool_calls, limits.tokens, limits.cost))
        return limited and bool(self.under_way)

    def next_unjudged(self) -> tuple[Visited, Edge]:
        """The visit that is judged next, and the edge, whichever ended first."""
        first = min(self.unjudged, key=lambda each: (each[0].rank, self.index[each[0].node]))
        self.unjudged.remove(first)
        return first

    def begin(self, name: str) -> Visited:
        """The node's next visit."""
        after = tuple(sorted(self._before(name)))
        self.progress.begun.add(name)
        self.progress.again.pop(name, None)
        self.latest[name] = n = self.latest.get(name, 0) + 1
        earlier = [self.visits[key] for key in after]
        seen: dict[str, int] = {}
        for visit in earlier:
            for other, number in (*visit.seen.items(), (visit.node, visit.n)):
                seen[other] = max(seen.get(other, 0), number)
        rank = max((visit.rank + 1 for visit in earlier), default=0)
        start = max((visit.start + visit.seconds for visit in earlier), default=self.budget.seconds)
        self.visits[name, n] = visited = Visited(name, n, after, seen, rank, start)
        return visited

    def _before(self, name: str) -> Iterator[Key]:
        """The visits whose ends let the node start: those on its edges, and behind edges that are not taken."""
        source = self.progress.again.get(name)
        if source is not None:
            yield source, self.latest[source]
            return
        queue, known = [name], set()
        while queue:
            for link in self.progress.graph.incoming[queue.pop()]:
                if link.source in self.progress.taken:
                    known.add(link.source)
                elif link.source not in known:
                    known.add(link.source)
                    queue.append(link.source)
        for other in known & self.progress.taken.keys():
            yield other, self.latest[other]

    def go_on(self, visited: Visited, links: tuple[Edge, ...]) -> None:
        """The visit has ended, and these edges are taken. Too many rounds of a loop are the visit's failure."""
        for link in [link for link in links if link.back]:
            self.rounds[link.target] = rounds = self.rounds.get(link.target, 0) + 1
            if rounds > (most := self.definition.max_iterations):
                told = f"the loop of {link.target!r} was to go round again {rounds} times; max_iterations allows {most}"
                visited.error = {"kind": "max_iterations", "message": told, "where": visited.node}
                return
        self.progress.finish(visited.node, links)

    def names(self, seen: dict[str, int]) -> Json:
        """What placeholders are filled from, for one that has seen these visits."""
        return {
            "external": self.external,
            "env": self.env,
            "nodes": {name: self.visits[name, n].output for name, n in seen.items()},
            "run": {"id": self.run},
        }

    def left(self, visited: Visited) -> float | None:
        """The seconds that a visit may still take, by its node's timeout and the run's; None without either."""
        used = visited.start + visited.seconds
        bounds = [
            None if not (own := self.nodes[visited.node].timeout) else own - visited.seconds,
            None if self.budget.limits.seconds is None else self.budget.limits.seconds - used,
        ]
        known = [bound for bound in bounds if bound is not None]
        return min(known) if known else None

    def bound(self, call: ToolCall, left: float | None) -> ToolCall:
        """The call with what it may take and spend."""
        if call.effect != "nested":
            usual = self.tools[call.tool]["within"]
            own = self.nodes[call.id].timeout is not None
            within = left if own or usual is None else usual if left is None else min(usual, left)
            return replace(call, within=within)
        remaining = {name: value for name, value in self.budget.remaining().items() if value is not None}
        handed = {**remaining, **self.handed, **({"fills": call.fills} if call.fills else {})}
        return replace(call, within=None, inherited={**handed, **({} if left is None else {"seconds": left})})
