"""Random runs: odd replies, tools that fail in every way, crashes, cancellations, rival drivers, any decision.

Whatever happens, a run comes to its end, keeps its limits, verifies and replays, and makes no write twice unasked.
"""

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Approve, Deny, Edit, Fail, MemoryJournal, Retry, Skip, replay, run_agent, verify
from agent_core.errors import DecisionError
from agent_core.journal.record import Row
from agent_core.models.client import Completion, ModelError, ModelInfo, Question
from agent_core.run.agent_tool import agent_tool
from support.examples import examples
from utools import Tool, ToolRegistry, ToolResult
from utools.context.turns import last_turn
from utools.errors import ToolError

ARGS = {"type": "object", "properties": {"n": {"type": "integer"}, "q": {"type": "string"}}, "required": ["n"]}
EFFECTS: Mapping[str, Any] = {
    "read": "read",
    "write": "write",
    "again": "write",  # idempotent
    "dynamic": lambda args: "read" if args["q"] == "look" else "write",
}
OWN = re.compile(r"agent(/\d+\.\d+)?")
"""The strands of an agent's own calls: its own, and one for each item of a batch."""
UNREADABLE = ["", "no", "{", '{"type":"final"}', '{"type":"final","answer":1}{}', "[" * 99, '"\ud800"', '{"a":1,"a":2}']
CHOICES: Mapping[str, list[Any]] = {
    "max_steps": [1, 3, 6, 9],
    "max_tool_calls": [0, 1, 3, 9],
    "total_token_budget": [0, 0, 0, 900, 3000],
    "max_input_tokens": [None, None, 300],
    "max_repairs": [0, 1, 3],
    "repair_scope": ["all", "unreadable"],
    "parsing": ["strict", "tolerant"],
    "protocol": ["json", "tools"],
    "fallback_models": [[], ["m2"]],
    "answer_schema": [None, None, {"type": "integer"}],
    "observation_max_len": [0, 9, 256],
    "trace_max_bytes": [0, 2, 300, 32768],
}


class Crash(Exception):
    """The process died here."""


class World:
    """Model, tools and journal at once: does as chance says, and counts what was done."""

    threads: Final = None
    identity: Final = None

    def __init__(self) -> None:
        tools = [Tool(c, c, ARGS, self.tool(c), effect=e, idempotent=c == "again") for c, e in EFFECTS.items()]
        self.registry = ToolRegistry(tools)
        self.registry.register(agent_tool(self.registry))

    def begin(self, chance: Random) -> None:
        self.chance, self.journal, self.left = chance, MemoryJournal(), 0
        self.stale: list[Any] = []
        self.replies: dict[tuple[str, int], Completion] = {}
        self.writes: Counter[str] = Counter()
        self.keys: defaultdict[int, set[str]] = defaultdict(set)
        self.driver: asyncio.Task[Any] | None = None

    def one_in(self, times: int) -> bool:
        return self.chance.randrange(times) == 0

    def config(self, depth: int = 0) -> dict[str, Any]:
        pick = self.chance.choice
        allowed = [
            {"tool": tool, "approval": pick(["never", "never", "on_write", "always"]), "max_calls": pick([0, 0, 1, 2])}
            for tool in [*EFFECTS, *(["agent_core"] if depth < 2 else [])]
            if not self.one_in(8)
        ]
        for entry in allowed:
            if entry["tool"] == "agent_core":
                entry["preset"] = {k: v for k, v in self.config(depth + 1).items() if k != "prompt"}
        fixed = {"model": "m", "prompt": "go on", "allowed_tools": allowed, "single_call_timeout": 0.02}
        return fixed | {key: pick(values) for key, values in CHOICES.items()}

    # ── the model and the tools ──────────────────────────────────────────────────────────────────

    async def complete(self, question: Question) -> Completion:
        place = question.strand, question.index
        native = "tools" in question.options
        said = self.replies.get(place) or self.replies.setdefault(place, self.natively() if native else self.reply())
        self.cancel()
        if self.one_in(40):
            await asyncio.sleep(9)
        if self.one_in(40):
            raise ModelError("the vendor is down")
        return said

    def call(self, n: int) -> tuple[str, Any]:
        """Any call; each has a number of its own."""
        pick = self.chance.choice
        tool = pick([*EFFECTS, "agent_core", "write", "write"]) if not self.one_in(12) else "unknown"
        args: Any = {"prompt": f"do {n}"} if tool == "agent_core" else {"n": n, "q": pick(["look", "x" * 500])}
        if self.one_in(12):
            args = pick([{}, {"n": "1"}, {"n": n, "model": "x"}])
        return tool, args

    def natively(self) -> Completion:
        """Any reply of a model that calls functions, several at once."""
        pick, n = self.chance.choice, len(self.replies)
        made = [self.call(10 * n + index) for index in range(self.chance.randrange(5))]
        if self.one_in(3):
            made = [("read" if tool != "unknown" else tool, args) for tool, args in made]
        sent = [{"name": tool, "arguments": json.dumps(args)} for tool, args in made]
        if sent and self.one_in(12):
            sent[-1]["arguments"] = pick(["{", "[]", '{"n":1,"n":2}', '"\\ud800"', ""])
        text = pick(["", "well", json.dumps(n), "<tool_call>", *UNREADABLE])
        return Completion(text, pick(["length", "content_filter"]) if self.one_in(20) else "stop", calls=tuple(sent))

    def reply(self) -> Completion:
        """Any reply of a model that writes the protocol's JSON."""
        pick, n = self.chance.choice, len(self.replies)
        tool, args = self.call(10 * n)
        final = {"type": "final", "answer": pick(["done", n, "x" * 900])}
        action = {"type": "action", "tool": tool, "args": args, "thought": "well"}
        text = json.dumps(final if self.one_in(5) else action)
        if self.one_in(8):
            text = pick([f"```json\n{text}\n```", f"{text}\n{text}", *UNREADABLE])
        return Completion(text, pick(["length", "content_filter"]) if self.one_in(20) else "stop")

    def info(self) -> ModelInfo:
        return ModelInfo("m")

    async def close(self) -> None:
        """The client's; nothing to let go of."""

    def tool(self, code: str) -> Any:
        async def execute(args: dict[str, Any], context: Any) -> Any:
            self.cancel()
            if code == "write" or (code == "dynamic" and args.get("q") != "look"):
                self.writes[context.idempotency_key] += 1
                self.keys[args["n"]].add(context.idempotency_key)
            self.cancel()
            match self.chance.randrange(16):
                case 0:
                    return ToolResult(False, error="it did not work: " + "y" * 400)
                case 1:
                    raise ValueError(chr(0xD800))
                case 2:
                    raise ToolError("busy", transient=code == "write")
                case 3:
                    await asyncio.sleep(9)
                case 4:
                    return float("nan")
                case 5:
                    raise asyncio.CancelledError
                case _:
                    await asyncio.sleep(0)
            return {"did": args, "role": "system"}

        return execute

    def cancel(self) -> None:
        if self.driver and not self.driver.cancelling() and self.one_in(25):
            self.driver.cancel()

    # ── the journal ──────────────────────────────────────────────────────────────────────────────

    def load(self, run: str) -> Any:
        return self.stale.pop() if self.stale else self.journal.load(run)

    def runs(self) -> list[str]:
        return self.journal.runs()

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        self.crash()
        new = self.journal.append(run, rows)
        self.crash()
        return new

    def crash(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


WORLD = World()


async def drive(config: Any, decisions: Any = None) -> Any:
    """What one driver came to; None when it died, or when two drove at once and each may tell of another moment."""
    rivals = 1 + WORLD.one_in(5)
    WORLD.left = WORLD.chance.choice([0, 0, 2, 2, 2, *range(1, 20)])
    WORLD.stale = [WORLD.journal.load("r")] * 4 if rivals > 1 and not decisions else []  # both read, then both write

    async def one() -> Any:
        WORLD.driver = asyncio.current_task() if rivals == 1 else None
        how: Any = {"registry": WORLD.registry, "model": WORLD, "journal": WORLD, "decisions": decisions}
        return await run_agent(config, run_id="r", **how)

    found = await asyncio.gather(*(asyncio.create_task(one()) for _ in range(rivals)), return_exceptions=True)
    WORLD.stale = []
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, Crash | asyncio.CancelledError):
            assert isinstance(each, DecisionError), each
            edited = [word for word in (decisions or {}).values() if isinstance(word, Edit)]
            assert rivals > 1 or (edited and "nothing was decided" in str(each))
    return None if rivals > 1 or isinstance(found[0], BaseException) else found[0]


def decision(entry: Any) -> Any:
    if entry["reason"] == "in_doubt":
        return WORLD.chance.choice([Retry(), Skip(), Fail()])
    edited = Edit({**entry["args"], "q": "look"})
    return WORLD.chance.choice([Approve(), Approve(), Deny("no"), edited, Edit({"n": "wrong"})])


def check(config: Any, output: Any) -> None:
    """What holds of every output, of one that waits too."""
    told, journal = replay(WORLD.journal, run_id="r"), output.journal
    assert told.identical, told
    assert told.outputs["agent"].output == {k: v for k, v in output.model_dump().items() if k != "journal"}
    assert verify(WORLD.journal, run_id="r", head=journal["head"], count=journal["count"]).ok
    assert output.final_answer is None or output.finish_reason == "final"
    assert not config["trace_max_bytes"] or len(orjson.dumps(output.trace)) <= config["trace_max_bytes"]
    tape = {path: [row.record() for row in rows] for path, rows in WORLD.journal.load("r").items()}
    calls = {record["id"] for each in tape.values() for record in each if record["kind"] == "asked" and "id" in record}
    own = [record for path, each in tape.items() if OWN.fullmatch(path) for record in each]
    started = {record["id"]: record["tool"] for record in own if record["kind"] == "asked" and "id" in record}
    assert not config["max_tool_calls"] or len(calls) <= config["max_tool_calls"]
    for entry in config["allowed_tools"]:
        assert not entry["max_calls"] or list(started.values()).count(entry["tool"]) <= entry["max_calls"]
    assert sum(record.get("reply") == "said" for record in tape["agent"]) <= config["max_steps"]
    last_turn(output.messages_json)  # raises when a call has no answer


async def live() -> None:
    config, retries, output = WORLD.config(), 0, None
    for _ in range(60):
        if output is not None and output.waiting:
            words = {(entry["strand"], entry["n"]): decision(entry) for entry in output.waiting}
            retries += sum(isinstance(word, Retry) for word in words.values())
            output = await drive(config, words)
        else:
            output = await drive(config)
        if output is not None:
            check(config, output)
            if not output.waiting:
                break
        elif "agent" in WORLD.load("r"):
            assert replay(WORLD, run_id="r").divergence is None  # whatever was left half done
    assert output is not None
    assert not output.waiting
    assert verify(WORLD.journal, run_id="r").ok
    acted = sum(WORLD.writes.values()), len(WORLD.replies)
    assert output == await run_agent(config, registry=WORLD.registry, model=WORLD, journal=WORLD.journal, run_id="r")
    assert acted == (sum(WORLD.writes.values()), len(WORLD.replies))
    assert all(len(keys) == 1 for keys in WORLD.keys.values())
    assert sum(WORLD.writes.values()) <= len(WORLD.writes) + retries


@examples(2)
@given(st.integers(0, 2**32 - 1))
def test_whatever_happens_a_run_ends_proven(seed: int) -> None:
    WORLD.begin(Random(seed))
    asyncio.run(live())
