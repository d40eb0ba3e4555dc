"""How the loop of a workflow run grows with its graph: CPU milliseconds by the number of nodes.

    python tests/bench/schedule.py [--nodes 100,1000] [--rounds 3] [--engine]

`flow` is the pure loop with a reply at hand for each visit, its definition read and its graph built beforehand;
`read` is the latter. With --engine, whole runs in memory are measured as well.
"""

import argparse
import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any

from agent_core.effects import ToolReply
from engine_shim import Engine, MemoryRunStore, load_workflow
from engine_shim.definition.graph import graph_of
from engine_shim.flow.flow import flow

AT = "2026-01-01T00:00:00.000Z"
ANY = {"type": "object", "additionalProperties": True}
Definition = dict[str, Any]


def chain(count: int) -> Definition:
    """Each node takes the output of the one before it."""
    texts = ["x", *(f"{{{{nodes.n{i - 1}}}}}" for i in range(1, count))]
    return _definition({f"n{i}": text for i, text in enumerate(texts)})


def wide(count: int) -> Definition:
    """One node, then all others but one side by side, then a join."""
    middle = [f"n{i}" for i in range(1, count - 1)]
    edges = [*(("n0", name) for name in middle), *((name, "join") for name in middle)]
    return _definition(dict.fromkeys(["n0", *middle, "join"], "x"), [{"from": a, "to": b} for a, b in edges])


def diamonds(count: int) -> Definition:
    """A chain of forks with two branches each, and of joins."""
    edges: list[dict[str, str]] = []
    for i in range(0, count - 3, 3):
        edges += [{"from": f"n{i}", "to": f"n{i + j}"} for j in (1, 2)]
        edges += [{"from": f"n{i + j}", "to": f"n{i + 3}"} for j in (1, 2)]
    return _definition({f"n{i}": "x" for i in range(3 * ((count - 1) // 3) + 1)}, edges)


def branches(count: int) -> Definition:
    """A chain in which each node may skip the next one; the condition never holds."""
    edges: list[dict[str, str]] = []
    for i in range(count - 1):
        edges.append({"from": f"n{i}", "to": f"n{i + 1}"})
        if i + 2 < count:
            edges.append({"from": f"n{i}", "to": f"n{i + 2}", "when": "output.skip"})
    return _definition({f"n{i}": "x" for i in range(count)}, edges)


def loops(count: int) -> Definition:
    """A chain of nodes with an edge to itself each, which is never taken."""
    names = [f"n{i}" for i in range(count)]
    edges: list[dict[str, str]] = [{"from": name, "to": name, "when": "output.again"} for name in names]
    edges += [{"from": one, "to": other} for one, other in pairwise(names)]
    return _definition(dict.fromkeys(names, "x"), edges, entry="n0", ends=names[-1])


SHAPES: dict[str, Callable[[int], Definition]] = {
    "chain": chain,
    "wide": wide,
    "diamonds": diamonds,
    "branches": branches,
    "loops": loops,
}


def _definition(nodes: dict[str, str], edges: list[dict[str, str]] | None = None, **more: Any) -> Definition:
    definition = {"id": "w", "nodes": [{"id": n, "tool": "echo", "config": {"text": t}} for n, t in nodes.items()]}
    return definition | more | ({} if edges is None else {"edges": edges})


def read(definition: Definition) -> None:
    """Read a definition and build its graph."""
    graph_of(load_workflow(definition).definition)


def walk(definition: Definition) -> None:
    """Run a workflow to its end, one visit after another."""
    tools = {"echo": {"schema": ANY, "effect": "read", "idempotent": False, "within": 30.0}}
    started = {"run": "r", "at": AT, "definition": definition, "external": {}, "env": {}, "tools": tools}
    loop = flow(started)
    visits: Any = next(loop)
    under_way = list(visits.first)
    done = 0
    while under_way:
        done += 1
        under_way += visits.more(under_way.pop(), ToolReply(True, "x", None, AT, 0.0), None)
    outcome: Any = next(_outcomes(loop))
    assert outcome.output["status"] == "completed"
    assert done == len(definition["nodes"])


def _outcomes(loop: Any) -> Iterator[Any]:
    yield (yield from loop)


def run(definition: Definition) -> None:
    """Run a workflow in an engine whose store is in memory."""
    result = asyncio.run(Engine(store=MemoryRunStore()).run(load_workflow(definition)))
    assert result.status == "completed"


def measure(work: Callable[[Definition], None], definition: Definition, rounds: int) -> float:
    """The median of the CPU milliseconds that `work` takes."""
    taken = []
    for _ in range(rounds):
        began = process_time()
        work(definition)
        taken.append(process_time() - began)
    return median(taken) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="100,1000", help="how many nodes, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", action="store_true", help="measure whole runs, too")
    options = parser.parse_args()
    works = {"read": read, "flow": walk} | ({"engine": run} if options.engine else {})
    print(f"{'shape':<10}{'nodes':>8}" + "".join(f"{name:>12}" for name in works))
    for shape, make in SHAPES.items():
        for count in map(int, options.nodes.split(",")):
            definition = make(count)
            figures = [measure(work, definition, options.rounds) for work in works.values()]
            print(f"{shape:<10}{count:>8}" + "".join(f"{figure:>9.0f} ms" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
