"""An engine for graphs of agents: a function speaks for each node, and what every model was sent is kept."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.models import ScriptedModel
from engine_shim import AgentBuilder, AgentState, Engine, MemoryRunStore
from engine_shim.builder.graph import AgentGraph
from engine_shim.runs.loops import LOOPS
from engine_shim.store.run_store import RunStore
from utools import Tool

ANY = {"type": "object", "properties": {"what": {"type": "string"}}}
Messages = list[dict[str, Any]]
Speaker = Callable[[Messages], Any]


def final(answer: Any) -> dict[str, Any]:
    return {"type": "final", "answer": answer}


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"type": "action", "tool": tool, "args": args}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


class ChatHost:
    """`speakers` are told apart by a word of their system prompt, `judge` speaks for the edges.

    A speaker is a function of the messages, or a list of replies in order. A tool waits at its gate, if it has one.
    """

    def __init__(self, store: RunStore | None = None, /, judge: Speaker | None = None, **speakers: Any) -> None:
        self.store = store or MemoryRunStore()
        self.sent: dict[str, list[Messages]] = {}
        self.done: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self._judge, self._speakers = judge, speakers
        tools = [Tool("look", "Looks.", ANY, self._look, effect="read"), Tool("pay", "Pays.", ANY, self._look)]
        self.engine = Engine(tools, store=self.store, model=ScriptedModel(self._speak))

    async def _look(self, args: dict[str, Any], context: Any) -> Any:
        what = args.get("what", "")
        if what in self.gates:
            await self.gates[what].wait()
        self.done.append(what)
        if what == "broken":
            raise ValueError("it is broken")
        return f"saw {what}"

    def _speak(self, messages: Messages) -> Any:
        text = messages[0]["content"]
        names = [name for name in self._speakers if f"You are {name}." in text]
        if not names:
            assert self._judge is not None, text
            return self._judge(messages)
        sent = self.sent.setdefault(names[0], [])
        sent.append(messages)
        speaker = self._speakers[names[0]]
        return speaker(messages) if callable(speaker) else speaker[len(sent) - 1]

    def heard(self, name: str, index: int = -1) -> list[tuple[str, str]]:
        """A question that a node's model was sent: role and content, without the system message."""
        return [(message["role"], message["content"]) for message in self.sent[name][index][1:]]

    def is_sound(self, run_id: str) -> bool:
        """Whether a finished run is whole, and its replay the same."""
        whole = replay(self.store.journal, run_id=run_id, loops=LOOPS).identical
        return whole and verify(self.store.journal, run_id=run_id).ok


def asks(text: str = "Hello.", **keys: Any) -> AgentState:
    return AgentState(context=[user(text)], **keys)


def chain(host: ChatHost, *keys: str, **options: Any) -> AgentGraph:
    """A graph of nodes one after another, each with both tools."""
    builder = AgentBuilder("chain").set_entry_point(keys[0])
    for key in keys:
        builder.add_llm_node(key, "", "m", ["look", "pay"], f"You are {key}.", **options)
    for source, target in pairwise(keys):
        builder.add_edge(source, target)
    return builder.build(host.engine)


def play(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]
