"""Engines on one store whose tools wait at a gate until a test lets them answer."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.models import ScriptedModel
from engine_shim import Engine, MemoryRunStore, load_workflow
from engine_shim.runs.loops import LOOPS
from engine_shim.store.leases import MemoryLeases, Notice
from utools import Tool, default_registry

ANY = {"type": "object", "additionalProperties": True}


class NoticedLeases(MemoryLeases):
    """Leases that count how often a driver was handed a signal to each run."""

    def __init__(self) -> None:
        super().__init__()
        self.handed = Counter[str]()

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        notices = super().renew(driver, runs)
        self.handed.update(notices.keys())
        return notices


class Host:
    """Engines on one store, with a tool that answers when it is let; what it did is counted."""

    def __init__(self, replies: Any = (), **options: Any) -> None:
        self.did: list[str] = []
        self.aborted: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.store, self.leases = MemoryRunStore(), NoticedLeases()
        self.store.leases = self.leases
        self.replies, self.options = replies, options
        self.engine, self.other = self.made(), self.made()

    def made(self) -> Engine:
        registry = default_registry()
        registry.register(Tool("work", "Works.", ANY, self._work, effect="read"))
        registry.register(Tool("pay", "Pays.", ANY, self._pay))
        return Engine(registry, store=self.store, model=ScriptedModel(self.replies), **self.options)

    async def _work(self, args: dict[str, Any], context: Any) -> Any:
        name = args["name"]
        try:
            if name in self.gates:
                await self.gates[name].wait()
        except asyncio.CancelledError:
            self.aborted.append(name)
            raise
        self.did.append(name)
        return {"did": name}

    async def _pay(self, args: dict[str, Any], context: Any) -> Any:
        if (name := f"pay {args['amount']}") in self.gates:
            await self.gates[name].wait()
        self.did.append(f"paid {args['amount']}")
        return {"paid": args["amount"]}

    def gate(self, *names: str) -> None:
        self.gates |= {name: asyncio.Event() for name in names}

    async def noticed(self, run_id: str = "r") -> None:
        """Wait until the run's driver knows of a signal: when it is handed it again, the first has arrived."""
        await until(lambda: self.leases.handed[run_id] >= 2)

    def start(self, nodes: list[Any], run_id: str = "r", **keys: Any) -> "asyncio.Task[Any]":
        workflow = load_workflow({"id": "w", "nodes": nodes, **keys})
        return asyncio.create_task(self.engine.run(workflow, run_id=run_id))

    def sound(self, result: Any) -> bool:
        journal = self.store.journal
        whole = replay(journal, run_id=result.run_id, loops=LOOPS).identical
        return whole and verify(journal, run_id=result.run_id, **result.journal).ok


def node(name: str, *after: str) -> dict[str, Any]:
    takes = [f"{{{{nodes.{each}}}}}" for each in after]
    return {"id": name, "tool": "work", "config": {"name": name, "takes": takes}}


def agent(**config: Any) -> dict[str, Any]:
    usual = {
        "model": "m",
        "max_steps": 4,
        "prompt": "Go.",
        "allowed_tools": ["work", {"tool": "pay", "approval": "always"}],
    }
    return {"tool": "agent_core", "config": {**usual, **config}}


async def until(true: Callable[[], Any]) -> None:
    """Wait for something that will be so."""
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.002)


def played(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]
