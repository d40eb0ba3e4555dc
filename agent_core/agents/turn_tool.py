"""The tool of a turn: reads what an agent answers to from a stored conversation, and stores its turn there."""

from typing import Any, Final

from agent_core.agents.history import SpentTokens, join_turns, mark_messages, read_turns
from agent_core.journal.store import Journal
from agent_core.records import TURN_TOOL
from utools.context.store import ContextStore
from utools.tool import Args, Tool, ToolContext

_LIMIT: Final = {"type": "integer", "minimum": 0}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "op": {"enum": ["prepare", "persist"]},
        "conversation_id": {"type": "string", "minLength": 1, "maxLength": 256},
        "max_tokens": {**_LIMIT, "description": "prepare: what the turn may cost, unless that is 0."},
        "max_conversation_tokens": {**_LIMIT, "description": "prepare: what all turns may cost."},
        "message": {"type": "string", "description": "persist: what the user said."},
        "answers": {"type": "array", "items": {"type": "object"}, "description": "persist: what the agent added."},
        "tokens": {"type": ["integer", "null"], "description": "persist: what the turn has cost."},
    },
    "required": ["op", "conversation_id"],
    "additionalProperties": False,
}


def turn_tool(store: ContextStore, journal: Journal) -> Tool:
    """Return the tool of a turn over a store; `journal` has the runs of its turns.

    `prepare` returns {messages_json, max_tokens}: the history, and what the turn may cost of what the conversation has
    left, at least 1. `persist` stores the turn under its run's id, once, unless it has cost nothing and added nothing;
    it returns {stored}.
    """
    spent = SpentTokens()

    async def execute(args: Args, context: ToolContext) -> Any:
        if args["op"] == "persist":
            return await _persist(store, args, context)
        turns = await read_turns(store, args["conversation_id"])
        limit, budget = args.get("max_tokens", 0), args.get("max_conversation_tokens")
        if budget is not None:
            left = max(1, budget - await spent.count(turns, journal))
            limit = min(limit, left) if limit else left
        return {"messages_json": join_turns(turns), "max_tokens": limit}

    return Tool(
        code=TURN_TOOL,
        description="Read the history of a conversation with an agent, and store the agent's turn.",
        config_schema=SCHEMA,
        execute=execute,
        effect={"argument": "op", "read": ["prepare"]},
        idempotent=True,
        inward=True,
    )


async def _persist(store: ContextStore, args: Args, context: ToolContext) -> dict[str, bool]:
    answers = args.get("answers", ())
    if not (answers or args.get("tokens")):
        return {"stored": False}
    messages = [{"role": "user", "content": args["message"]}, *answers]
    turn = mark_messages(messages, context.run_id)
    return {"stored": await store.append(args["conversation_id"], context.run_id, turn)}
