"""ScriptedModel: replies from a script in place of a model; for tests, demos and offline runs."""

import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from agent_core.errors import DefinitionError
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question

Messages = list[dict[str, Any]]
Reply = str | Mapping[str, Any]
Replies = Sequence[Reply]
ScriptFunction = Callable[[Messages], "Reply | Awaitable[Reply]"]
PIECE = 8
STEPS = ("action", "final", "plan")
FORMS = 'a text, a step such as {"type": "final", "answer": "Done."}, or {content, finish_reason?, usage?, calls?}'


class ScriptedModel:
    """Answers from a script: reply k is for the strand's k-th question, so a resumed run needs no cursor.

    `script` is a list of replies, a mapping from strand path to such a list, or a function of the messages as sent.
    A reply is a text, a step of the protocol ({type: action, tool, args}, …), which is sent as JSON, or {content,
    finish_reason?, usage?, calls?}. `calls` are native function calls, {name, arguments} each, the arguments as JSON
    text or as an object. A script without a reply left is a model error.
    """

    def __init__(self, script: Replies | Mapping[str, Replies] | ScriptFunction, *, name: str = "scripted") -> None:
        self._script, self._name = script, name

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "ScriptedModel":
        """A script in a JSON file; DefinitionError when it cannot be read or has another shape."""
        path = Path(path)
        try:
            script = orjson.loads(path.read_bytes())
        except OSError as error:
            raise DefinitionError(
                f"the script cannot be read: {error.strerror}", where="model", value=path.name
            ) from None
        except orjson.JSONDecodeError as error:
            raise DefinitionError(f"the script is not JSON: {error}", where="model", value=path.name) from None
        _check_script(script, path.name)
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
        finish_reason, calls = reply.get("finish_reason", "stop"), tuple(map(_encode_call, reply.get("calls", ())))
        return Completion(reply["content"] or "", finish_reason, inputs, outputs, usage.get("cost"), calls=calls)

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """The reply in pieces of a few characters."""
        completion = await self.complete(question)
        for start in range(0, len(completion.content), PIECE):
            yield Delta(completion.content[start : start + PIECE])
        yield completion

    async def _reply(self, question: Question) -> Reply:
        if callable(self._script):
            reply = self._script([orjson.loads(message) for message in question.messages])
            return await reply if inspect.isawaitable(reply) else reply
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


def _check_script(script: Any, file: str) -> None:
    for strand, replies in script.items() if isinstance(script, dict) else [("", script)]:
        whose = f"{file}: {strand}" if strand else file
        if not isinstance(replies, list):
            raise DefinitionError(f"{whose}: must be an array of replies", where="model", value=replies)
        for number, reply in enumerate(replies, 1):
            if not isinstance(reply, str) and not (isinstance(reply, dict) and ("content" in reply or _is_step(reply))):
                raise DefinitionError(f"{whose}: reply {number} must be {FORMS}", where="model", value=reply)
