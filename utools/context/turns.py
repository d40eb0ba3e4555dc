"""Turns: the messages from one `user` message until the next, stored whole and in order, or not at all. Pure.

A user's message that was added to a run under way continues its turn.

Messages are neutral: `role`, `content`, and where they apply `name`, `tool_calls` (OpenAI's shape), `tool_call_id`,
and `trace_id`: the run that the message came from, which no model reads.
"""

import json
from collections.abc import Sequence
from typing import Any

from utools.errors import ToolError
from utools.schema.json_value import NotJson, as_json

Message = dict[str, Any]
Turn = list[Message]

ENCRYPTED = "encrypted"
"""The one key of what an encrypted turn holds in place of its messages."""
INSTRUCTING = frozenset({"system", "developer"})
TEXT_PARTS = ("text", "input_text", "output_text")
KEYS = {
    "user": ("role", "content", "name", "trace_id"),
    "assistant": ("role", "content", "name", "tool_calls", "trace_id"),
    "tool": ("role", "content", "name", "tool_call_id", "trace_id"),
}


def is_encrypted(turn: Turn) -> bool:
    """Return whether a stored turn was read without the key that it is encrypted by."""
    return len(turn) == 1 and turn[0].keys() == {ENCRYPTED}


def messages_of(value: Any) -> list[Message]:
    """Return a JSON array of messages, or its text, as a list; ToolError if it is neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ToolError("messages_json is a text that is not JSON: {error}", error=error) from None
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ToolError("messages_json must be an array of messages {role, content, …}")
    return value


def continues_turn(messages: Sequence[Message]) -> bool:
    """Return whether the last `user` message may have been added to a turn: it stands behind no words of a model."""
    users = _users(messages)
    return len(users) > 1 and not _is_answer(messages[users[-1] - 1])


def last_turn(messages: Sequence[Message], stored: Sequence[Turn] = ()) -> Turn:
    """Return the messages of the last turn, checked: from the last `user` message on, or from an earlier one where the
    last `continues_turn`, and no `stored` turn ends before it.

    Leading system messages belong to the prompt and are left out. A system message further down, or a call without
    its answer, is a ToolError.
    """
    start = next((at for at, each in enumerate(messages) if not _is_instructing(each)), len(messages))
    for at, each in enumerate(messages[start:], start):
        _check_role(each, at)
    users = _users(messages)
    if not users:
        raise ToolError("messages_json has no user message, so there is no turn to store")
    first = _find_start(messages, users, stored)
    turn = [_neutral(each, at) for at, each in enumerate(messages[first:], first)]
    check_calls(turn, first)
    try:
        as_json(turn)
    except NotJson as error:  # it could be stored, but not read back
        raise ToolError("the turn cannot be stored: {error}", error=error) from None
    return turn


def _users(messages: Sequence[Message]) -> list[int]:
    return [at for at, each in enumerate(messages) if each.get("role") == "user"]


def _is_answer(message: Message) -> bool:
    """Return whether a message before a user's ends its turn: as an answer, or with calls that nobody answered."""
    return message.get("role") == "assistant"


def _find_start(messages: Sequence[Message], users: list[int], stored: Sequence[Turn]) -> int:
    """Return where the last turn begins: at the first `user` message behind the last answer, and behind what is of
    stored turns that ended without one."""
    starts = [users.pop()]
    while users and not _is_answer(messages[starts[0] - 1]):
        starts.insert(0, users.pop())
    said, earlier = [*map(_said, messages)], [[*map(_said, turn)] for turn in stored]
    start = starts.pop(0)
    while starts:
        ended = [(end, turn) for end in starts for turn in earlier if turn[start - end :] == said[start:end]]
        if not ended:
            break
        start, turn = ended[-1]
        earlier.remove(turn)
        starts = [each for each in starts if each > start]
    return start


def _said(message: Message) -> tuple[Any, ...]:
    """Return a message without the ids of calls, which may have been renamed."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return message.get("role"), _join_parts(message.get("content")) or "", functions


def check_history(messages: Sequence[Message]) -> None:
    """ToolError for stored history with system messages: only the prompt may instruct."""
    for at, each in enumerate(messages):
        _check_role(each, at)


def rename_repeated_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a different id for each call, in its answer too: some vendors number each reply's calls
    anew.

    An id depends on the messages before it alone, so that a call keeps its id in a conversation that grows.
    """
    taken, ids, renamed = dict[str, int](), dict[str, str](), list[Message]()
    for each in messages:
        if each["role"] == "tool":
            answered = each["tool_call_id"]
            renamed.append({**each, "tool_call_id": ids.get(answered, answered)})
        elif calls := each.get("tool_calls"):
            ids |= {call["id"]: _take_id(call["id"], taken) for call in calls}
            renamed.append({**each, "tool_calls": [{**call, "id": ids[call["id"]]} for call in calls]})
        else:
            renamed.append(each)
    return renamed


def _take_id(call_id: str, taken: dict[str, int]) -> str:
    """Return the id, with the next number if it is taken. `taken` has the last number of each id."""
    free = call_id
    while free in taken:
        taken[call_id] += 1
        free = f"{call_id}_{taken[call_id]}"
    taken[free] = 1
    return free


def check_calls(turn: Turn, first: int = 0) -> None:
    """ToolError unless each tool call is answered before the next message, and each tool message answers a call."""
    waiting: list[str] = []
    for at, each in enumerate(turn, first):
        if each["role"] == "tool":
            if each.get("tool_call_id") not in waiting:
                raise ToolError(
                    "message {at} answers a tool call that was not made: {call!r}", at=at, call=each.get("tool_call_id")
                )
            waiting.remove(each["tool_call_id"])
            continue
        if waiting:
            raise ToolError("the tool call {call!r} has no answer before message {at}", call=waiting[0], at=at)
        waiting = [call["id"] for call in each.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting):
            raise ToolError("message {at} has two tool calls with the same id", at=at)
    if waiting:
        raise ToolError("the tool call {call!r} has no answer", call=waiting[0])


def _is_instructing(message: Message) -> bool:
    role = message.get("role")
    return isinstance(role, str) and role in INSTRUCTING


def _check_role(message: Message, at: int) -> None:
    role = message.get("role")
    if _is_instructing(message):
        raise ToolError(
            "message {at} has the role {role!r}, which may stand only at the start, in the prompt", at=at, role=role
        )
    if not isinstance(role, str) or role not in KEYS:
        raise ToolError(
            "message {at} has the role {role!r}; allowed are: {roles}", at=at, role=role, roles=", ".join(KEYS)
        )


def _neutral(message: Message, at: int) -> Message:
    """Return the message with the keys of its role; ToolError unless its content is a text and its calls are
    well-formed."""
    neutral = {key: message[key] for key in KEYS[message["role"]] if message.get(key) is not None}
    calls = neutral.get("tool_calls", [])
    if not isinstance(calls, list) or not all(map(_is_call, calls)):
        raise ToolError("message {at} has tool_calls that are not [{{id, function: {{name, arguments}}}}, …]", at=at)
    content = neutral["content"] = _join_parts(neutral.get("content"))
    if not isinstance(neutral.get("trace_id", ""), str):
        raise ToolError("message {at} has a trace_id that is not a text", at=at)
    if not isinstance(content, str) and not (content is None and calls):
        raise ToolError("message {at} has a content that is not a text", at=at)
    return neutral


def _join_parts(content: Any) -> Any:
    """Return the texts of a content in parts, as the SDKs write it; any other content as it is."""
    texts = [_read_part(each) for each in content] if isinstance(content, list) else []
    return "\n".join(each for each in texts if each is not None) if texts and None not in texts else content


def _read_part(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, dict) and part.get("type") in TEXT_PARTS else part
    return text if isinstance(text, str) else None


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(call.get("id"), str)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )
