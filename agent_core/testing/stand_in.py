"""StandIn: what a model of a test shares: it answers a question by code, in the protocol of its run."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from agent_core.errors import DefinitionError
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.scripted import ScriptedModel
from agent_core.outputs import Json
from agent_core.protocol.parse import Action, Final, Plan, render
from agent_core.protocol.tools_dialect import function_name

Reply = str | Action | Final | Plan | Sequence[Action] | Mapping[str, Any]
"""A text, as the model writes it; a step; several actions at once, by function calling; or {content, calls?, …}, or a
step as a mapping, as in a script."""


class OfferedTool(NamedTuple):
    """A tool that the model may call now: its code, its description, and the schema of what a model may send."""

    code: str
    description: str
    schema: Json


class StandIn:
    """A model that answers by code. Subclasses say how, in `answer`."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def answer(self, question: Question) -> Reply:
        """Return the reply to a question; raises ModelError."""
        raise NotImplementedError

    async def complete(self, question: Question) -> Completion:
        return await (await self._script(question)).complete(replace(question, index=0))

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """Yield the reply in pieces of a few characters."""
        script = await self._script(question)
        async with aclosing(script.stream(replace(question, index=0))) as pieces:
            async for piece in pieces:
                yield piece

    def info(self) -> ModelInfo:
        return ModelInfo(self._name, streaming=True)

    async def close(self) -> None:
        """Nothing to close."""

    async def _script(self, question: Question) -> ScriptedModel:
        reply = encode_reply(await self.answer(question), is_native=is_native(question))
        try:
            return ScriptedModel([reply], name=self._name)
        except DefinitionError as error:
            raise ModelError(str(error).removeprefix("model: "), requests=0) from None


def is_native(question: Question) -> bool:
    """Return whether calls travel as function calls, rather than as JSON in the text."""
    return question.options.get("protocol") == "tools"


def must_answer(question: Question) -> bool:
    """Return whether no call is legal any more, as far as the question says so."""
    steps = question.options.get("step_schema", {}).get("anyOf", ())
    kinds = [each.get("properties", {}).get("type", {}).get("enum") for each in steps]
    return kinds == [["final"]] or question.options.get("tool_choice") == "none" or not question.tools


def offered_tools(question: Question) -> list[OfferedTool]:
    """Return the tools that may be called, in the order of the whitelist."""
    if must_answer(question):
        return []
    return [OfferedTool(code, tool["description"], tool["visible"]) for code, tool in question.tools.items()]


def encode_reply(reply: Any, *, is_native: bool) -> Any:
    """Return the reply as a script has it: steps as the protocol of the run writes them."""
    match reply:
        case Action():
            return encode_reply([reply], is_native=True) if is_native else render(reply)
        case Final(answer) if is_native:
            return {"content": answer if isinstance(answer, str) else orjson.dumps(answer).decode()}
        case Final() | Plan():
            return render(reply)
        case [Action(), *others] if not all(isinstance(each, Action) for each in others):
            raise ModelError("a reply is one step, or several actions; an action and another step are two", requests=0)
        case [Action(), *_] if is_native:
            calls = [{"name": function_name(each.tool), "arguments": each.args} for each in reply]
            return {"content": reply[0].thought, "calls": calls}
        case [Action() as action]:
            return render(action)
        case [Action(), *_]:
            names = ", ".join(each.tool for each in reply)
            message = f"several actions in one reply ({names}) need function calling: protocol: tools"
            raise ModelError(message, requests=0)
        case {"type": "action", "tool": str(tool), "args": dict(args)} if is_native and "content" not in reply:
            return encode_reply([Action(tool, args, reply.get("thought"))], is_native=True)
        case {"type": "final", "answer": answer} if is_native and "content" not in reply:
            return encode_reply(Final(answer), is_native=True)
        case _:
            return reply
