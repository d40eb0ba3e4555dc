"""The JSON dialect: how neutral messages reach a model that can only read and write text. Pure.

Its own actions and answers stand there as the protocol's JSON; observations and errors are prose in the user's
turn, never JSON that looks like a reply, since a small model echoes what looks like one.
"""

from collections.abc import Iterator, Sequence

import orjson

from agent_core.loop.effects import Json
from agent_core.loop.prose import Prose
from agent_core.loop.protocol import Action, Final, render


def encode(messages: Sequence[Json], prose: Prose) -> list[Json]:
    """A conversation as {role, content} messages; neighbours of one role become one message."""
    sent: list[Json] = []
    for role, content in _lines(messages, prose):
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += f"\n\n{content}"
        else:
            sent.append({"role": role, "content": content})
    return sent


def _lines(messages: Sequence[Json], prose: Prose) -> Iterator[tuple[str, str]]:
    answers = {m["tool_call_id"]: m for m in messages if m["role"] == "tool" and m.get("tool_call_id")}
    called = {call.get("id") for m in messages for call in m.get("tool_calls") or ()}
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in called:
                yield "user", prose.observation(message.get("name") or "a tool", message["content"])
        elif message.get("tool_calls"):
            yield from _calls(message, answers, prose)
        elif message["role"] == "assistant":
            yield "assistant", render(Final(message["content"]))
        else:
            yield message["role"], message["content"]


def _calls(message: Json, answers: dict[str, Json], prose: Prose) -> Iterator[tuple[str, str]]:
    """Each call as an action of its own, with its answer right behind it."""
    thought = message["content"] or None
    for call in message["tool_calls"]:
        tool = call["function"]["name"]
        args = orjson.loads(call["function"].get("arguments") or "{}")
        yield "assistant", render(Action(tool, args, thought))
        answer = answers.get(call.get("id") or "")
        yield "user", prose.observation(tool, answer["content"] if answer else "no answer was recorded")
