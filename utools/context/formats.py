"""Formats: neutral messages in the shapes of vendors' SDKs, `openai`, `gemini` and `anthropic`. Pure."""

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any

from utools.context.turns import INSTRUCTING, Message
from utools.lazy_pattern import lazy_compile
from utools.schema.json_value import as_json

UNNAMEABLE = lazy_compile(r"[^A-Za-z0-9_-]")
LONGEST = 64
ARGUMENTS_DEPTH = 8
"""How deep arguments are in a shape."""
EMPTY = "(empty)"  # vendors refuse an empty text


def openai(messages: Sequence[Message]) -> list[Message]:
    """Chat Completions: the neutral shape, with the type of each call, and names that OpenAI allows."""
    return [{**_openai_message(each), **_openai_calls(each)} for each in messages]


def anthropic(messages: Sequence[Message]) -> dict[str, Any]:
    """Messages API: `system` apart, content as blocks, user and assistant in turn, the user first."""
    dialogue = [each for each in messages if each["role"] not in INSTRUCTING]
    blocks = [("assistant" if each["role"] == "assistant" else "user", _anthropic_blocks(each)) for each in dialogue]
    shaped = [{"role": role, "content": content} for role, content in _alternating(blocks, {"type": "text"})]
    system = _system(messages)
    return {"system": system, "messages": shaped} if system else {"messages": shaped}


def gemini(messages: Sequence[Message]) -> dict[str, Any]:
    """generateContent: `system_instruction` apart, `contents` of parts, user and model in turn, the user first."""
    dialogue = [each for each in messages if each["role"] not in INSTRUCTING]
    names = {call["id"]: call["function"]["name"] for each in dialogue for call in each.get("tool_calls") or ()}
    parts = [("model" if each["role"] == "assistant" else "user", _gemini_parts(each, names)) for each in dialogue]
    contents = [{"role": role, "parts": many} for role, many in _alternating(parts, {})]
    system = _system(messages)
    return (
        {"system_instruction": {"parts": [{"text": system}]}, "contents": contents}
        if system
        else {"contents": contents}
    )


FORMATS: dict[str, Callable[[Sequence[Message]], Any]] = {"openai": openai, "gemini": gemini, "anthropic": anthropic}


def _openai_message(message: Message) -> Message:
    """Return the message, with a name only for roles that have one at OpenAI, in allowed characters."""
    rest = {key: value for key, value in message.items() if key != "name"}
    return {**rest, "name": _safe(message["name"])} if message.get("name") and message["role"] != "tool" else rest


def _openai_calls(message: Message) -> Message:
    calls = [
        {"id": call["id"], "type": "function", "function": {**call["function"], "name": _name(call)}}
        for call in message.get("tool_calls") or ()
    ]
    return {"tool_calls": calls} if calls else {}


def _anthropic_blocks(message: Message) -> list[dict[str, Any]]:
    text = message.get("content") or ""
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": _safe_id(message["tool_call_id"]), "content": text or EMPTY}
        return [result]
    texts = [{"type": "text", "text": text}] if text.strip() else []
    calls = [
        {"type": "tool_use", "id": _safe_id(call["id"]), "name": _name(call), "input": _arguments(call)}
        for call in message.get("tool_calls") or ()
    ]
    return texts + calls


def _gemini_parts(message: Message, names: dict[str, str]) -> list[dict[str, Any]]:
    text = message.get("content") or ""
    if message["role"] == "tool":
        name = _safe(names.get(message["tool_call_id"], "tool"))
        response = {"id": message["tool_call_id"], "name": name, "response": _object(text, "result")}
        return [{"function_response": response}]
    texts = [{"text": text}] if text.strip() else []
    calls = [
        {"function_call": {"id": call["id"], "name": _name(call), "args": _arguments(call)}}
        for call in message.get("tool_calls") or ()
    ]
    return texts + calls


def _alternating(
    dialogue: Iterable[tuple[str, list[dict[str, Any]]]], text: dict[str, Any]
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Neighbours of one role joined; before a conversation that does not start with the user comes an empty message."""
    joined: list[tuple[str, list[dict[str, Any]]]] = []
    for role, parts in dialogue:
        content = parts or [{**text, "text": EMPTY}]
        if not joined and role != "user":
            joined.append(("user", [{**text, "text": EMPTY}]))
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(content)
        else:
            joined.append((role, list(content)))
    return joined


def _system(messages: Sequence[Message]) -> str:
    return "\n\n".join(str(each["content"]) for each in messages if each["role"] in INSTRUCTING and each["content"])


def _name(call: dict[str, Any]) -> str:
    return _safe(call["function"]["name"])


def _safe(name: str) -> str:
    return UNNAMEABLE.sub("_", name)[:LONGEST] or "_"


def _safe_id(call_id: str) -> str:
    """Return an id as Anthropic takes it. An id that has to change stays unique, and changes the same way every
    time."""
    if call_id == _safe(call_id):
        return call_id
    return f"{_safe(call_id)[: LONGEST - 17]}_{sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    return _object(call["function"]["arguments"] or "{}", "arguments")


def _object(text: str, key: str) -> dict[str, Any]:
    """Return a JSON object from its text; any other text becomes the value of `key`."""
    try:
        value = as_json(json.loads(text), depth=ARGUMENTS_DEPTH)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {key: text}
