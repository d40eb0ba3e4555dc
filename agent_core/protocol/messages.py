"""Neutral messages: how a conversation is read in, and how it is trimmed. Pure."""

from collections.abc import Sequence
from typing import Any

import orjson

from agent_core.effects import Json
from agent_core.errors import DefinitionError

ROLES = ("system", "user", "assistant", "tool")
KEYS = {"role", "content", "name", "tool_calls", "tool_call_id", "quotes", "trace_id"}
"""`quotes` are the messages that a summary stands for: values keep their origin there. `trace_id` is the run that the
message came from. No model reads either."""
UNREAD = frozenset({"quotes", "trace_id"})


def read_messages(value: Any, *, where: str = "messages_json") -> list[Json]:
    """The messages of a JSON array, or of its text: {role, content, name?, tool_calls?, tool_call_id?} each.

    A list in their place stands for the messages in it. DefinitionError names the message at fault. Only a leading
    message, of such a list too, may be a system message.
    """
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise DefinitionError(f"not a JSON array: {error}", where=where, value=value) from None
    if not isinstance(value, list):
        raise DefinitionError("must be a JSON array of messages", where=where, value=value)
    return [message for index, each in enumerate(value) for message in _messages(each, index, f"{where}/{index}")]


def _messages(value: Any, index: int, where: str) -> list[Json]:
    """One message, or those of a list in its place."""
    if not isinstance(value, list):
        return [_message(value, index, where)]
    return [_message(message, inner, f"{where}/{inner}") for inner, message in enumerate(value)]


def _message(message: Any, index: int, where: str) -> Json:
    if not isinstance(message, dict):
        raise DefinitionError("must be an object {role, content}", where=where, value=message)
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise DefinitionError(f"must be one of {', '.join(ROLES)}", where=f"{where}/role", value=role)
    if unknown := sorted(set(message) - KEYS):
        raise DefinitionError(f"unknown key; a message has {', '.join(sorted(KEYS))}", where=f"{where}/{unknown[0]}")
    if role == "system" and index > 0:
        raise DefinitionError("a system message may only come first", where=where)
    if not isinstance(content, str) and not (content is None and role == "assistant" and message.get("tool_calls")):
        raise DefinitionError("must be a text", where=f"{where}/content", value=content)
    if not isinstance(message.get("tool_calls") or [], list):
        raise DefinitionError("must be a list of calls", where=f"{where}/tool_calls", value=message["tool_calls"])
    for i, call in enumerate(message.get("tool_calls") or ()):
        _tool_call(call, f"{where}/tool_calls/{i}")
    if not isinstance(message.get("trace_id", ""), str):
        raise DefinitionError("must be a text", where=f"{where}/trace_id", value=message["trace_id"])
    if "quotes" in message:
        _check_quotes(message, where)
    return message


def _check_quotes(message: Json, where: str) -> None:
    quotes = message["quotes"]
    if message["role"] != "assistant" or not isinstance(quotes, list):
        raise DefinitionError("must be a list of messages, of an assistant", where=f"{where}/quotes", value=quotes)
    for i, quoted in enumerate(quotes):
        if not isinstance(quoted, dict) or quoted.get("role") not in ("user", "tool") or "quotes" in quoted:
            raise DefinitionError("must be a user's or a tool's message", where=f"{where}/quotes/{i}", value=quoted)
        _message(quoted, i + 1, f"{where}/quotes/{i}")


def as_read(messages: Sequence[Json]) -> list[Json]:
    """The messages as a model may read them."""
    return [
        {key: value for key, value in message.items() if key not in UNREAD} if UNREAD & message.keys() else message
        for message in messages
    ]


def _tool_call(call: Any, where: str) -> None:
    function = call.get("function") if isinstance(call, dict) else None
    named = isinstance(function, dict) and isinstance(function.get("name"), str) and isinstance(call.get("id"), str)
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


def last_turns(messages: list[Json], limit: int | None) -> list[Json]:
    """The newest whole turns that hold at most `limit` messages, and the last one in any case.

    A turn starts with a user message.
    """
    if not limit or len(messages) <= limit:
        return messages
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    fitting = [start for start in starts if start >= len(messages) - limit]
    return messages[(fitting or starts[-1:] or [0])[0] :]


def action_message(calls: list[tuple[str, str, Json]], thought: str | None) -> Json:
    """An assistant message that calls tools, (id, tool, args) each, OpenAI-shaped."""
    tool_calls = [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": orjson.dumps(args).decode()}}
        for id_, tool, args in calls
    ]
    return {"role": "assistant", "content": thought or "", "tool_calls": tool_calls}


def tool_message(call_id: str, tool: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "name": tool, "content": content}
