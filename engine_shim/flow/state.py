"""The state of a workflow run: its visits, what each of them has seen, and what is left to spend. Pure.

A visit sees the outputs of the visits that it comes after, never those of a parallel branch. So the order in which
branches end changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any

import orjson

from agent_core.effects import ToolCall
from agent_core.loop.budget import Budget, Limits
from agent_core.loop.masked import marks_of
from agent_core.outputs import Json, WaitingCall
from agent_core.rules import BY_DECIMALS, rules_of
from engine_shim.definition.graph import Edge, Graph, graph_of
from engine_shim.definition.model import Definition, Node
from engine_shim.flow.schedule import Schedule
from engine_shim.flow.seen import Seen, merge
from utools.schema.compiled import compile_schema

Key = tuple[str, int]
"""A visit: its node, and which visit of that node it is, from 1."""
PLANS = 64
"""Plans that are kept."""


@dataclass(slots=True)
class VisitState:
    """One visit of a node. Times are active seconds since the run's start. `rank` is its distance from the start.

    `failure` says how the visit failed, `error` the same when no error edge handles it. `depth` is, where `max_visits`
    needs it, how many visits it has waited for one after another. `joined` are the visits whose edges lead here, in the
    order of the edges; `messages` are those that an agent has added to the conversation.
    """

    node: str
    n: int
    after: tuple[Key, ...]
    seen: Seen
    seen_and_self: Seen
    rank: int
    start: float
    seconds: float = 0.0
    output: Any = None
    has_output: bool = False
    failure: Json | None = None
    error: Json | None = None
    waiting: tuple[WaitingCall, ...] = ()
    depth: int = 0
    joined: tuple[Key, ...] = ()
    messages: Sequence[Json] = ()
    has_left: bool = False
    judgements: dict[int, bool] = field(default_factory=dict)
    """What a model answered about the edges that ask, by their index."""

    @property
    def key(self) -> Key:
        return self.node, self.n

    @property
    def is_closed(self) -> bool:
        """Whether nothing more follows from it that has not been scheduled."""
        return self.has_left or self.error is not None

    def set_output(self, output: Any) -> None:
        """Set what later visits read as the node's output."""
        self.output, self.has_output = output, True


@dataclass(frozen=True, slots=True)
class CompiledFlow:
    """A definition that was read, and its graph."""

    definition: Definition
    graph: Graph


def read_compiled(data: Json) -> CompiledFlow:
    """Return a recorded definition with its graph; that of many runs is made once."""
    return _compile(orjson.dumps(data))


@lru_cache(PLANS)
def _compile(data: bytes) -> CompiledFlow:
    definition = Definition.model_validate(orjson.loads(data))
    return CompiledFlow(definition, graph_of(definition))


class State:
    """How far a run has come. It keeps no more of the `run_started` record than it needs."""

    def __init__(self, started: Json, compiled: CompiledFlow | None = None) -> None:
        self.run, self.at = started["run"], started["at"]
        taken = started.get("taken", {}).get("visits", {})
        self.begun_in: dict[Key, str] = {(node, n): run for run, keys in taken.items() for node, n in keys}
        self.external, self.env, self.handed = started["external"], started["env"], started.get("handed", {})
        rules = rules_of(started)
        self.has_quoted_keys = rules["flow"] > 1
        self.marks = marks_of(started)
        self.gives_declared = self.judges_answer = rules["flow"] > 2
        self.comparison = rules["comparison"]
        by_decimals = self.comparison >= BY_DECIMALS
        self.schemas = {
            code: compile_schema(tool["schema"], decimals=by_decimals) for code, tool in started["tools"].items()
        }
        self.tools = {code: {**tool, "schema": None, "preset": {}} for code, tool in started["tools"].items()}
        compiled = compiled or read_compiled(started["definition"])
        self.definition, self.graph = compiled.definition, compiled.graph
        self.nodes: dict[str, Node] = {node.id: node for node in self.definition.nodes}
        self.index = {name: index for index, name in enumerate(self.nodes)}
        self.visits: dict[Key, VisitState] = {}
        self.latest: dict[str, int] = {}
        nested = {name for name in self.nodes if self.is_nested(name)}
        self.schedule = Schedule(self.graph, nested, None if self.definition.max_visits is None else self._depth_after)
        self.rounds: dict[str, int] = {}
        self.under_way: set[Key] = set()
        self.judging: dict[Key, tuple[VisitState, Edge]] = {}
        self.cancelled = False
        limits = Limits(**started.get("limits") or {})
        counts_parts = rules["usage"] > 1
        self.budget = Budget(limits, **(started.get("spent") or {}), counts_parts=counts_parts)
        self._open: list[tuple[int, Key]] = []
        self._unjudged: list[tuple[int, int, int, VisitState, Edge]] = []
        self._bits = (len(self.nodes) - 1).bit_length()

    def is_nested(self, name: str) -> bool:
        """Return whether a node's visits are runs of their own."""
        return bool(self.tools[self.nodes[name].tool]["effect"] == "nested")

    def awaits(self, node: Node) -> bool:
        """Return whether a node waits for what its tool's result names."""
        return bool(self.tools[node.tool].get("awaits"))

    @property
    def nested_must_wait(self) -> bool:
        """Whether no nested run may start now.

        Under limits, each waits for all that is under way: what is left is spent once, and whose turn it is does not
        depend on which branch ends first.
        """
        return self.is_limited and bool(self.under_way)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit on what nested runs may spend in all."""
        limits = self.budget.limits
        return (limits.tool_calls, limits.tokens, limits.cost) != (None, None, None)

    # ── visits ────────────────────────────────────────────────────────────────────────────────────

    def begin(self, name: str) -> VisitState:
        """Return the node's next visit."""
        after = tuple(sorted((other, self.latest[other]) for other in self.schedule.finished_before(name)))
        depth = 0 if self.definition.max_visits is None else self.depth_of(name)
        joined = tuple((other, self.latest[other]) for other in self.schedule.leading_to(name))
        self.schedule.begin(name)
        self.latest[name] = n = self.latest.get(name, 0) + 1
        earlier = [self.visits[key] for key in after]
        seen = merge((visit.seen_and_self for visit in earlier), self._bits)
        rank = max((visit.rank + 1 for visit in earlier), default=0)
        start = max((visit.start + visit.seconds for visit in earlier), default=self.budget.seconds)
        seen_and_self = seen.add(self.index[name], n)
        visit = VisitState(name, n, after, seen, seen_and_self, rank, start, depth=depth, joined=joined)
        self.visits[visit.key] = visit
        heappush(self._open, (depth, visit.key))
        return visit

    def nearest_open(self) -> int | None:
        """Return the smallest depth of a visit from which more may follow that has not been scheduled; None when none
        may."""
        while self._open and self.visits[self._open[0][1]].is_closed:
            heappop(self._open)
        return self._open[0][0] if self._open else None

    def depth_of(self, name: str) -> int:
        """Return the depth of the node's next visit."""
        return self._depth_after(self.schedule.waited_for(name))

    def _depth_after(self, names: Set[str]) -> int:
        known = (self.visits[name, self.latest[name]] for name in names if name in self.latest)
        return max((visit.depth + 1 for visit in known), default=0)

    def finish(self, visit: VisitState, edges: tuple[Edge, ...]) -> None:
        """The visit has ended, and takes these edges. Too many rounds of a loop are the visit's failure."""
        for edge in [edge for edge in edges if edge.back]:
            self.rounds[edge.target] = rounds = self.rounds.get(edge.target, 0) + 1
            if rounds > (most := self.definition.max_iterations):
                message = (
                    f"the loop of {edge.target!r} was to go round again {rounds} times; max_iterations allows {most}"
                )
                visit.error = {"kind": "max_iterations", "message": message, "where": visit.node}
                return
        visit.has_left = True
        self.schedule.finish(visit.node, edges)

    # ── edges that a model judges ─────────────────────────────────────────────────────────────────

    @property
    def has_unjudged(self) -> bool:
        return bool(self._unjudged)

    def add_unjudged(self, visit: VisitState, edge: Edge) -> None:
        """Note that a model has to judge whether a visit takes an edge."""
        heappush(self._unjudged, (visit.rank, self.index[visit.node], visit.n, visit, edge))

    def next_unjudged(self) -> tuple[VisitState, Edge]:
        """Return the visit that is judged next, and the edge. The order does not depend on which visit ended first."""
        *_, visit, edge = heappop(self._unjudged)
        return visit, edge

    # ── what a visit sees ─────────────────────────────────────────────────────────────────────────

    def run_of(self, visit: VisitState | None) -> str:
        """Return the id of the run in which a visit began: of a fork, the earlier run's for what that had begun."""
        own: str = self.run
        return own if visit is None else self.begun_in.get(visit.key, own)

    def names(self, outputs: Mapping[str, Any], run: Mapping[str, Any]) -> Json:
        """Return the values of placeholders, by their roots; `outputs` are those of the nodes, `run` what the run
        gives."""
        return {"external": self.external, "env": self.env, "nodes": outputs, "run": run}

    def latest_outputs(self) -> Mapping[str, Any]:
        """Return the output of each node's latest visit."""
        return {name: self.visits[name, n].output for name, n in self.latest.items()}

    # ── what is left ──────────────────────────────────────────────────────────────────────────────

    def seconds_left(self, visit: VisitState) -> float | None:
        """Return the seconds that a visit may still take, by its node's timeout and the run's; None without either."""
        used = visit.start + visit.seconds
        own, whole = self.nodes[visit.node].timeout, self.budget.limits.seconds
        bounds = [*([own - visit.seconds] if own else []), *([] if whole is None else [whole - used])]
        return min(bounds, default=None)

    def bind(self, call: ToolCall, left: float | None) -> ToolCall:
        """Return the call with the time that it may take, and for a nested run with what it may spend."""
        if call.effect != "nested":
            usual = self.tools[call.tool]["within"]
            own = self.nodes[call.id].timeout is not None
            within = left if own or usual is None else usual if left is None else min(usual, left)
            return call._replace(within=within)
        remaining = {name: value for name, value in self.budget.remaining().items() if value is not None}
        handed = {**call.inherited, **remaining, **self.handed, **({"fills": call.fills} if call.fills else {})}
        return call._replace(within=None, inherited={**handed, **({} if left is None else {"seconds": left})})


class OutputsBefore(Mapping[str, Any]):
    """The outputs that a visit has seen, by node: looked up one by one, listed only where all are asked for."""

    def __init__(self, state: State, visit: VisitState) -> None:
        self._state, self._visit = state, visit

    def __getitem__(self, name: str) -> Any:
        index = self._state.index.get(name)
        n = None if index is None else self._visit.seen.get(index)
        if n is None:
            raise KeyError(name)
        return self._state.visits[name, n].output

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(node for node, _ in self._walk()))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _walk(self) -> Iterator[Key]:
        """Yield every earlier visit, each behind those that it comes after."""
        walked: set[Key] = set()
        path = [(self._visit.key, iter(self._visit.after))]
        while path:
            key, rest = path[-1]
            earlier = next((each for each in rest if each not in walked), None)
            if earlier is not None:
                walked.add(earlier)
                path.append((earlier, iter(self._state.visits[earlier].after)))
            else:
                path.pop()
                if path:
                    yield key
