"""ScriptedModel: replies from a script in place of a model; for tests, demos and offline runs."""

import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from agent_core.errors import DefinitionError
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.usage import PARTS

Messages = list[dict[str, Any]]
Reply = str | Mapping[str, Any]
Replies = Sequence[Reply]
ScriptFunction = Callable[[Messages], "Reply | Awaitable[Reply]"]
PIECE = 8
STEPS = ("action", "final", "plan")
FORMS = 'a text, a step such as {"type": "final", "answer": "Done."}, or {content, finish_reason?, usage?, calls?}'

CALL = '{"name": …, "arguments": …}, the arguments an object or its JSON text'
SHAPES: dict[str, tuple[Any, str]] = {
    "content": (str | None, "a text, or null"),
    "finish_reason": (str | None, "a text such as stop or length"),
    "usage": (Mapping | None, f"an object {{input_tokens, output_tokens, cost, {', '.join(PARTS)}}}"),
    "calls": (list | tuple | None, f"a list of {CALL}"),
}


class ScriptedModel:
    """Answers from a script: reply k is for the strand's k-th question, so a resumed run needs no cursor.

    `script` is a list of replies, a mapping from strand path to such a list, or a function of the messages as sent.
    A reply is a text, a step of the protocol ({type: action, tool, args}, …), which is sent as JSON, or {content,
    finish_reason?, usage?, calls?}. `usage` is {input_tokens, output_tokens, cost} or a part of it; tokens that it
    leaves out are estimated. `calls` are native function calls, {name, arguments} each, the arguments as JSON text or
    as an object. A script without a reply left is a model error.
    """

    def __init__(self, script: Replies | Mapping[str, Replies] | ScriptFunction, *, name: str = "scripted") -> None:
        if not callable(script):
            _check_script(script, name)
        self._script, self._name = script, name

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "ScriptedModel":
        """Return a script in a JSON file; DefinitionError when it cannot be read or has another shape."""
        path = Path(path)
        try:
            script = orjson.loads(path.read_bytes())
        except OSError as error:
            raise DefinitionError(
                f"the script cannot be read: {error.strerror}", where="model", value=str(path)
            ) from None
        except orjson.JSONDecodeError as error:
            raise DefinitionError(f"the script is not JSON: {error}", where="model", value=str(path)) from None
        except ValueError:
            raise DefinitionError("no file has such a name", where="model", value=str(path)) from None
        _check_script(script, str(path))  # whose path no name has
        return cls(script, name=f"scripted:{path.name}")

    async def complete(self, question: Question) -> Completion:
        reply = await self._reply(question)
        if isinstance(reply, str):
            return Completion(reply)
        if _is_step(reply):
            return Completion(orjson.dumps(dict(reply)).decode())
        usage = reply.get("usage") or {}
        inputs = usage.get("input_tokens", usage.get("prompt_tokens"))
        outputs = usage.get("output_tokens", usage.get("completion_tokens"))
        finish_reason, calls = reply.get("finish_reason", "stop"), tuple(map(_encode_call, reply.get("calls") or ()))
        parts = {name: usage[name] for name in PARTS if type(usage.get(name)) is int}
        text, cost = reply["content"] or "", usage.get("cost")
        return Completion(text, finish_reason, inputs, outputs, cost, calls=calls, **parts)

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """Yield the reply in pieces of a few characters."""
        completion = await self.complete(question)
        for start in range(0, len(completion.content), PIECE):
            yield Delta(completion.content[start : start + PIECE])
        yield completion

    async def _reply(self, question: Question) -> Reply:
        if callable(self._script):
            reply = self._script([orjson.loads(message) for message in question.messages])
            return _check_returned(await reply if inspect.isawaitable(reply) else reply)
        replies = self._script.get(question.strand, ()) if isinstance(self._script, Mapping) else self._script
        if question.index >= len(replies):
            raise ModelError(f"the script has no reply {question.index + 1} for strand {question.strand}", requests=0)
        return replies[question.index]

    def info(self) -> ModelInfo:
        return ModelInfo(self._name, streaming=True)

    async def close(self) -> None:
        """Nothing to close."""


def _encode_call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["arguments"]
    return {**call, "arguments": arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()}


def _is_step(reply: Mapping[str, Any]) -> bool:
    return "content" not in reply and reply.get("type") in STEPS


def _check_returned(reply: Any) -> Reply:
    """Return the reply of a script's function; ModelError for what is none."""
    try:
        _check_reply(reply, "what the script's function returned")
    except DefinitionError as error:
        raise ModelError(str(error).removeprefix("model: "), requests=0) from None
    checked: Reply = reply
    return checked


def _check_script(script: Any, name: str) -> None:
    """DefinitionError, with its position, for a reply that has none of the forms."""
    for strand, replies in script.items() if isinstance(script, Mapping) else [("", script)]:
        whose = f"{name}: {strand}" if strand else name
        if not isinstance(replies, Sequence) or isinstance(replies, str):
            raise DefinitionError(f"{whose}: must be an array of replies", where="model", value=replies)
        for number, reply in enumerate(replies, 1):
            _check_reply(reply, f"{whose}: reply {number}")


def _check_reply(reply: Any, whose: str) -> None:
    if isinstance(reply, str):
        return
    if not isinstance(reply, Mapping) or not ("content" in reply or _is_step(reply)):
        raise DefinitionError(f"{whose} must be {FORMS}", where="model", value=reply)
    if "content" not in reply:
        return
    if "tool_calls" in reply:
        raise DefinitionError(
            f"{whose}: its calls are under `calls`, not under `tool_calls`: a list of {CALL}", where="model"
        )
    for key, (kinds, form) in SHAPES.items():
        if not isinstance(reply.get(key), kinds):
            raise DefinitionError(f"{whose}: {key} must be {form}", where="model", value=reply[key])
    for key, count in (reply.get("usage") or {}).items():
        if isinstance(count, bool) or not isinstance(count, int | float | None):
            raise DefinitionError(f"{whose}: usage/{key} must be a number", where="model", value=count)
    for number, call in enumerate(reply.get("calls") or (), 1):
        if not _is_call(call):
            raise DefinitionError(f"{whose}: call {number} must be {CALL}", where="model", value=call)


def _is_call(call: Any) -> bool:
    is_named = isinstance(call, Mapping) and isinstance(call.get("name"), str)
    return is_named and isinstance(call.get("arguments"), str | Mapping)
