"""Stored conversations: their turns as messages, and the last one taken back."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from agent_core.errors import DefinitionError
from utools.context.store import ContextStore
from utools.context.turns import Message, Turn, check_history, rename_repeated_calls
from utools.errors import ToolError

LONGEST_ID = 256


def check_conversation_id(conversation: str) -> str:
    """Return the id of a conversation. DefinitionError for what cannot be one."""
    if not isinstance(conversation, str) or not 0 < len(conversation) <= LONGEST_ID:
        raise DefinitionError(f"must be a text of 1 to {LONGEST_ID} characters", where="conversation_id")
    return conversation


async def read_turns(store: ContextStore, conversation: str) -> list[Turn]:
    """Return the stored turns, oldest first. DefinitionError for messages that no turn may have."""
    turns = await store.turns(conversation)
    try:
        check_history(list(chain.from_iterable(turns)))
    except ToolError as error:
        raise DefinitionError(str(error), where="conversation_id", value=conversation) from None
    return turns


def join_turns(turns: Iterable[Turn]) -> list[Message]:
    """Return the messages of the turns, with an id of its own for each tool call."""
    return rename_repeated_calls(list(chain.from_iterable(turns)))


async def undo_turn(store: ContextStore, conversation: str) -> Turn:
    """Delete the last stored turn and return it; return no message if there is none."""
    while turns := await read_turns(store, conversation):
        if await store.drop_last(conversation, len(turns)):
            return turns[-1]
    return []


def find_runs(turns: Iterable[Turn]) -> list[str]:
    """Return the runs that the turns came from."""
    return list(dict.fromkeys(each["trace_id"] for each in chain.from_iterable(turns) if "trace_id" in each))


def mark_messages(messages: Sequence[Message], run: str) -> Turn:
    """Return the messages as a store keeps them: each with its run, without calls that the run's end left open."""
    return [{**each, "trace_id": run} for each in _without_open_calls(messages)]


def _without_open_calls(messages: Sequence[Message]) -> Iterator[Message]:
    answers = {each["tool_call_id"] for each in messages if each["role"] == "tool"}
    for each in messages:
        calls = each.get("tool_calls") or []
        kept = [call for call in calls if call["id"] in answers]
        if kept == calls:
            yield each
        elif kept or each["content"]:
            rest = {key: value for key, value in each.items() if key != "tool_calls"}
            yield {**rest, "tool_calls": kept} if kept else rest
