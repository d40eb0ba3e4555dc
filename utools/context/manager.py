"""`context_manager`: prepares a conversation for a model, and stores its turns afterwards."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from utools.context.formats import FORMATS
from utools.context.store import ContextStore
from utools.context.turns import Message, check_history, last_turn, messages_of, rename_repeated_calls
from utools.context.window import Window, split_at_window
from utools.errors import ToolError
from utools.tool import Args, Tool, ToolContext
from utools.words.catalogue import words_in

Summarise = Callable[[list[Message], str], str | Awaitable[str]]
"""Makes a text of messages, in a language: en or zh."""

RETRIED = re.compile(r"~\d+")

# by op: the arguments that it needs, and those that it may have
ARGUMENTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "prepare": (frozenset({"user_message"}), frozenset({"system_prompt", "window", "formats", "language"})),
    "persist": (frozenset(), frozenset({"messages_json", "user_message", "final_answer", "turn_id", "ttl"})),
    "load": (frozenset(), frozenset({"window"})),
    "clear": (frozenset(), frozenset()),
}

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
    """The tool `context_manager` over a store.

    `summarise`, sync or async, makes a text of the messages that fall out of the window, in the `language` that the
    call gives, else in the context's. `prepare` puts it before the history as an assistant message: it is made of texts
    of tools and models, so it must not have the system's role.
    """

    async def execute(args: Args, context: ToolContext) -> Any:
        _check_arguments(args)
        match args["op"]:
            case "prepare":
                return await _prepare(store, args, summarise, args.get("language", context.language))
            case "persist":
                return await _persist(store, args, context)
            case "load":
                window = Window.of(args["window"]) if "window" in args else Window(None, None)
                return (await _history(store, args["session_id"], window))[1]
        return {"session_id": args["session_id"], "cleared": await store.clear(args["session_id"])}

    return Tool(
        code="context_manager",
        description="Keep conversations: prepare the messages for a model, persist a turn, load or clear a session.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        execute=execute,
        effect={"argument": "op", "read": ["prepare", "load"]},
        idempotent=True,
    )


def turn_id_of(context: ToolContext) -> str:
    """The id of the turn that a call stores: its run and its node's visit, the same for every attempt."""
    if not context.run_id:
        raise ToolError("persist needs a turn_id when it is called outside a run")
    strand = RETRIED.sub("", context.strand)
    return f"{context.run_id}/{strand}" if strand else context.run_id


def _check_arguments(args: Mapping[str, Any]) -> None:
    needed, allowed = ARGUMENTS[args["op"]]
    names = args.keys() - {"op", "session_id"}
    if missing := sorted(needed - names):
        raise ToolError(f"{args['op']} needs {', '.join(missing)}")
    if extra := sorted(names - needed - allowed):
        raise ToolError(f"{args['op']} takes no {', '.join(extra)}")


async def _prepare(store: ContextStore, args: Args, summarise: Summarise | None, language: str) -> dict[str, Any]:
    dropped, history = await _history(store, args["session_id"], Window.of(args.get("window")))
    system = args.get("system_prompt")
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    if dropped and summarise:
        summary = words_in(language).summary + await _summary(summarise, dropped, language)
        messages.append({"role": "assistant", "content": summary})
    messages += [*history, {"role": "user", "content": args["user_message"]}]
    shapes = {name: FORMATS[name](messages) for name in args.get("formats", ())}
    counts = {"history_messages": len(history), "dropped_messages": len(dropped)}
    return {"session_id": args["session_id"], "messages_json": messages, **counts, **shapes}


async def _persist(store: ContextStore, args: Args, context: ToolContext) -> dict[str, Any]:
    turn_id = args.get("turn_id") or turn_id_of(context)
    turn = last_turn(_conversation(args))
    stored = await store.append(args["session_id"], turn_id, turn, ttl=args.get("ttl"))
    return {"session_id": args["session_id"], "turn_id": turn_id, "stored": stored, "messages": len(turn)}


async def _history(store: ContextStore, session: str, window: Window) -> tuple[list[Message], list[Message]]:
    """The messages that fall out of the window, and those in it."""
    turns = await store.turns(session)
    check_history(_flat(turns))
    dropped, _ = split_at_window(turns, window)
    messages, first = rename_repeated_calls(_flat(turns)), len(_flat(dropped))
    return messages[:first], messages[first:]


async def _summary(summarise: Summarise, messages: list[Message], language: str) -> str:
    text = summarise(messages, language)
    return await text if inspect.isawaitable(text) else text


def _conversation(args: Args) -> list[Message]:
    """The conversation whose last turn is stored, from either form of the arguments."""
    if "messages_json" in args:
        if {"user_message", "final_answer"} & args.keys():
            raise ToolError("persist takes either messages_json, or user_message and final_answer")
        return messages_of(args["messages_json"])
    if "user_message" not in args or args.get("final_answer") is None:
        raise ToolError("persist needs messages_json, or user_message and final_answer")
    answer = args["final_answer"]
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return [{"role": "user", "content": args["user_message"]}, {"role": "assistant", "content": text}]


def _flat(turns: Sequence[list[Message]]) -> list[Message]:
    return list(chain.from_iterable(turns))
