"""The JSON dialect: how neutral messages reach a model that can only read and write text. Pure.

Its own actions and answers stand there as the protocol's JSON; observations and errors are prose in the user's
turn, never JSON that looks like a reply, since a small model echoes what looks like one.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

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
    """Each message as (role, text). The answers to a call are the tool messages right behind it."""
    answered: set[int] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if index not in answered:
                yield "user", prose.observation(message.get("name") or "a tool", message["content"])
        elif message.get("tool_calls"):
            behind = takewhile(lambda place: messages[place]["role"] == "tool", range(index + 1, len(messages)))
            answers = {messages[place].get("tool_call_id"): place for place in reversed(list(behind))}
            answered.update(answers[call["id"]] for call in message["tool_calls"] if call.get("id") in answers)
            yield from _calls(message, {id_: messages[place] for id_, place in answers.items()}, prose)
        elif message["role"] == "assistant":
            yield "assistant", render(Final(message["content"]))
        else:
            yield message["role"], message["content"]


def _calls(message: Json, answers: dict[Any, Json], prose: Prose) -> Iterator[tuple[str, str]]:
    """Each call as an action of its own, with its answer right behind it."""
    thought = message["content"] or None
    for call in message["tool_calls"]:
        tool = call["function"]["name"]
        args = orjson.loads(call["function"].get("arguments") or "{}")
        yield "assistant", render(Action(tool, args, thought))
        answer = answers.get(call.get("id"))
        yield "user", prose.observation(tool, answer["content"] if answer else "no answer was recorded")
