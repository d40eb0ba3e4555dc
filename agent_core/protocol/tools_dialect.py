"""The tools dialect: native function calling, parallel calls included. Pure.

Calls and their answers travel in the vendors' own fields; an answer is the reply's text. Codes of tools become names
that every vendor takes, and a name leads back to its code.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import orjson

from agent_core.effects import Json, ModelReply
from agent_core.protocol.clip import clip, clip_args
from agent_core.protocol.dialect import ECHO_MAX, Entry, Observation, Reading
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.json_dialect import UNANSWERED, answers_to
from agent_core.protocol.parse import MAX_BYTES, Action, Final, Mode, ProtocolError, parse, read_value, unwrap

LONGEST_NAME = 64
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_CALLS = 128
"""Calls of one reply that are read."""
_TAG = re.compile(r"(<\|?(tool_call|function_call|function=|python_tag)|\[TOOL_CALLS\])")
_NAMED = re.compile(
    r"""\s*(```\w*\s*)?[\[{]+\s*"(name|function|tool)"\s*:\s*"(?P<name>[^"]+)"(?=.*"(arguments|parameters|args)")""",
    re.S,
)
"""How models write a call where their server does not make one of it: in tags, or as JSON that names a tool."""


def function_name(code: str) -> str:
    """The name of a tool on the wire, of letters, digits, `_` and `-`, at most 64: `.` is `__` there, `:` is `--`."""
    name = code.replace(".", "__").replace(":", "--")
    if NAME.fullmatch(name):
        return name
    told = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: LONGEST_NAME - 9]  # a model may call what is no code at all
    return f"{told}_{sha256(code.encode('utf-8', 'replace')).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class ToolsDialect:
    """Function calling. `codes` leads from the name on the wire to the tool's code."""

    prose: Feedback
    codes: Mapping[str, str]

    def opening(self, messages: Sequence[Json]) -> list[Entry]:
        return list(_entries(messages, self.prose))

    def read(self, reply: ModelReply, *, mode: Mode, any_answer: bool) -> Reading:
        if len(orjson.dumps([reply.content, reply.calls])) > MAX_BYTES:
            told = f"At most {MAX_BYTES} bytes of a reply are read. Send a much shorter one."
            return ProtocolError("too_large", told)
        if reply.finish_reason == "length":
            told = "The reply was cut off because it reached the output limit. Send a shorter one."
            return ProtocolError("truncated", told)
        if len(reply.calls) > MOST_CALLS:
            told = f"The reply makes {len(reply.calls)} calls, and at most {MOST_CALLS} are read. Make fewer at once."
            return ProtocolError("too_large", told)
        if reply.calls:
            return self._actions(reply)
        if self._is_call(reply.content):
            told = (
                "A call was written as text, and nothing was run. Call tools by function calling, or answer in words."
            )
            return ProtocolError("unknown_type", told)
        return _answer(reply.content, mode, any_answer)

    def acted(
        self, reply: ModelReply, thought: str | None, told: Sequence[Observation]
    ) -> tuple[list[Entry], list[Entry]]:
        sent = [
            _call(each.call.id, each.call.tool, _shown(each), came)
            for each, came in zip(told, reply.calls, strict=False)
        ]
        return [_calling(thought, sent, reply.echo)], [self._heard(each) for each in told]

    def unreadable(self, reply: ModelReply, error: str, id_: str) -> tuple[list[Entry], list[Entry]]:
        if not reply.calls:
            own = clip(reply.content, ECHO_MAX) or "(an empty reply)"
            return [Entry("assistant", own)], [Entry("user", self.prose.error(error))]
        ids = [f"{id_}_{index}" for index in range(len(reply.calls))]
        sent = [
            _call(id_, self.codes.get(call["name"], call["name"]), "{}", call)
            for id_, call in zip(ids, reply.calls, strict=True)
        ]
        heard = [Entry("tool", self.prose.error(error), more={"tool_call_id": id_}) for id_ in ids]
        return [_calling(reply.content or None, sent, reply.echo)], heard

    def _is_call(self, text: str) -> bool:
        """Whether a text is a call rather than an answer: taken for one it would be a false success.

        A tag of a call anywhere makes it one; JSON only where it is the whole text, a think block and a fence aside.
        """
        bare = unwrap(text)[0]
        named = _NAMED.match(bare)
        known = named is not None and (named["name"] in self.codes or named["name"] in self.codes.values())
        return known or _TAG.search(text) is not None or isinstance(parse(bare), Action)

    def _actions(self, reply: ModelReply) -> Reading:
        actions = []
        for call in reply.calls:
            code = self.codes.get(call["name"], call["name"])
            args = _args(code, call["arguments"])
            if isinstance(args, ProtocolError):
                return args
            actions.append(Action(code, args, reply.content or None))
        return actions

    def _heard(self, told: Observation) -> Entry:
        text = told.text if told.how == "seen" else self.prose.told(told.how, told.call.tool, told.text)
        return Entry("tool", text, told.how == "seen", more={"tool_call_id": told.call.id})


def _args(tool: str, text: str) -> Json | ProtocolError:
    """The arguments of one call, as strictly read as a reply in the JSON dialect."""
    value = read_value(text) if text.strip() else {}
    if isinstance(value, ProtocolError):
        sent = f'you sent "{clip(text, 200)}"' if value.kind == "not_json" else "nothing was run"
        return replace(value, message=f"The arguments of {tool} could not be read, {sent}. {value.message}")
    if not isinstance(value, dict):
        told = f"The arguments of {tool} must be one JSON object, you sent {clip(text, 200)}."
        return ProtocolError("wrong_type", told)
    return value


def _answer(content: str, mode: Mode, any_answer: bool) -> Final | ProtocolError:
    """The answer that stands in the reply's text."""
    if not content.strip():
        return ProtocolError("empty", "The reply was empty. Call a tool, or answer in text.")
    text, stripped = unwrap(content) if mode == "tolerant" else (content, ())
    if not any_answer:
        return Final(text if "think" in stripped else content, stripped=("think",) if "think" in stripped else ())
    value = read_value(text)
    return value if isinstance(value, ProtocolError) else Final(value, stripped=stripped)


def _entries(messages: Sequence[Json], prose: Feedback) -> Iterator[Entry]:
    """The conversation before the run, in which every call is answered and every answer has its call."""
    answered: set[int] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if index not in answered:
                yield Entry("user", prose.observation(message.get("name") or "a tool", message["content"]))
        elif message.get("tool_calls"):
            calls = _past(message["tool_calls"], index)
            yield _calling(message["content"] or None, calls, None)
            for call, place in zip(calls, answers_to(messages, index), strict=True):
                answered.update(() if place is None else (place,))
                content = UNANSWERED if place is None else messages[place]["content"]
                yield Entry("tool", content, observation=True, more={"tool_call_id": call["id"]})
        else:
            yield Entry(message["role"], message["content"])


def _past(calls: Sequence[Json], index: int) -> list[Json]:
    """Calls of an earlier turn, each with an id of its own."""
    ids = [call["id"] for call in calls]
    own = ids if len({*ids, ""}) > len(ids) else [f"past_{index}_{place}" for place in range(len(ids))]
    told = [(call["function"]["name"], call["function"].get("arguments") or "{}") for call in calls]
    return [_call(id_, *each, {}) for id_, each in zip(own, told, strict=True)]


def _call(id_: str, tool: str, arguments: str, came: Mapping[str, Any]) -> Json:
    """One call as it goes on the wire; what else the vendor sent with it goes back."""
    more = {key: value for key, value in came.items() if key not in ("name", "arguments", "id", "type", "function")}
    return {"id": id_, "type": "function", "function": {"name": function_name(tool), "arguments": arguments}, **more}


def _calling(thought: str | None, calls: Sequence[Json], echo: Json | None) -> Entry:
    return Entry("assistant", thought or "", more={"content": thought, "tool_calls": list(calls), **(echo or {})})


def _shown(told: Observation) -> str:
    """The arguments as the model is shown them again: whole, unless they were refused and are long."""
    args = clip_args(told.call.args, ECHO_MAX) if told.how == "refused" else told.call.args
    return orjson.dumps(args).decode()


def names_of(codes: Iterable[str]) -> dict[str, str]:
    """From names on the wire to codes; of two codes with one name the later one stands."""
    return {function_name(code): code for code in codes}
