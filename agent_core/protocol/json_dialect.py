"""The JSON dialect: how neutral messages reach a model that can only read and write text. Pure.

The model's own actions and answers are sent as the protocol's JSON. Observations and errors are prose in the user's
turn, never JSON that looks like a reply: a small model echoes what looks like one.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import orjson

from agent_core.effects import ModelReply
from agent_core.outputs import Json
from agent_core.protocol.clip import clip
from agent_core.protocol.dialect import MAX_ECHO, Entry, Exchange, Observation, Reading
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.parse import Action, Final, Mode, Plan, ProtocolError, render
from agent_core.protocol.reading import read_step
from agent_core.rules import CURRENT
from agent_core.words.catalogue import Words

Line = tuple[str, str, bool]
"""A message as (role, text, whether it is a tool's answer)."""


@dataclass(frozen=True, slots=True)
class JsonDialect:
    """Action and Final, in plain text. `names` are those of the offered tools, `rules` those for replies."""

    feedback: Feedback
    names: Collection[str] = ()
    rules: int = CURRENT["replies"]

    def open_conversation(self, messages: Sequence[Json]) -> list[Entry]:
        return merge_lines(lines_of(messages, self.feedback))

    def read_reply(self, reply: ModelReply, *, mode: Mode, any_answer: bool) -> Reading:
        words = self.feedback.words
        step = read_step(reply, mode=mode, any_answer=any_answer, words=words, rules=self.rules, names=self.names)
        match step:
            case Action():
                return [step]
            case Plan():
                return ProtocolError("unknown_type", words.no_plan)
            case _:
                return step

    def write_results(self, reply: ModelReply, thought: str | None, observations: Sequence[Observation]) -> Exchange:
        own = "\n".join([_echo(each, thought, self.feedback.words) for each in observations])
        parts = [self.feedback.result(each.status, each.call.tool, each.whole) for each in observations]
        all_seen = all(each.status == "seen" for each in observations)
        return Exchange([Entry("assistant", own)], [Entry("user", "\n\n".join(parts), observation=all_seen)])

    def count_results(self, calls: int, *, has_notice: bool) -> int:
        return 2

    def write_protocol_error(self, reply: ModelReply, error: str, call_id: str) -> Exchange:
        own = self.feedback.echo(reply.content, MAX_ECHO)
        return Exchange([Entry("assistant", own)], [Entry("user", self.feedback.error(error))])


def _echo(observation: Observation, thought: str | None, words: Words) -> str:
    """Return the model's own action as it sees it again: whole, unless it was refused and is long."""
    text = render(Action(observation.call.tool, observation.call.args, thought))
    return clip(text, MAX_ECHO, words) if observation.status == "refused" else text


def merge_lines(lines: Iterable[Line]) -> list[Entry]:
    """Return the entries of a conversation: adjacent messages of one role become one."""
    sent: list[Entry] = []
    for role, content, is_answer in lines:
        if sent and sent[-1].role == role:
            sent[-1] = Entry(role, f"{sent[-1].content}\n\n{content}")
        else:
            sent.append(Entry(role, content, observation=is_answer))
    return sent


def lines_of(messages: Sequence[Json], feedback: Feedback) -> Iterator[Line]:
    """Yield each message as a line. The answer to a call comes right after it."""
    answered: set[int] = set()
    request = ""
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if index not in answered:
                tool = message.get("name") or feedback.words.a_tool
                yield "user", feedback.observation(tool, message["content"], request), True
        elif message.get("tool_calls"):
            positions = find_answers(messages, index)
            answered.update(position for position in positions if position is not None)
            answers = [None if position is None else messages[position] for position in positions]
            yield from _call_lines(message, answers, feedback, request)
        elif message["role"] == "assistant":
            yield "assistant", render(Final(message["content"])), False
        else:
            request = message["content"] if message["role"] == "user" else request
            yield message["role"], message["content"], False


def find_answers(messages: Sequence[Json], index: int) -> list[int | None]:
    """Return the index of the answer to each call of message `index`; calls with one id get their answers in order."""
    following = list(takewhile(lambda i: messages[i]["role"] == "tool", range(index + 1, len(messages))))
    found: list[int | None] = []
    for call in messages[index]["tool_calls"]:
        answer = next((i for i in following if messages[i].get("tool_call_id") == call.get("id")), None)
        if answer is not None:
            following.remove(answer)
        found.append(answer)
    return found


def _call_lines(message: Json, answers: Sequence[Json | None], feedback: Feedback, request: str) -> Iterator[Line]:
    """Yield each call as an action of its own, with its answer right after it."""
    thought = message["content"] or None
    for call, answer in zip(message["tool_calls"], answers, strict=True):
        tool = call["function"]["name"]
        args = orjson.loads(call["function"].get("arguments") or "{}")
        yield "assistant", render(Action(tool, args, thought)), False
        text = answer["content"] if answer else feedback.words.unanswered
        yield "user", feedback.observation(tool, text, request), True
