"""Conversations: turns with agents by the id of a conversation, whose history a ContextStore keeps."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakValueDictionary

from agent_core.agents.conversation import AgentExecutor, ConversationOptions
from agent_core.agents.errors import AgentError
from agent_core.agents.history import join_turns, mark_messages, read_turns, undo_turn
from agent_core.agents.reply import ChatReply, read_reply, refuse_spent
from agent_core.agents.result import ConversationResult
from agent_core.agents.turn_tool import count_spent
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.chain import is_finished
from agent_core.journal.control import Decisions, waiting_calls
from agent_core.journal.record import Tape
from agent_core.outputs import Json
from agent_core.run.agent_drive import ROOT
from agent_core.run.arguments import open_journal
from agent_core.run.blocking import run_blocking
from agent_core.run.control import withdraw_pending
from agent_core.run.events import Event
from agent_core.run.run_id import check_run_id, new_run_id
from agent_core.run.secrets import signing_keys
from utools.context.store import ContextStore
from utools.context.turns import Message, Turn

LONGEST_ID = 256
"""Characters of a conversation's id."""
TURN_TOKENS = 10_000
"""Tokens of a turn where its caller names no limit: enough for a prompt with a dozen tools, and a few calls."""
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One turn that is asked for."""

    agent: str
    message: str
    conversation: str
    run: str
    options: ConversationOptions
    decisions: Decisions | None = None
    by: str = "caller"


class Conversations:
    """Talks with the agents of an executor. Share it among the tasks of one event loop, not among several.

    `agent` answers where a call names none; without it the catalogue's only one does. `max_conversation_tokens` is
    what all stored turns of a conversation may cost, read and written; the executor needs a journal for it, as it does
    for turns that continue.
    """

    def __init__(
        self,
        executor: AgentExecutor,
        store: ContextStore,
        *,
        agent: str | None = None,
        max_conversation_tokens: int | None = None,
    ) -> None:
        if max_conversation_tokens is not None and executor.journal is None:
            what = "needs an executor with a journal, which records what each turn cost"
            raise DefinitionError(what, where="max_conversation_tokens", value=max_conversation_tokens)
        self._executor, self._store, self._agent = executor, store, agent
        self._budget = max_conversation_tokens
        self._waiting = dict[str, list[str]]()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        agent: str | None = None,
        run_id: str | None = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply:
        """Let an agent answer in a conversation, a new one without an id, and store the turn under its run's id.

        `max_tokens` are those read and written over the turn; both limits only narrow the agent's own, None leaves
        them. A `run_id` that has been answered gives its reply again. However the run ends is told in the reply;
        raised are AgentNotFound, DefinitionError for bad input, and ToolError for a store that cannot be used. The
        turns of a conversation wait for each other. A cancelled caller cancels the turn, which is not stored.
        """
        conversation = _check_id(conversation_id)
        run = new_run_id() if run_id is None else check_run_id(run_id)
        options = ConversationOptions(max_tool_calls=max_tool_calls, max_tokens=max_tokens, conversation=conversation)
        asked = _Turn(self._agent_name(agent), user_message, conversation, run, options)
        async with self._lock(conversation):
            if tape := await self._tape(run):
                return await self._run(_recorded(tape, asked), on_event)
            turns = await read_turns(self._store, conversation)
            if self._budget is not None and self._executor.journal is not None:
                with open_journal(self._executor.journal) as journal:
                    spent = await count_spent(turns, journal)
                if spent >= self._budget:
                    return refuse_spent(conversation, spent, self._budget)
                options = replace(options, max_tokens=_least(max_tokens, self._budget - spent))
            options = replace(options, conversation_history=join_turns(turns))
            return await self._run(replace(asked, options=options), on_event)

    async def decide(
        self,
        conversation_id: str,
        run_id: str,
        decisions: Decisions,
        *,
        by: str = "caller",
        on_event: OnEvent | None = None,
    ) -> ChatReply:
        """Go on with a turn that waits for a person, by the decisions on its calls, and store it once it has ended.

        `by` names who decided. DecisionError for a decision that fits nothing, and for a run that is no turn of this
        conversation.
        """
        tape = await self._tape(check_run_id(run_id))
        if not tape:
            raise DecisionError(f"run {run_id!r} is not in the journal of this executor, so nothing waits there")
        agent, prompt = (_start(tape).get(key, {}).get(name) for key, name in (("agent", "name"), ("config", "prompt")))
        asked = _Turn(agent, prompt, conversation_id, run_id, ConversationOptions(), decisions, by)
        async with self._lock(conversation_id):
            return await self._run(_recorded(tape, asked), on_event)

    async def history(self, conversation_id: str) -> list[Message]:
        """Return the stored messages, oldest first, each with the `trace_id` of its run; none where there is no such
        one."""
        return join_turns(await read_turns(self._store, conversation_id))

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation; whether there was one. The records of its runs stay in the journal."""
        async with self._lock(conversation_id):
            return await self._store.clear(conversation_id)

    async def withdraw(self, conversation_id: str, *, by: str = "caller") -> Turn:
        """Withdraw the turn that waits for a person, whose message is returned; empty where none waits.

        Its run ends as cancelled and stays in the journal; no stored turn is touched.
        """
        async with self._lock(conversation_id):
            return await self._withdraw(conversation_id, by)

    async def undo(self, conversation_id: str, *, by: str = "caller") -> Turn:
        """Take back the last turn, which is returned; empty where there is none. Its run stays in the journal.

        A turn that waits for a person is the last one, and is withdrawn.
        """
        async with self._lock(conversation_id):
            if withdrawn := await self._withdraw(conversation_id, by):
                return withdrawn
            return await undo_turn(self._store, conversation_id)

    async def _withdraw(self, conversation: str, by: str) -> Turn:
        run = await self._waiting_run(conversation)
        if run is None or self._executor.journal is None:
            return []
        with open_journal(self._executor.journal) as journal:
            await run_blocking(journal, partial(withdraw_pending, journal, run, by=by, keys=signing_keys()))
        started = _start(tape := await self._tape(run))
        if not is_finished(tape, ROOT):
            agent, prompt = started["agent"]["name"], started["config"]["prompt"]
            asked = _Turn(agent, prompt, conversation, run, ConversationOptions(), by=by)
            with suppress(DefinitionError):  # this host lacks what the run needs: withdrawn it is all the same
                await self._result(_recorded(tape, asked), None)
        self._note_waiting(conversation, run, waits=False)
        return [{"role": "user", "content": started["config"]["prompt"], "trace_id": run}]

    async def _waiting_run(self, conversation: str) -> str | None:
        """Return the run of the turn that waits for a person."""
        for run in reversed(self._waiting.get(conversation, ())):
            if waiting_calls(await self._tape(run)):
                return run
        return None

    def _note_waiting(self, conversation: str, run: str, *, waits: bool) -> None:
        runs = [each for each in self._waiting.pop(conversation, ()) if each != run] + [run] * waits
        if runs:
            self._waiting[conversation] = runs

    async def _run(self, asked: _Turn, on_event: OnEvent | None) -> ChatReply:
        result = await self._result(asked, on_event)
        self._note_waiting(asked.conversation, asked.run, waits=bool(result.output.waiting))
        if turn := _turn_of(result):
            await self._store.append(asked.conversation, asked.run, turn)
        return read_reply(asked.conversation, result)

    async def _result(self, asked: _Turn, on_event: OnEvent | None) -> ConversationResult:
        """Return what came of the turn, also when it is an error to the executor."""
        try:
            return await self._executor.execute_conversation(
                asked.agent,
                asked.message,
                asked.options,
                run_id=asked.run,
                decisions=asked.decisions,
                by=asked.by,
                on_event=on_event,
            )
        except AgentError as error:
            if error.result is None:
                raise
            return error.result

    def _agent_name(self, agent: str | None) -> str:
        """Return the agent that answers. DefinitionError where there are several and none is named."""
        names = [each.name for each in self._executor.catalog.list()]
        chosen = agent or self._agent or (names[0] if len(names) == 1 else None)
        if chosen is None:
            known = f"name one of {', '.join(names)}" if names else "the catalogue has no agent"
            raise DefinitionError(f"no agent is named; {known}", where="agent")
        return self._executor.catalog.get(chosen).name

    async def _tape(self, run: str) -> Tape:
        if self._executor.journal is None:
            return {}
        with open_journal(self._executor.journal) as journal:
            return await run_blocking(journal, lambda: journal.load(run))

    def _lock(self, conversation: str) -> asyncio.Lock:
        return self._locks.setdefault(conversation, asyncio.Lock())


def _check_id(conversation: str | None) -> str:
    if conversation is None:
        return new_run_id()
    if not isinstance(conversation, str) or not 0 < len(conversation) <= LONGEST_ID:
        raise DefinitionError(f"must be a text of 1 to {LONGEST_ID} characters", where="conversation_id")
    return conversation


def _start(tape: Tape) -> Json:
    rows = tape.get(ROOT)
    return rows[0].record() if rows else {}


def _recorded(tape: Tape, asked: _Turn) -> _Turn:
    """Return the turn with the history and the limits that its run began with. DecisionError for another
    conversation's."""
    started = _start(tape)
    note = started.get("agent", {})
    if note.get("conversation") != asked.conversation:
        raise DecisionError(f"run {asked.run!r} is no turn of the conversation {asked.conversation!r}")
    config = started["config"]
    options = ConversationOptions(
        conversation_history=config["messages_json"] or (),
        max_tool_calls=config["max_tool_calls"],
        max_tokens=config["total_token_budget"],
        conversation=asked.conversation,
    )
    return replace(asked, options=options)


def _turn_of(result: ConversationResult) -> Turn:
    """Return what is stored of a turn: its messages, if it has ended, and cost or did anything."""
    output = result.output
    if output.waiting or not (output.usage["total_tokens"] or output.used_tools) or output.finish_reason == "paused":
        return []
    start = max(at for at, each in enumerate(result.messages) if each["role"] == "user")
    return mark_messages(result.messages[start:], output.run_id)


def _least(limit: int | None, left: int) -> int:
    return min(limit, left) if limit else left
