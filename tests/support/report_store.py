"""A store whose runs have all that an auditor's report tells of: refusals, decisions, doubts, retries, and damage."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from agent_core import run_agent_sync
from agent_core.decisions import Approve, Deny, Done
from agent_core.journal.record import genesis, link
from agent_core.models import ScriptedModel
from engine_shim import Engine, load_workflow
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action, final
from utools import Tool, ToolContext, ToolError, ToolRegistry, ToolResult

ANY = {"type": "object", "additionalProperties": True}
EVIL = "</td></table><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m\"'&"
"""A text that would leave its cell, its page and its line."""
CHINESE = "不行:这笔钱不该付"
PAYS = ["look", {"tool": "pay", "approval": "always"}]


class ReportStore:
    """Drives runs into a store, each under an id that says what it is."""

    def __init__(self, path: Path) -> None:
        self.path, self.store, self.broken = path, SqliteRunStore(path), set[str]()

    def engine(self, script: Sequence[Any] = ()) -> Engine:
        def look(args: Any, context: ToolContext) -> str:
            if "look" in self.broken:
                raise ToolError(f"nothing there {EVIL}")
            return EVIL

        async def wire(args: Any, context: ToolContext) -> ToolResult:
            return ToolResult(False, error="the line went dead", metadata={"cut_off": True})

        tools = [
            Tool("look", "Looks.", ANY, look, effect="read"),
            Tool("pay", "Pays.", ANY, lambda args, context: "paid"),
            Tool("wire", "Sends money.", ANY, wire),
        ]
        return Engine(ToolRegistry(tools), store=self.store, model=ScriptedModel(list(script)))

    def ask(self, run: str, *script: str, workflow: str = "desk", **config: Any) -> None:
        """Run an agent of a workflow."""
        agent = {"model": "m", "max_steps": 3, "allowed_tools": ["look"], "prompt": "Go.", **config}
        flow = load_workflow({"id": workflow, "nodes": [{"tool": "agent_core", "config": agent}]})
        self.engine(script).run_sync(flow, run_id=run)

    def call(self, run: str, tool: str, **node: Any) -> None:
        """Run a workflow of one tool."""
        flow = load_workflow({"id": "plain", "version": "2", "nodes": [{"tool": tool, "config": {"q": run}, **node}]})
        self.engine().run_sync(flow, run_id=run)

    def decide(self, run: str, at: tuple[str, int], decision: Any, by: str, *script: str) -> None:
        asyncio.run(self.engine(script).resume(run, decisions={at: decision}, by=by))

    def change(self, run: str, strand: str, n: int, data: bytes) -> None:
        """Put another record in the place of one."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("UPDATE rows SET data = ? WHERE run = ? AND strand = ? AND n = ?", (data, run, strand, n))

    def write_nonsense(self, run: str, strand: str, n: int, **fields: Any) -> None:
        """Give a record other values in chains that are sound, as only another program would."""
        heads: dict[str, bytes] = {}
        with closing(sqlite3.connect(self.path)) as db, db:
            found = db.execute("SELECT seq, strand, n, data FROM rows WHERE run = ? ORDER BY seq", (run,)).fetchall()
            for seq, path, number, data in found:
                record = orjson.loads(data)
                if (path, number) == (strand, n):
                    record |= fields
                if "closes" in record:
                    record["closes"] = [[below, heads[below].hex(), count] for below, _, count in record["closes"]]
                written = orjson.dumps(record)
                heads[path] = link(heads.get(path) or genesis(run, path), written)
                db.execute("UPDATE rows SET hash = ?, data = ? WHERE seq = ?", (heads[path], written, seq))


def make_report_store(path: Path) -> ReportStore:
    """Return a store with a run of each kind."""
    made = ReportStore(path)
    agent, pay = "flow/agent_core.1", action("pay", amount=5)
    made.ask("completed", action("look", q="x"), final(EVIL))
    made.ask("refused", pay, action("look", q="y"), final("No."))
    made.ask("limited", action("look", q="x"), final("No."), max_steps=1)
    made.ask("paid-freely", pay, final("Paid."), allowed_tools=["look", "pay"], max_steps=4)
    made.ask("approved", pay, final("Paid."), allowed_tools=PAYS)
    made.decide("approved", (agent, 4), Approve(), "安", pay, final("Paid."))
    made.ask("denied", pay, final("Not paid."), allowed_tools=PAYS)
    made.decide("denied", (agent, 4), Deny(f"{CHINESE} {EVIL}"), EVIL, pay, final("Not paid."))
    made.ask("waits", pay, allowed_tools=PAYS)
    made.ask("cancelled", pay, allowed_tools=PAYS)
    asyncio.run(made.engine().cancel("cancelled", by="ann"))
    made.call("doubtful", "wire")
    made.call("done", "wire")
    made.decide("done", ("flow/wire.1", 1), Done("sent"), "ann")
    made.broken.add("look")
    made.call("failed", "look", retry={"max_attempts": 2, "delay": 0})
    made.broken.clear()
    asyncio.run(made.engine().retry_failed("failed", new_id="retried"))
    made.store.save_submission("told", "ci")
    made.call("told", "look")
    config = {"model": "m", "max_steps": 2, "allowed_tools": [], "prompt": EVIL}
    run_agent_sync(
        config, registry=ToolRegistry([]), model=ScriptedModel([final("x")]), journal=made.store.journal, run_id="bare"
    )
    made.call("deleted", "look")
    made.store.forget("deleted")
    made.ask("damaged", action("look", q="x"), final("Yes."), workflow="other")
    made.change("damaged", agent, 2, b'{"kind":"answered","reply":"did","success":true}')
    made.ask("changed", final("A."), workflow="other")
    made.change("changed", "flow", 0, made.store.journal.load("changed")["flow"][0].data.replace(b"other", b"OTHER"))
    return made
