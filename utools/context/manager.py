"""`context_manager`: prepares a conversation for a model, and stores its turns afterwards."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from utools.call_arguments import check_operation
from utools.context.foreign import take_apart
from utools.context.formats import FORMATS
from utools.context.store import ContextStore
from utools.context.summary import Summarise, as_message, fold_turns, quote
from utools.context.turns import (
    Message,
    Turn,
    check_history,
    continues_turn,
    last_turn,
    messages_of,
    rename_repeated_calls,
)
from utools.context.window import Window, split_at_window
from utools.errors import ToolError
from utools.json_text import to_text
from utools.lazy_pattern import lazy_compile
from utools.tool import Args, Tool, ToolContext, ToolResult

UNREAD = frozenset({"quotes", "trace_id"})
"""Keys of a message that no model reads."""
RETRIED = lazy_compile(r"~\d+")

# by op: the arguments that it needs, and those that it may have
ARGUMENTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "prepare": (frozenset({"user_message"}), frozenset({"system_prompt", "window", "formats", "language"})),
    "persist": (frozenset(), frozenset({"messages_json", "user_message", "final_answer", "turn_id", "ttl"})),
    "load": (frozenset(), frozenset({"window"})),
    "clear": (frozenset(), frozenset()),
}
ALWAYS_ALLOWED = frozenset({"op", "session_id"})

LIMIT = {"type": ["integer", "null"], "minimum": 1}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "op": {"enum": list(ARGUMENTS), "description": "prepare, persist, load or clear."},
        "session_id": {"type": "string", "minLength": 1, "maxLength": 256, "description": "Which conversation."},
        "user_message": {"type": "string", "description": "prepare, persist: what the user says."},
        "system_prompt": {"type": "string", "description": "prepare: the system message."},
        "window": {
            "description": "prepare, load: how much history, in messages, or {messages, tokens}; null is no limit.",
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "object", "properties": {"messages": LIMIT, "tokens": LIMIT}},
            ],
        },
        "formats": {
            "type": "array",
            "items": {"enum": sorted(FORMATS)},
            "uniqueItems": True,
            "description": "prepare, load: vendors' shapes to give beside ours.",
        },
        "language": {"enum": ["en", "zh"], "description": "prepare: of the summary; en if it is not given."},
        "messages_json": {
            "description": "persist: the conversation, an array of messages or its text; its last turn is stored.",
            "type": ["array", "string"],
        },
        "final_answer": {"description": "persist: the answer, where there are no messages_json."},
        "turn_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 512,
            "description": "persist: a turn that is stored already is not stored again.",
        },
        "ttl": {"type": "number", "exclusiveMinimum": 0, "description": "persist: seconds the session is kept."},
    },
    "required": ["op", "session_id"],
}
_MESSAGES = {"type": "array", "items": {"type": "object"}}
OUTPUT: dict[str, Any] = {
    "anyOf": [
        _MESSAGES,
        {
            "type": "object",
            "properties": {
                "session_id": {"type": "string"},
                "messages_json": _MESSAGES,
                "history_messages": {"type": "integer"},
                "dropped_messages": {"type": "integer"},
                **{name: {} for name in sorted(FORMATS)},
                "turn_id": {"type": "string"},
                "stored": {"type": "boolean"},
                "messages": {"type": "integer"},
                "cleared": {"type": "boolean"},
            },
            "additionalProperties": False,
        },
    ]
}


def context_manager(store: ContextStore, *, summarise: Summarise | None = None) -> Tool:
    """Return the tool `context_manager` over a store.

    `summarise`, sync or async, makes a text of the messages that fall out of the window, in the `language` that the
    call gives, else in the context's. `prepare` puts it before the history as an assistant message, and keeps it with
    the session; the next one is made of it when the window overflows again.
    """

    async def execute(args: Args, context: ToolContext) -> Any:
        check_operation(args, ARGUMENTS, ALWAYS_ALLOWED)
        match args["op"]:
            case "prepare":
                return await _prepare(store, args, summarise, args.get("language", context.language))
            case "persist":
                return await _persist(store, args, context)
            case "load":
                return await _load(store, args)
            case _:
                return {"session_id": args["session_id"], "cleared": await store.clear(args["session_id"])}

    return Tool(
        code="context_manager",
        description="Keep conversations: prepare the messages for a model, persist a turn, load or clear a session.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        execute=execute,
        effect={"argument": "op", "read": ["prepare", "load"]},
        idempotent=True,
        inward=True,
    )


def turn_id_of(context: ToolContext) -> str:
    """Return the id of the turn that a call stores: its run and its node's visit, the same for every attempt."""
    if not context.run_id:
        raise ToolError("persist needs a turn_id when it is called outside a run")
    strand = RETRIED.sub("", context.strand)
    return f"{context.run_id}/{strand}" if strand else context.run_id


async def _prepare(store: ContextStore, args: Args, summarise: Summarise | None, language: str) -> ToolResult:
    turns, window, usage = await _turns(store, args["session_id"]), Window.from_value(args.get("window")), None
    system = args.get("system_prompt")
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    left_out = len(split_at_window(turns, window)[0])
    if summarise:
        summary, usage = await fold_turns(store, args["session_id"], turns, window, summarise, language)
        left_out = summary.turns if summary else 0
        messages += [{**as_message(summary, language), "quotes": quote(turns[:left_out])}] if summary else []
    dropped, history = _split_messages(turns, left_out)
    messages += [*history, {"role": "user", "content": args["user_message"]}]
    sendable = [{key: value for key, value in each.items() if key not in UNREAD} for each in messages]
    shapes = {name: FORMATS[name](sendable) for name in args.get("formats", ())}
    counts = {"history_messages": len(history), "dropped_messages": len(dropped)}
    output = {"session_id": args["session_id"], "messages_json": messages, **counts, **shapes}
    return ToolResult(output=output, metadata={"usage": dict(usage)} if usage else {})


async def _persist(store: ContextStore, args: Args, context: ToolContext) -> dict[str, Any]:
    turn_id = args.get("turn_id") or turn_id_of(context)
    messages = _conversation(args)
    turn = last_turn(messages, await store.turns(args["session_id"]) if continues_turn(messages) else ())
    stored = await store.append(args["session_id"], turn_id, turn, ttl=args.get("ttl"))
    return {"session_id": args["session_id"], "turn_id": turn_id, "stored": stored, "messages": len(turn)}


async def _load(store: ContextStore, args: Args) -> list[Message]:
    turns = await _turns(store, args["session_id"])
    window = Window.from_value(args["window"]) if "window" in args else Window(None, None)
    return _split_messages(turns, len(split_at_window(turns, window)[0]))[1]


async def _turns(store: ContextStore, session: str) -> list[Turn]:
    turns = await store.turns(session)
    check_history(_flat(turns))
    return turns


def _split_messages(turns: Sequence[Turn], left_out: int) -> tuple[list[Message], list[Message]]:
    """Return the messages of the first `left_out` turns, and the others."""
    messages, first = rename_repeated_calls(_flat(turns)), len(_flat(turns[:left_out]))
    return messages[:first], messages[first:]


def _conversation(args: Args) -> list[Message]:
    """Return the conversation whose last turn is stored, from either form of the arguments."""
    if "messages_json" in args:
        if {"user_message", "final_answer"} & args.keys():
            raise ToolError("persist takes either messages_json, or user_message and final_answer")
        return take_apart(messages_of(args["messages_json"]))
    if "user_message" not in args or args.get("final_answer") is None:
        raise ToolError("persist needs messages_json, or user_message and final_answer")
    answer = args["final_answer"]
    text = to_text(answer)
    return [{"role": "user", "content": args["user_message"]}, {"role": "assistant", "content": text}]


def _flat(turns: Sequence[list[Message]]) -> list[Message]:
    return list(chain.from_iterable(turns))
