"""What a schedule and the state of a run keep up to date is what one gets by looking at the whole graph anew."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from agent_core.effects import ToolReply
from engine_shim.definition.errors import DefinitionErrors
from engine_shim.definition.graph import Edge, Graph, Loop, graph_of
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import Definition
from engine_shim.flow.flow import flow
from engine_shim.flow.schedule import Schedule
from engine_shim.flow.seen import Seen, merge
from engine_shim.flow.state import OutputsBefore, State, VisitState
from support.by_hand import AT
from support.examples import examples


@dataclass
class Progress:
    """Which nodes were begun, which edges the finished ones took, and which loops go round once more."""

    graph: Graph
    begun: set[str] = field(default_factory=set)
    taken: dict[str, tuple[int, ...]] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)

    def begin(self, name: str) -> None:
        self.begun.add(name)
        self.again.pop(name, None)

    def finish(self, name: str, edges: Sequence[Edge]) -> None:
        self.taken[name] = tuple(edge.index for edge in edges)
        for edge in edges:
            if edge.back:
                loop = self.graph.loops[edge.index]
                for inner in loop.body:
                    self.taken.pop(inner, None)
                self.begun -= loop.body
                self.again[loop.head] = name

    def is_live(self, name: str) -> bool:
        return any(edge.index in self.taken.get(edge.source, ()) for edge in self.graph.incoming[name])

    def decided(self) -> set[str]:
        """The nodes that have finished, and those that will not run."""
        decided = set(self.taken)
        for name in self.graph.levels:
            if name in self.begun or name in self.again or name in self.graph.entries or self.is_live(name):
                continue
            if all(edge.source in decided for edge in self.graph.incoming[name]):
                decided.add(name)
        return decided

    def ready(self) -> list[str]:
        """The rule itself, over the whole graph."""
        ready, decided = set(self.again), self.decided()
        for name in self.graph.order:
            edges = self.graph.incoming[name]
            if name in self.begun or not all(edge.source in decided for edge in edges):
                continue
            may_run = self.is_live(name) or name in self.graph.entries
            if may_run and all(loop.body <= decided for loop in self.loops_left(name)):
                ready.add(name)
        return [name for name in self.graph.order if name in ready]

    def loops_left(self, name: str) -> Iterator[Loop]:
        for loop in self.graph.loops.values():
            if name not in loop.body and any(edge.source in loop.body for edge in self.graph.incoming[name]):
                yield loop

    def finished_before(self, name: str) -> set[str]:
        if name in self.again:
            return {self.again[name]}
        queue, known = [name], set()
        while queue:
            for edge in self.graph.incoming[queue.pop()]:
                if edge.source not in known:
                    known.add(edge.source)
                    queue += [] if edge.source in self.taken else [edge.source]
        return known & set(self.taken)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph that is not refused: branches, joins, loops in loops, error edges, several entries and ends."""
    count = draw(st.integers(1, 8))
    names = [f"n{i}" for i in range(count)]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = []
    for one, other in [*pairwise(range(count)), *draw(st.lists(pairs, max_size=10, unique=True))]:
        plain = one < other and draw(st.booleans())
        on_error = draw(st.integers(0, 4)) == 0
        edges.append(
            {"from": names[one], "to": names[other]}
            | ({} if plain else {"when": f"output.{other}"})
            | ({"on": "error"} if on_error else {})
        )
    entry = sorted({"n0", *draw(st.lists(st.sampled_from(names), max_size=1))})
    nodes = [{"id": name, "tool": "echo"} for name in draw(st.permutations(names))]
    return accepted({"id": "w", "nodes": nodes, "edges": edges, "entry": entry, "ends": names})


def accepted(definition: dict[str, Any]) -> Graph:
    """The graph of a definition, without the edges and entries that are refused."""
    while True:
        try:
            return graph_of(load_workflow(definition).definition)
        except DefinitionErrors as error:
            places = [problem.where.split("/") for problem in error.problems]
            assume(all(place[0] in ("edges", "entry") for place in places))
            for key, index in sorted({(place[0], int(place[1])) for place in places}, reverse=True):
                del definition[key][index]


def chosen(data: st.DataObject, edges: Sequence[Edge]) -> Sequence[Edge]:
    """Some of the edges that a node might take: one with a condition, or all of the plain ones of a kind."""
    failed = data.draw(st.booleans())
    group = [edge for edge in edges if edge.on_error == failed]
    plain = [edge for edge in group if not edge.conditional]
    options = [[edge] for edge in group if edge.conditional] + [plain]
    return data.draw(st.sampled_from(options))


@examples(4)
@given(graphs(), st.data())
def test_schedule_that_is_kept_up_to_date_is_the_one_that_the_whole_graph_gives(g: Graph, data: st.DataObject) -> None:
    """Nodes begin and finish in any order; some never finish, some finish when their loop has gone round already."""
    schedule, progress = Schedule(g), Progress(g)
    under_way: list[str] = []
    for _ in range(data.draw(st.integers(0, 25))):
        assert schedule.ready() == progress.ready()
        ready = schedule.ready()
        assert schedule.first() == (ready[0] if ready else None)
        for name in ready:
            assert schedule.finished_before(name) == progress.finished_before(name)
        moves = [*(("begin", name) for name in ready), *(("finish", name) for name in under_way)]
        if not moves:
            break
        move, name = data.draw(st.sampled_from(moves))
        if move == "begin":
            schedule.begin(name)
            progress.begin(name)
            under_way.append(name)
        else:
            under_way.remove(name)
            edges = chosen(data, g.outgoing[name])
            schedule.finish(name, edges)
            progress.finish(name, edges)
    assert schedule.ready() == progress.ready()


@given(graphs(), st.data())
def test_first_leaves_out_the_nodes_that_start_alone(g: Graph, data: st.DataObject) -> None:
    exclusive = set(data.draw(st.lists(st.sampled_from(g.order))))
    schedule = Schedule(g, exclusive)
    while ready := schedule.ready():
        others = [name for name in ready if name not in exclusive]
        assert schedule.first(exclusive=False) == (others[0] if others else None)
        assert schedule.first() == ready[0]
        name = data.draw(st.sampled_from(ready))
        schedule.begin(name)
        schedule.finish(name, [edge for edge in g.outgoing[name] if not edge.back])


@given(st.lists(st.dictionaries(st.integers(0, 12), st.integers(1, 5))))
def test_what_several_visits_have_seen_is_the_latest_of_each_node(parts: list[dict[int, int]]) -> None:
    seen = []
    for part in parts:
        each = Seen(4)
        for node, n in part.items():
            each = each.add(node, n)
        seen.append(each)
    merged = merge(seen, 4)
    expected = {node: max(part.get(node, 0) for part in parts) for part in parts for node in part}
    assert {node: merged.get(node) for node in range(16)} == {node: expected.get(node) for node in range(16)}


def copied(state: State, visit: VisitState) -> dict[str, int]:
    """What a visit has seen, copied from visit to visit."""
    found: dict[str, int] = {}
    for key in visit.after:
        for name, n in (*copied(state, state.visits[key]).items(), key):
            found[name] = max(found.get(name, 0), n)
    return found


@given(graphs(), st.data())
def test_outputs_that_a_visit_sees_are_those_before_it_in_their_order(g: Graph, data: st.DataObject) -> None:
    tools = {"echo": {"schema": {}, "effect": "read", "idempotent": False, "within": None}}
    nodes = [{"id": name, "tool": "echo"} for name in g.order]
    edges = [
        {"from": edge.source, "to": edge.target, "when": edge.when, "on": "error" if edge.on_error else None}
        for name in g.order
        for edge in g.outgoing[name]
    ]
    definition = {"id": "w", "nodes": nodes, "edges": edges, "entry": sorted(g.entries), "ends": list(g.order)}
    state = State({"run": "r", "at": AT, "definition": definition, "external": {}, "env": {}, "tools": tools})
    for _ in range(20):
        ready = state.schedule.ready()
        if not ready:
            break
        visit = state.begin(data.draw(st.sampled_from(ready)))
        visit.set_output(visit.n)
        assert list(OutputsBefore(state, visit).items()) == list(copied(state, visit).items())
        state.finish(visit, tuple(chosen(data, state.graph.outgoing[visit.node])))


def test_chain_of_many_nodes_ends_without_a_deep_stack() -> None:
    count = 3000
    nodes: list[Any] = [{"id": f"n{i}", "tool": "echo"} for i in range(count)]
    edges = [
        {"from": f"n{i}", "to": f"n{i + 1}", **({"when": "output.go"} if i == 0 else {})} for i in range(count - 1)
    ]
    definition: dict[str, Any] = {"id": "w", "nodes": nodes, "edges": edges, "ends": ["n0", nodes[-1]["id"]]}
    assert isinstance(load_workflow(definition).definition, Definition)
    for go, ran in ((True, count), (False, 1)):
        tools = {"echo": {"schema": {}, "effect": "read", "idempotent": False, "within": None}}
        loop = flow({"run": "r", "at": AT, "definition": definition, "external": {}, "env": {}, "tools": tools})
        visits: Any = next(loop)
        under_way = list(visits.first)
        while under_way:
            under_way += visits.more(under_way.pop(), ToolReply(True, {"go": go}, None, AT, 0.0), None)
        outcome: Any = next(outcomes(loop))
        assert len(outcome.output["path"]) == ran


def outcomes(loop: Any) -> Iterator[Any]:
    yield (yield from loop)
