"""The messages of a question in the form that an endpoint takes, once it has refused another. Pure.

Chat completions are OpenAI's, and every server has its own idea of what a conversation may look like: it is the chat
template of its model that knows no system message, or a check of its gateway that wants ids of nine characters. Such a
refusal names what it does not take. The question is asked again in another form, which says the same.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import orjson

from agent_core.models.endpoint.answer import Refusal
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

SAID_NOTHING = "…"
"""What a side says that has to say something where it has said nothing."""
THOUGHTS = ("reasoning_content", "reasoning_details", "extra_content")
"""Fields of an assistant's message that only its own vendor understands."""
CALL_FIELDS = ("id", "type", "function")
CALLS = "calls"
"""The word for calls where no tools are offered."""
ID_LENGTH = 9
NO_FORM_HELPS = (401, 402, 403, 429)
_SHORT_ID = lazy_compile(rf"[A-Za-z0-9]{{{ID_LENGTH}}}")


def with_short_ids(messages: list[Json]) -> list[Json]:
    """Return the messages with ids of calls of nine letters and digits, as Mistral wants them."""
    return [_shorten_ids(message) for message in messages]


def _shorten_ids(message: Json) -> Json:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _shorten(message["tool_call_id"])}
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "id": _shorten(call["id"])} for call in calls]}
    return message


def _shorten(id_: str) -> str:
    return id_ if _SHORT_ID.fullmatch(id_) else sha256(id_.encode("utf-8", "replace")).hexdigest()[:ID_LENGTH]


def without_system(messages: list[Json]) -> list[Json]:
    """Return the messages with the system's texts at the beginning of the user's first one."""
    texts = [_read_text(message) for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if not texts:
        return messages
    if not others or others[0]["role"] != "user":
        others.insert(0, {"role": "user", "content": ""})
    first = others[0]
    return [{**first, "content": "\n\n".join(filter(None, [*texts, _read_text(first)]))}, *others[1:]]


def in_turns(messages: list[Json]) -> list[Json]:
    """Return the messages in turns of the user and the assistant, from the user to the user: neighbours of one side are
    joined, and where one of the two is missing it says `…`. Calls and their results stay where they are."""
    written: list[Json] = []
    for message in messages:
        before = written[-1] if written else None
        role, last = message["role"], before["role"] if before else "system"
        if role == "assistant" and last == "system":
            written.append({"role": "user", "content": SAID_NOTHING})
        elif role == "user" and last == "tool":
            written.append({"role": "assistant", "content": SAID_NOTHING})
        elif before is not None and role == last and role != "tool" and not before.get("tool_calls"):
            text = "\n\n".join(filter(None, [_read_text(before), _read_text(message)]))
            written[-1] = {**before, **message, "content": text}
            continue
        written.append(message)
    if written and written[-1]["role"] == "assistant":
        written.append({"role": "user", "content": SAID_NOTHING})
    return written


def without_thoughts(messages: list[Json]) -> list[Json]:
    """Return the messages with the fields alone that chat completions have."""
    return [
        {
            name: [{key: call[key] for key in CALL_FIELDS} for call in value] if name == "tool_calls" else value
            for name, value in message.items()
            if name not in THOUGHTS
        }
        for message in messages
    ]


def with_thoughts(messages: list[Json]) -> list[Json]:
    """Return the messages with a thought in each of the assistant's that has none, as of another vendor's model."""
    return [
        {**message, "reasoning_content": SAID_NOTHING}
        if message["role"] == "assistant" and not message.get("reasoning_content")
        else message
        for message in messages
    ]


def with_calls_as_texts(messages: list[Json]) -> list[Json]:
    """Return the messages with calls and results as texts, for an endpoint that wants tools to be offered beside
    them."""
    return [_write_call_as_text(message) for message in messages]


def _write_call_as_text(message: Json) -> Json:
    if message["role"] == "tool":
        return {"role": "user", "content": message["content"]}
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    if not functions:
        return message
    calls = [f"{function['name']}({function['arguments']})" for function in functions]
    return {"role": "assistant", "content": "\n".join(filter(None, [_read_text(message), *calls]))}


def with_contents(messages: list[Json]) -> list[Json]:
    """Return the messages with a text in each, where one with calls has null."""
    return [{**message, "content": ""} if message["content"] is None else message for message in messages]


def without_blanks(messages: list[Json]) -> list[Json]:
    """Return the messages with a text in each that is not blank; null stays."""
    blank = [isinstance(text := message["content"], str) and not text.strip() for message in messages]
    return [
        {**message, "content": SAID_NOTHING} if is_blank else message
        for message, is_blank in zip(messages, blank, strict=True)
    ]


def _read_text(message: Json) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


class Form(NamedTuple):
    """A form of the messages, and what a refusal of any other says."""

    refused: "re.Pattern[str]"
    write: Callable[[list[Json]], list[Json]]


FORMS: Final[Mapping[str, Form]] = {
    "thoughts of others": Form(
        lazy_compile(
            r"(?:reasoning_content|reasoning_details|extra_content)\b.{0,200}?"
            r"(?:unsupported|not (?:be )?(?:supported|permitted|allowed)|extra|unexpected|unknown|unrecognized)"
            r"|(?:unsupported|unexpected|unknown|unrecognized|extra).{0,60}(?:reasoning_content|reasoning_details)"
            r"|extra_forbidden.{0,200}(?:reasoning_content|reasoning_details|extra_content)",
            re.I | re.S,
        ),
        without_thoughts,
    ),
    "no thoughts": Form(
        lazy_compile(r"reasoning_content\b.{0,80}(?:must be passed|is missing|is required)", re.I | re.S), with_thoughts
    ),
    "system": Form(
        lazy_compile(
            r"(?:system|developer)\W{0,3} (?:role|message|prompt|instruction)s?\W{0,3} (?:is |are )?not "
            r"(?:be )?(?:supported|allowed|enabled)"
            r"|(?:does|do)(?:n't| not) support (?:the )?\W{0,3}(?:system|developer)\W{0,3} "
            r"(?:role|message|prompt|instruction)"
            r"|\brole\b.{0,40}does not support \W{0,3}(?:system|developer)"
            r"|unsupported role\W{1,4}(?:system|developer)",
            re.I,
        ),
        without_system,
    ),
    CALLS: Form(
        lazy_compile(r"without `?tools=?`? param|toolconfig field must be defined|must (?:define|include) tools", re.I),
        with_calls_as_texts,
    ),
    "turns": Form(
        lazy_compile(
            r"roles? (?:must|should) (?:be )?alternat|should be alternating"
            r"|role \W{0,4}user\W{1,6}after role \W{0,4}tool|system message must be (?:at the beginning|the first)"
            r"|expected last role user|must end with a user|last message must (?:be|have)\b.{0,20}\buser",
            re.I,
        ),
        in_turns,
    ),
    "ids": Form(lazy_compile(r"tool[ _]call[ _]ids?\b.{0,160}\blength (?:of )?9\b", re.I | re.S), with_short_ids),
    "null": Form(
        lazy_compile(
            r"\bcontent\b.{0,120}(?:\bnull\b|\bnone\b|must be a string|valid string|expected (?:a )?string)",
            re.I | re.S,
        ),
        with_contents,
    ),
    "blank": Form(
        lazy_compile(
            r"(?:must not|should not|may not|can ?not) be empty|non-(?:empty|whitespace)|empty text parameter"
            r"|(?:content|text|message)\b.{0,40}\bis empty|at least one content element",
            re.I,
        ),
        without_blanks,
    ),
}
"""By the word in `left_out` for what an endpoint refuses."""


def find_refused_form(messages: Sequence[bytes], left_out: Collection[str], refusal: Refusal) -> str | None:
    """Return the word for what of the messages a refusal does not take; None where no other form of them helps."""
    if refusal.status in NO_FORM_HELPS:
        return None
    words = [word for word, form in FORMS.items() if word not in left_out and form.refused.search(refusal.message)]
    if not words:
        return None
    sent = [orjson.loads(message) for message in messages]
    written = _write(sent, left_out)
    return next((word for word in words if _write(sent, {*left_out, word}) != written), None)


def write_messages(messages: Sequence[bytes], left_out: Collection[str]) -> Sequence[bytes]:
    """Return the messages in the form that is left once these have been refused; the same bytes where none was."""
    if FORMS.keys().isdisjoint(left_out):
        return messages
    return [orjson.dumps(message) for message in _write([orjson.loads(message) for message in messages], left_out)]


def _write(messages: list[Json], left_out: Collection[str]) -> list[Json]:
    for word, form in FORMS.items():
        if word in left_out:
            messages = form.write(messages)
    return messages
