"""Stored conversations: their turns as messages, what these have cost, and the last one taken back."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from agent_core.errors import DefinitionError
from agent_core.journal.chain import is_finished
from agent_core.journal.path import find_root, parent_of
from agent_core.journal.record import Tape
from agent_core.journal.signature import split_own_strands
from agent_core.journal.started import loop_of
from agent_core.journal.store import Journal
from agent_core.run.blocking import run_blocking
from utools.context.store import ContextStore
from utools.context.turns import Message, Turn, check_history, rename_repeated_calls
from utools.errors import ToolError

LONGEST_ID = 256
MOST_COUNTED: Final = 20_000
"""Of how many runs it is remembered at once what they have cost."""


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


class SpentTokens:
    """What runs of a journal have cost, in tokens read and written. One that has ended is read once: a turn of a long
    conversation would read all runs before it."""

    def __init__(self) -> None:
        self._ended: dict[str, int] = {}

    async def count(self, turns: Sequence[Turn], journal: Journal) -> int:
        """Return the tokens that the runs of these turns have cost. A run whose records are gone costs none, unless it
        was counted here before."""
        runs = find_runs(turns)
        return await run_blocking(journal, lambda: sum(self._count(run, journal) for run in runs))

    def _count(self, run: str, journal: Journal) -> int:
        if (known := self._ended.get(run)) is not None:
            return known
        tape, _ = split_own_strands(journal.load(run))
        tokens = count_tokens(tape)
        if is_finished(tape, find_root(tape)):
            if len(self._ended) >= MOST_COUNTED:
                self._ended.clear()
            self._ended[run] = tokens
        return tokens


def count_tokens(tape: Tape) -> int:
    """Return the tokens, read and written, of the agents of a run; 0 if its records are gone."""
    agents = {path for path, rows in tape.items() if rows[0].kind == "run_started" and loop_of(rows[0]) == "agent"}
    outermost = [path for path in agents if agents.isdisjoint(_list_above(path))]
    ends = [tape[path][-1].record() for path in outermost]  # they count what is below them
    return sum(int(end.get("usage", {}).get("total_tokens", 0)) for end in ends)


def _list_above(path: str) -> list[str]:
    """Return the strands that a strand lies below."""
    above: list[str] = []
    while path := parent_of(path):
        above.append(path)
    return above


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
