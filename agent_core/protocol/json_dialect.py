"""The JSON dialect: how neutral messages reach a model that can only read and write text. Pure.

Its own actions and answers stand there as the protocol's JSON; observations and errors are prose in the user's
turn, never JSON that looks like a reply, since a small model echoes what looks like one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import orjson

from agent_core.effects import Json, ModelReply
from agent_core.protocol.clip import clip
from agent_core.protocol.dialect import ECHO_MAX, Entry, Observation, Reading
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.parse import Action, Final, Mode, Plan, ProtocolError, parse, render


@dataclass(frozen=True, slots=True)
class JsonDialect:
    """Action and Final, in plain text."""

    prose: Feedback

    def opening(self, messages: Sequence[Json]) -> list[Entry]:
        """Neighbours of one role become one message."""
        sent: list[Entry] = []
        for role, content, is_answer in _lines(messages, self.prose):
            if sent and sent[-1].role == role:
                sent[-1] = Entry(role, f"{sent[-1].content}\n\n{content}")
            else:
                sent.append(Entry(role, content, observation=is_answer))
        return sent

    def read(self, reply: ModelReply, *, mode: Mode, any_answer: bool) -> Reading:
        step = parse(reply.content, mode=mode, finish_reason=reply.finish_reason, any_answer=any_answer)
        if isinstance(step, Plan):
            return ProtocolError("unknown_type", 'A plan is not asked for here; "type" must be "action" or "final".')
        return [step] if isinstance(step, Action) else step

    def acted(
        self, reply: ModelReply, thought: str | None, told: Sequence[Observation]
    ) -> tuple[list[Entry], list[Entry]]:
        own = "\n".join([_echo(each, thought) for each in told])
        heard = "\n\n".join([self.prose.told(each.how, each.call.tool, each.text) for each in told])
        seen = all(each.how == "seen" for each in told)
        return [Entry("assistant", own)], [Entry("user", heard, observation=seen)]

    def unreadable(self, reply: ModelReply, error: str, id_: str) -> tuple[list[Entry], list[Entry]]:
        own = clip(reply.content, ECHO_MAX) or "(an empty reply)"
        return [Entry("assistant", own)], [Entry("user", self.prose.error(error))]


def _echo(told: Observation, thought: str | None) -> str:
    """The model's own action as it is shown again: whole, unless it was refused and is long."""
    text = render(Action(told.call.tool, told.call.args, thought))
    return clip(text, ECHO_MAX) if told.how == "refused" else text


def _lines(messages: Sequence[Json], prose: Feedback) -> Iterator[tuple[str, str, bool]]:
    """Each message as (role, text, whether it is a tool's answer). The answers to a call are right behind it."""
    answered: set[int] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if index not in answered:
                yield "user", prose.observation(message.get("name") or "a tool", message["content"]), True
        elif message.get("tool_calls"):
            places = answers_to(messages, index)
            answered.update(place for place in places if place is not None)
            yield from _calls(message, [None if place is None else messages[place] for place in places], prose)
        elif message["role"] == "assistant":
            yield "assistant", render(Final(message["content"])), False
        else:
            yield message["role"], message["content"], False


def answers_to(messages: Sequence[Json], index: int) -> list[int | None]:
    """Where the answer to each call of message `index` stands; calls with one id have theirs in order."""
    behind = list(takewhile(lambda place: messages[place]["role"] == "tool", range(index + 1, len(messages))))
    found: list[int | None] = []
    for call in messages[index]["tool_calls"]:
        place = next((place for place in behind if messages[place].get("tool_call_id") == call.get("id")), None)
        if place is not None:
            behind.remove(place)
        found.append(place)
    return found


def _calls(message: Json, answers: Sequence[Json | None], prose: Feedback) -> Iterator[tuple[str, str, bool]]:
    """Each call as an action of its own, with its answer right behind it."""
    thought = message["content"] or None
    for call, answer in zip(message["tool_calls"], answers, strict=True):
        tool = call["function"]["name"]
        args = orjson.loads(call["function"].get("arguments") or "{}")
        yield "assistant", render(Action(tool, args, thought)), False
        yield "user", prose.observation(tool, answer["content"] if answer else UNANSWERED), True


UNANSWERED = "no answer was recorded"
