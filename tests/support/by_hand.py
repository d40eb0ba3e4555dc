"""Driving a loop by hand: a `run_started` body, and the replies that a test gives to what the loop asks."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from agent_core.effects import (
    CallModel,
    CallTools,
    Cancelled,
    Classify,
    Decided,
    Failed,
    ModelReply,
    Suspended,
    ToolReply,
    Wait,
)
from agent_core.loop.agent import agent
from agent_core.loop.outcome import AgentOutcome
from agent_core.protocol.tools_dialect import function_name
from agent_core.run.prepare import prepare_agent
from utools.registry import ToolRegistry
from utools.tool import Tool

AT = "2026-01-01T00:00:00.000Z"
Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def look(code: str = "look", **options: Any) -> Tool:
    """A tool that is never executed: by hand, the test answers for it."""
    return Tool(
        code, f"Does {code}.", options.pop("schema", Q), lambda args, context: None, **{"effect": "read"} | options
    )


def action(tool: str = "look", **args: Any) -> str:
    return orjson.dumps({"type": "action", "tool": tool, "args": args or {"q": "x"}}).decode()


def final(answer: Any = "done") -> str:
    return orjson.dumps({"type": "final", "answer": answer}).decode()


def said(
    content: str, *, finish_reason: str = "stop", seconds: float = 1.0, tokens: int = 10, cost: float | None = None
) -> ModelReply:
    usage = {"input_tokens": tokens, "output_tokens": 0, "estimated": False, "cost": cost}
    return ModelReply(content.encode("utf-8", "backslashreplace").decode(), finish_reason, usage, AT, seconds)


def spoken(reply: Any, protocol: str) -> Any:
    """A reply that a test wrote as the protocol's JSON, as a model says it in this dialect.

    A text that is no step becomes a call whose arguments cannot be read; what stands in a `ModelReply` and is none, or
    begins with a space, is said as it is.
    """
    whole = said(reply) if isinstance(reply, str) else reply
    if protocol == "json" or not isinstance(whole, ModelReply) or whole.calls or whole.content.startswith(" "):
        return whole
    try:
        step = orjson.loads(whole.content)
        step["type"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        if not isinstance(reply, str):
            return whole
        step = {"type": "action", "tool": "look", "args": whole.content}
    if step["type"] == "final":
        answer = step["answer"]
        return whole._replace(content=answer if isinstance(answer, str) else orjson.dumps(answer).decode())
    arguments = step["args"] if isinstance(step["args"], str) else orjson.dumps(step["args"]).decode()
    return whole._replace(content="", calls=[{"name": function_name(step["tool"]), "arguments": arguments}])


def calls(*made: tuple[str, dict[str, Any]], thought: str = "") -> ModelReply:
    """A reply with native calls side by side, (tool, args) each."""
    sent = [{"name": function_name(tool), "arguments": orjson.dumps(args).decode()} for tool, args in made]
    return said(thought)._replace(calls=sent)


def did(output: Any = "seen", *, seconds: float = 1.0, **options: Any) -> ToolReply:
    return ToolReply(True, output, None, AT, seconds, **options)


def broke(error: str = "it broke") -> ToolReply:
    return ToolReply(False, None, error, AT, 1.0)


Reply = str | ModelReply | Failed | Cancelled
Act = Callable[[CallTools], Sequence[Any]]


class Hand:
    """One run driven by hand. Keeps what was asked: `questions`, `batches`, `decided`, `waits`."""

    def __init__(
        self,
        replies: Sequence[Reply],
        *,
        tools: Sequence[Tool] = (),
        act: Act | Sequence[Any] | None = None,
        decisions: Sequence[Any] = (),
        effects: str = "read",
        **config: Any,
    ) -> None:
        self.tools = tools or (look(),)
        allowed = [tool.code for tool in self.tools]
        defaults = {"model": "m", "max_steps": 5, "allowed_tools": allowed, "prompt": "Go."}
        registry = ToolRegistry(self.tools)
        self.started = prepare_agent("r", "agent", {**defaults, **config}, {}, registry=registry, at=AT)
        self.questions: list[list[dict[str, str]]] = []
        self.asked: list[CallModel] = []
        self.batches: list[CallTools] = []
        self.decided: list[dict[str, Any]] = []
        self.waits: list[Wait] = []
        self._replies, self._decisions, self._effects = iter(replies), iter(decisions), effects
        self._act = act if callable(act) else _from(act)
        self.outcome = self._drive()
        self.output = self.outcome.output

    def _drive(self) -> AgentOutcome:
        loop, reply = agent(self.started), None
        while True:
            try:
                effect = loop.send(reply)
            except StopIteration as stop:
                outcome: AgentOutcome = stop.value
                return outcome
            reply = self._answer(effect)

    def _answer(self, effect: Any) -> Any:
        match effect:
            case CallModel():
                self.asked.append(effect)
                self.questions.append([orjson.loads(message) for message in effect.messages])
                return spoken(next(self._replies), self.started["config"]["protocol"])
            case CallTools():
                self.batches.append(effect)
                return tuple(self._act(effect))
            case Decided(record):
                self.decided.append(record)
                return None
            case Classify():
                return self._effects
            case Wait():
                self.waits.append(effect)
                words = next(self._decisions)
                return words if isinstance(words, Suspended | Cancelled) else tuple(words)
        raise AssertionError(effect)

    @property
    def last_heard(self) -> str:
        """What the last question says behind the model's own last step."""
        heard: list[str] = []
        for message in reversed(self.questions[-1]):
            if message["role"] == "assistant":
                break
            heard.insert(0, message["content"])
        return "\n\n".join(heard[-2:])

    @property
    def reason(self) -> str:
        return self.outcome.finish_reason


def _from(act: Sequence[Any] | None) -> Act:
    """One result for each batch, in order; by default every call succeeds."""
    if act is None:
        return lambda batch: [did() for _ in batch.calls]
    results = iter(act)
    return lambda batch: [next(results) for _ in batch.calls]
