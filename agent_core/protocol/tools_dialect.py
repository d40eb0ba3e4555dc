"""The tools dialect: native function calling, parallel calls included. Pure.

Calls and their answers travel in the vendors' own fields; an answer is the reply's text. Tool codes become names that
every vendor accepts, and each name leads back to its code.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import orjson

from agent_core.effects import ModelReply
from agent_core.outputs import Json, JsonValue
from agent_core.protocol.alternatives import flatten_alternatives, name_items
from agent_core.protocol.argument_names import write_plain_names
from agent_core.protocol.clip import clip, clip_args
from agent_core.protocol.dialect import MAX_ECHO, Entry, Exchange, Observation, Reading
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.json_dialect import find_answers
from agent_core.protocol.parse import MAX_BYTES, Action, Final, Mode, ProtocolError, parse, read_value
from agent_core.protocol.reading import explain_odd_end, explain_refused_call, has_ended_oddly
from agent_core.protocol.text_calls import has_mark, is_call
from agent_core.protocol.wrappings import unwrap
from agent_core.rules import CURRENT
from agent_core.words.catalogue import Words, words_of_answers, words_of_arguments
from utools.lazy_pattern import lazy_compile

MAX_NAME = 64
NAME = lazy_compile(r"[A-Za-z0-9_-]{1,64}")
MAX_CALLS = 128
"""Calls of one reply that are read."""
MAX_SHOWN = 200
"""Characters of unreadable arguments that are quoted back."""
_TAG = lazy_compile(r"(<\|?(tool_call|function_call|function=|python_tag)|\[TOOL_CALLS\])")
_NAMED = lazy_compile(
    r"""\s*(```\w*\s*)?[\[{]+\s*"(name|function|tool)"\s*:\s*"(?P<name>[^"]+)"(?=.*"(arguments|parameters|args)")""",
    re.S,
)
"""By which the first rules for replies knew a call in a text."""


def function_name(code: str) -> str:
    """Return the name of a tool on the wire, of letters, digits, `_` and `-`, at most 64: `.` is `__` there, `:` is
    `--`."""
    name = code.replace(".", "__").replace(":", "--")
    if NAME.fullmatch(name):
        return name
    prefix = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: MAX_NAME - 9]  # a model may call what is no code at all
    return f"{prefix}_{sha256(code.encode('utf-8', 'replace')).hexdigest()[:8]}"


def write_function(code: str, tool: Mapping[str, Any], *, plain_names: bool = False) -> Json:
    """Return a tool of the policy as a function, in OpenAI's shape; with `plain_names` its arguments have those."""
    parameters: Json = {"type": "object", "properties": {}, **name_items(flatten_alternatives(tool["visible"]))}
    parameters = write_plain_names(parameters) if plain_names else parameters
    function = {"name": function_name(code), "description": tool["description"], "parameters": parameters}
    return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolsDialect:
    """Function calling. `codes` leads from the name on the wire to the tool's code; `rules` are those for replies,
    `texts` those for what is said of them; `arguments` has by code the tool's own names of arguments that are shown
    under others."""

    feedback: Feedback
    codes: Mapping[str, str]
    rules: int = CURRENT["replies"]
    texts: int = CURRENT["texts"]
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def open_conversation(self, messages: Sequence[Json]) -> list[Entry]:
        return list(_entries(messages, self.feedback))

    def read_reply(self, reply: ModelReply, *, mode: Mode, any_answer: bool) -> Reading:
        words = self.feedback.words
        if len(orjson.dumps([reply.content, reply.calls])) > MAX_BYTES:
            return ProtocolError("too_large", words.too_large_reply.format(most=MAX_BYTES))
        if reply.finish_reason == "length":
            return ProtocolError("truncated", words.cut_off)
        if self.rules > 1 and reply.finish_reason == "malformed_call":
            return explain_refused_call(reply, words)
        reading = self._read_whole(reply, mode, any_answer)
        if self.rules > 1 and has_ended_oddly(reply) and self._may_be_cut(reply, reading):
            return explain_odd_end(reply, words)
        return reading

    def _read_whole(self, reply: ModelReply, mode: Mode, any_answer: bool) -> Reading:
        words = self.feedback.words
        if len(reply.calls) > MAX_CALLS:
            message = words.too_many_calls.format(count=len(reply.calls), most=MAX_CALLS)
            return ProtocolError("too_large", message)
        if reply.calls:
            return self._read_calls(reply)
        if self._is_call(reply.content):
            return ProtocolError("unknown_type", words.call_as_text)
        of_answers = words_of_answers(words) if self.texts > 6 else words
        return _read_answer(reply.content, mode, any_answer, of_answers, self.rules)

    def write_results(self, reply: ModelReply, thought: str | None, observations: Sequence[Observation]) -> Exchange:
        calls = [
            _write_call(each.call.id, each.call.tool, _show_args(each, self.feedback.words), sent)
            for each, sent in zip(observations, reply.calls, strict=False)
        ]
        return Exchange([_calling(thought, calls, reply.echo)], [self._result_entry(each) for each in observations])

    def count_results(self, calls: int, *, has_notice: bool) -> int:
        return 1 + calls + has_notice

    def write_protocol_error(self, reply: ModelReply, error: str, call_id: str) -> Exchange:
        text = self.feedback.error(error)
        if not reply.calls:
            own = self.feedback.echo(reply.content, MAX_ECHO)
            return Exchange([Entry("assistant", own)], [Entry("user", text)])
        ids = [f"{call_id}_{index}" for index in range(len(reply.calls))]
        calls = [
            _write_call(id_, self.codes.get(call["name"], call["name"]), "{}", call)
            for id_, call in zip(ids, reply.calls, strict=True)
        ]
        entries = [Entry("tool", text, more={"tool_call_id": id_}) for id_ in ids]
        return Exchange([_calling(reply.content or None, calls, reply.echo)], entries)

    def _is_call(self, text: str) -> bool:
        """Return whether a text is a call rather than an answer: to accept it as one would be a false success."""
        bare = unwrap(text, rules=self.rules)[0]
        if isinstance(parse(bare), Action):
            return True
        if self.rules > 1:
            return is_call(text, self._names, self.rules)
        named = _NAMED.match(bare)
        known = named is not None and (named["name"] in self.codes or named["name"] in self.codes.values())
        return known or _TAG.search(text) is not None

    def _may_be_cut(self, reply: ModelReply, reading: Reading) -> bool:
        """Return whether a reply that ended for an unknown reason is not plainly whole."""
        return isinstance(reading, ProtocolError) or (
            not reply.calls and has_mark(reply.content, self._names, self.rules)
        )

    @property
    def _names(self) -> Collection[str]:
        return {*self.codes, *self.codes.values()}

    def _read_calls(self, reply: ModelReply) -> Reading:
        words = self.feedback.words
        of_arguments = words_of_arguments(words) if self.texts > 6 else words
        actions: list[Action] = []
        for call in reply.calls:
            code = self.codes.get(call["name"], call["name"])
            args = _read_args(code, call["arguments"], of_arguments)
            if isinstance(args, ProtocolError):
                return args
            if code in self.arguments:
                args = {self.arguments[code].get(name, name): each for name, each in args.items()}
            actions.append(Action(code, args, reply.content or None))
        return actions

    def _result_entry(self, observation: Observation) -> Entry:
        call, status, text = observation.call, observation.status, observation.whole
        shown = text if status == "seen" else self.feedback.result(status, call.tool, text)
        return Entry("tool", shown, status == "seen", more={"tool_call_id": call.id})


def _read_args(tool: str, text: str, words: Words) -> Json | ProtocolError:
    """Return the arguments of one call, as strictly read as a reply in the JSON dialect."""
    value: JsonValue | ProtocolError = read_value(text, words) if text.strip() else {}
    if isinstance(value, ProtocolError):
        shown = words.sent_text.format(text=clip(text, MAX_SHOWN, words))
        sent = shown if value.kind == "not_json" else words.nothing_run
        return replace(value, message=words.unreadable_arguments.format(tool=tool, sent=sent, why=value.message))
    if not isinstance(value, dict):
        message = words.arguments_no_object.format(tool=tool, text=clip(text, MAX_SHOWN, words))
        return ProtocolError("wrong_type", message)
    return value


def _read_answer(content: str, mode: Mode, any_answer: bool, words: Words, rules: int) -> Final | ProtocolError:
    """Return the answer in the reply's text."""
    if not content.strip():
        return ProtocolError("empty", words.no_answer)
    text, stripped = unwrap(content, rules=rules) if mode == "tolerant" else (content, ())
    if not any_answer:
        return Final(text if "think" in stripped else content, stripped=("think",) if "think" in stripped else ())
    value = read_value(text, words)
    return value if isinstance(value, ProtocolError) else Final(value, stripped=stripped)


def _entries(messages: Sequence[Json], feedback: Feedback) -> Iterator[Entry]:
    """Yield the conversation before the run: every call gets an answer, and every answer has its call."""
    answered: set[int] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if index not in answered:
                yield Entry(
                    "user", feedback.observation(message.get("name") or feedback.words.a_tool, message["content"])
                )
        elif message.get("tool_calls"):
            calls = _past_calls(message["tool_calls"], index)
            yield _calling(message["content"] or None, calls, None)
            for call, position in zip(calls, find_answers(messages, index), strict=True):
                answered.update(() if position is None else (position,))
                content = feedback.words.unanswered if position is None else messages[position]["content"]
                yield Entry("tool", content, observation=True, more={"tool_call_id": call["id"]})
        else:
            yield Entry(message["role"], message["content"])


def _past_calls(calls: Sequence[Json], index: int) -> list[Json]:
    """Calls of an earlier turn, each with an id of its own."""
    ids = [call["id"] for call in calls]
    unique = ids if len({*ids, ""}) > len(ids) else [f"past_{index}_{i}" for i in range(len(ids))]
    functions = [call["function"] for call in calls]
    return [
        _write_call(id_, function["name"], function.get("arguments") or "{}", {})
        for id_, function in zip(unique, functions, strict=True)
    ]


def _write_call(id_: str, tool: str, arguments: str, sent: Mapping[str, Any]) -> Json:
    """Return one call in the shape of the wire; the other fields that the vendor sent with it go back."""
    more = {key: value for key, value in sent.items() if key not in ("name", "arguments", "id", "type", "function")}
    return {"id": id_, "type": "function", "function": {"name": function_name(tool), "arguments": arguments}, **more}


def _calling(thought: str | None, calls: Sequence[Json], echo: Json | None) -> Entry:
    return Entry("assistant", thought or "", more={"content": thought, "tool_calls": list(calls), **(echo or {})})


def _show_args(observation: Observation, words: Words) -> str:
    """Return the arguments as the model sees them again: whole, unless they were refused and are long."""
    args = observation.call.args
    return orjson.dumps(clip_args(args, MAX_ECHO, words) if observation.status == "refused" else args).decode()


def codes_by_name(codes: Iterable[str]) -> dict[str, str]:
    """From names on the wire to codes; of two codes with one name the later one wins."""
    return {function_name(code): code for code in codes}
