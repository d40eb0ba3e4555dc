"""The JSON dialect: how neutral messages reach a model that can only read and write text. Pure.

Its own actions and answers stand there as the protocol's JSON; observations and errors are prose in the user's
turn, never JSON that looks like a reply, since a small model echoes what looks like one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import orjson

from agent_core.loop.clip import clip
from agent_core.loop.dialect import ECHO_MAX, Entry, Reading, Told
from agent_core.loop.effects import Json, Said
from agent_core.loop.prose import Prose
from agent_core.loop.protocol import Action, Final, Mode, Plan, ProtocolError, parse, render


@dataclass(frozen=True, slots=True)
class JsonDialect:
    """Action and Final, in plain text."""

    prose: Prose

    def opening(self, messages: Sequence[Json]) -> list[Entry]:
        """Neighbours of one role become one message."""
        sent: list[Entry] = []
        for role, content in _lines(messages, self.prose):
            if sent and sent[-1].role == role:
                sent[-1] = Entry(role, f"{sent[-1].content}\n\n{content}")
            else:
                sent.append(Entry(role, content))
        return sent

    def read(self, reply: Said, *, mode: Mode, any_answer: bool) -> Reading:
        step = parse(reply.content, mode=mode, finish_reason=reply.finish_reason, any_answer=any_answer)
        if isinstance(step, Plan):
            return ProtocolError("unknown_type", 'A plan is not asked for here; "type" must be "action" or "final".')
        return [step] if isinstance(step, Action) else step

    def acted(self, reply: Said, thought: str | None, told: Sequence[Told]) -> tuple[list[Entry], list[Entry]]:
        own = "\n".join([_echo(each, thought) for each in told])
        heard = "\n\n".join([self.prose.told(each.how, each.call.tool, each.text) for each in told])
        seen = all(each.how == "seen" for each in told)
        return [Entry("assistant", own)], [Entry("user", heard, observation=seen)]

    def unreadable(self, reply: Said, error: str, id_: str) -> tuple[list[Entry], list[Entry]]:
        own = clip(reply.content, ECHO_MAX) or "(an empty reply)"
        return [Entry("assistant", own)], [Entry("user", self.prose.error(error))]


def _echo(told: Told, thought: str | None) -> str:
    """The model's own action as it is shown again: whole, unless it was refused and is long."""
    text = render(Action(told.call.tool, told.call.args, thought))
    return clip(text, ECHO_MAX) if told.how == "refused" else text


def _lines(messages: Sequence[Json], prose: Prose) -> Iterator[tuple[str, str]]:
    """Each message as (role, text). The answers to a call are the tool messages right behind it."""
    answered: set[int] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if index not in answered:
                yield "user", prose.observation(message.get("name") or "a tool", message["content"])
        elif message.get("tool_calls"):
            answers = answers_to(messages, index)
            answered.update(answers[call["id"]] for call in message["tool_calls"] if call.get("id") in answers)
            yield from _calls(message, {id_: messages[place] for id_, place in answers.items()}, prose)
        elif message["role"] == "assistant":
            yield "assistant", render(Final(message["content"]))
        else:
            yield message["role"], message["content"]


def answers_to(messages: Sequence[Json], index: int) -> dict[Any, int]:
    """Where the answers to the calls of message `index` stand, by the call's id."""
    behind = takewhile(lambda place: messages[place]["role"] == "tool", range(index + 1, len(messages)))
    return {messages[place].get("tool_call_id"): place for place in reversed(list(behind))}


def _calls(message: Json, answers: dict[Any, Json], prose: Prose) -> Iterator[tuple[str, str]]:
    """Each call as an action of its own, with its answer right behind it."""
    thought = message["content"] or None
    for call in message["tool_calls"]:
        tool = call["function"]["name"]
        args = orjson.loads(call["function"].get("arguments") or "{}")
        yield "assistant", render(Action(tool, args, thought))
        answer = answers.get(call.get("id"))
        yield "user", prose.observation(tool, answer["content"] if answer else UNANSWERED)


UNANSWERED = "no answer was recorded"
