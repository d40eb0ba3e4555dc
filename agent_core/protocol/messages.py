"""Neutral messages: how a conversation is read in, and how it is trimmed. Pure."""

from collections.abc import Sequence
from typing import Any

import orjson

from agent_core.errors import DefinitionError
from agent_core.outputs import Json, JsonValue, Placed
from utools.context.foreign import ForeignReader, continues, is_foreign
from utools.context.foreign_parts import ForeignMessage
from utools.schema.json_value import NotJson, as_json

ROLES = ("system", "user", "assistant", "tool")
OTHER_ROLES = {"developer": "system", "function": "tool"}
"""What OpenAI calls these roles as well, later and earlier."""
KEYS = {"role", "content", "name", "tool_calls", "tool_call_id", "quotes", "trace_id"}
"""`quotes` are the messages that a summary stands for: values keep their origin there. `trace_id` is the run that the
message came from. No model reads either."""
TEXT_KEYS = KEYS - {"tool_calls", "quotes"}
UNREAD = frozenset({"quotes", "trace_id"})
TEXT_PARTS = ("text", "input_text", "output_text")
THINKING_PARTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text")
"""Parts that no later question needs."""
THINKING_KEYS = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
"""Keys of a reply with what its model thought, at DeepSeek, OpenRouter, vLLM, Ollama and in LiteLLM."""
REPLY_KEYS = frozenset({*THINKING_KEYS, "annotations"})
"""Keys of a reply that no later question needs."""
OF_AN_ITEM = ("type", "id", "status", "phase")
"""What an item of the Responses API that is a message has beside it."""
EMPTY: tuple[Any, ...] = ("", [], {})


def read_messages(value: JsonValue, *, where: str = "messages_json") -> list[Json]:
    """Return the messages of a JSON array, or of its text: {role, content, name?, tool_calls?, tool_call_id?} each.

    A list in their place stands for the messages in it. What the SDKs write is taken as it is meant: a content in text
    parts, the role `developer`, keys that are null or empty, the older `function_call`, and the foreign messages of
    `utools.context.foreign`. DefinitionError names the message, or the part of it, that cannot be taken. System
    messages may only come first, in such a list too.
    """
    return [message for _, message in read_placed(value, where=where)]


def read_placed(value: JsonValue, *, where: str = "messages_json") -> list[Placed]:
    """Return what `read_messages` does, each message with the place of the one given that it was read from."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise DefinitionError(f"not a JSON array: {error}", where=where, value=value) from None
    if not isinstance(value, list):
        raise DefinitionError("must be a JSON array of messages", where=where, value=value)
    read, foreign = list[Placed](), ForeignReader()
    each: JsonValue
    for index, each in enumerate(value):
        if isinstance(each, list):
            inner = list[Placed]()
            for position, message in enumerate(each):
                _read_one(message, position, f"{where}/{index}/{position}", inner, foreign)
            read += inner
        else:
            _read_one(each, index, f"{where}/{index}", read, foreign)
    return read


def _read_one(given: JsonValue, index: int, where: str, read: list[Placed], foreign: ForeignReader) -> None:
    """Add to those that were read what a message is: one, or as many as a foreign one holds."""
    messages: Sequence[JsonValue] = [given]
    if isinstance(given, dict) and not _is_text(given) and is_foreign(given):
        place, before = read[-1] if read and continues(given, read[-1][1]) else ("", None)
        try:
            messages = foreign.read(given, before)
        except ForeignMessage as error:
            raise DefinitionError(str(error), where=where + error.place) from None
        if before:  # which was checked: a turn may have thousands of calls
            calls = messages[0]["tool_calls"]
            _tool_call(calls[-1], f"{where}/tool_calls/{len(calls) - 1}")
            read[-1] = place, messages[0]
            return
    for message in messages:
        is_first = all(earlier["role"] == "system" for _, earlier in read)
        read.append((where, _message(message, index, where, may_be_system=is_first)))


def is_empty(message: Json) -> bool:
    """Return whether a message says nothing: vendors refuse a question that has one."""
    return message["role"] in ("user", "assistant") and not message["content"] and not message.get("tool_calls")


def _message(given: JsonValue, index: int, where: str, *, may_be_system: bool) -> Json:
    if not isinstance(given, dict):
        raise DefinitionError("must be an object {role, content}", where=where, value=given)
    if _is_text(given):
        return given
    if isinstance(kind := given.get("type"), str) and "role" not in given:
        raise DefinitionError(
            f"an item of type {kind!r} cannot be taken: leave it out, or say what it brought as a text", where=where
        )
    message = _as_meant(given, index, where)
    role = message["role"]
    if role not in ROLES:
        raise DefinitionError(f"must be one of {', '.join(ROLES)}", where=f"{where}/role", value=role)
    if unknown := sorted(set(message) - KEYS):
        raise DefinitionError(f"unknown key; a message has {', '.join(sorted(KEYS))}", where=f"{where}/{unknown[0]}")
    if role == "system" and not may_be_system:
        raise DefinitionError("a system message may only come first; say it there, or as developer_prompt", where=where)
    calls = message.get("tool_calls")
    if not isinstance(message["content"], str) and not (message["content"] is None and role == "assistant" and calls):
        raise DefinitionError("must be a text", where=f"{where}/content", value=message["content"])
    if not isinstance(calls or [], list):
        raise DefinitionError("must be a list of calls", where=f"{where}/tool_calls", value=calls)
    for i, call in enumerate(calls or ()):
        _tool_call(call, f"{where}/tool_calls/{i}")
    if not isinstance(message.get("trace_id", ""), str):
        raise DefinitionError("must be a text", where=f"{where}/trace_id", value=message["trace_id"])
    return {**message, "quotes": _read_quotes(message, where)} if "quotes" in message else message


def _is_text(message: Json) -> bool:
    """Return whether a message is a text in our own words, as most of a long history are."""
    return (
        "content" in message
        and message.get("role") in ("user", "assistant", "tool")
        and message.keys() <= TEXT_KEYS
        and {*map(type, message.values())} == {str}
    )


def _as_meant(given: Json, index: int, where: str) -> Json:
    """Return the message in our words: without what the SDKs leave empty, and with what older ones call otherwise."""
    message: Json = {
        "role": None,
        "content": None,
        **{key: each for key, each in given.items() if not _is_left_empty(key, each)},
    }
    role = message["role"] = OTHER_ROLES.get(str(message["role"]), message["role"])
    if message.get("type") == "message":
        message = {key: each for key, each in message.items() if key not in OF_AN_ITEM}
    content: JsonValue = message["content"]
    if isinstance(content, list):
        message["content"] = _join_parts(content, f"{where}/content")
    if role == "assistant":
        message = {key: each for key, each in message.items() if key not in REPLY_KEYS}
        if isinstance(message.get("refusal"), str):
            refusal = message.pop("refusal")
            message["content"] = message["content"] or refusal
        if isinstance(call := message.get("function_call"), dict):
            del message["function_call"]
            message.setdefault("tool_calls", [{"id": f"function_{index}", "type": "function", "function": call}])
    if given.get("role") == "function":
        message.setdefault("tool_call_id", f"function_{index - 1}")
    if message["content"] is None and (role == "tool" or (role == "assistant" and not message.get("tool_calls"))):
        message["content"] = ""
    return given if message == given else message


def _is_left_empty(key: str, value: Any) -> bool:
    """Return whether a key says nothing that is read. A call's id may be an empty text, and a content is one."""
    return (
        value is None
        or (key == "id" and isinstance(value, str))
        or ((key not in KEYS or key == "tool_calls") and (value is False or value in EMPTY))
    )


def _join_parts(parts: list[Any], where: str) -> str:
    """Return the text of a content in parts."""
    texts = [_read_part(part, f"{where}/{index}") for index, part in enumerate(parts)]
    return "\n".join(text for text in texts if text)


def _read_part(part: JsonValue, where: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in THINKING_PARTS:
        return ""
    text = part.get("refusal" if kind == "refusal" else "text") if isinstance(part, dict) else None
    if kind not in (*TEXT_PARTS, "refusal") or not isinstance(text, str):
        raise DefinitionError(
            f"a part of type {kind!r} cannot be taken: only texts, calls and results are read", where=where
        )
    return text


def _read_quotes(message: Json, where: str) -> list[Json]:
    """Return the messages that a summary stands for, each as it is meant."""
    quotes: JsonValue = message["quotes"]
    if message["role"] != "assistant" or not isinstance(quotes, list):
        raise DefinitionError("must be a list of messages, of an assistant", where=f"{where}/quotes", value=quotes)
    quoted: JsonValue
    for i, quoted in enumerate(quotes):
        if not isinstance(quoted, dict) or quoted.get("role") not in ("user", "tool") or "quotes" in quoted:
            raise DefinitionError("must be a user's or a tool's message", where=f"{where}/quotes/{i}", value=quoted)
    return [_message(quoted, i + 1, f"{where}/quotes/{i}", may_be_system=False) for i, quoted in enumerate(quotes)]


def as_read(messages: Sequence[Json]) -> list[Json]:
    """Return the messages as a model may read them."""
    return [
        {key: value for key, value in message.items() if key not in UNREAD} if UNREAD & message.keys() else message
        for message in messages
    ]


def _tool_call(call: JsonValue, where: str) -> None:
    called: Json = call if isinstance(call, dict) else {}
    function: JsonValue = called.get("function")
    named = isinstance(function, dict) and isinstance(function.get("name"), str) and isinstance(called.get("id"), str)
    if not isinstance(function, dict) or not named:
        raise DefinitionError("must be {id, type, function: {name, arguments}}", where=where, value=call)
    try:
        arguments = orjson.loads(function.get("arguments") or "{}")
    except (orjson.JSONDecodeError, TypeError):
        arguments = None
    if not isinstance(arguments, dict):
        raise DefinitionError(
            "must be the JSON text of an object",
            where=f"{where}/function/arguments",
            value=function.get("arguments"),
        )
    try:
        as_json(arguments)
    except NotJson as error:
        raise DefinitionError(f"cannot be taken: {error}", where=f"{where}/function/arguments") from None


def last_turns(messages: list[Json], limit: int | None) -> list[Json]:
    """Return the newest whole turns that hold at most `limit` messages, and the last one in any case.

    A turn starts with a user message.
    """
    if not limit or len(messages) <= limit:
        return messages
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    fitting = [start for start in starts if start >= len(messages) - limit]
    return messages[(fitting or starts[-1:] or [0])[0] :]


def action_message(calls: list[tuple[str, str, Json]], thought: str | None) -> Json:
    """Return an assistant message that calls tools, (id, tool, args) each, OpenAI-shaped."""
    tool_calls = [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": orjson.dumps(args).decode()}}
        for id_, tool, args in calls
    ]
    return {"role": "assistant", "content": thought or "", "tool_calls": tool_calls}


def tool_message(call_id: str, tool: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "name": tool, "content": content}
