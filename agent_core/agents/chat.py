"""Conversations: turns with agents by the id of a conversation, whose history a ContextStore keeps."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any, overload

from agent_core.agents.conversation import AgentExecutor, ConversationOptions
from agent_core.agents.history import SpentTokens, check_conversation_id, join_turns, read_turns, undo_turn
from agent_core.agents.reply import ChatReply, refuse_spent
from agent_core.agents.turn_driver import OnEvent, TurnDriver
from agent_core.agents.turn_request import TurnRequest, as_recorded, least_of, read_start
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.control import Decisions
from agent_core.run.answer_type import Answer, AnswerReader, AnswerType
from agent_core.run.arguments import open_journal
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.run_id import check_run_id, new_run_id
from utools.context.store import ContextStore
from utools.context.turns import Message, Turn

TURN_TOKENS = 10_000
"""Tokens of a turn where its caller names no limit: enough for a prompt with a dozen tools, and a few calls."""


class Conversations:
    """Talks with the agents of an executor. Share it among the tasks of one event loop, not among several.

    Args:
        executor: Runs the turns. It needs a journal for turns that continue, such as those that wait for a person.
        store: Where the turns are kept, such as a `SqliteContextStore`. Nothing in it tells users or tenants apart:
            give each tenant a store, and begin the conversation's ids of each user with theirs.
        agent: The agent that answers where a call names none; by default the catalogue's only one.
        max_conversation_tokens: What all stored turns of a conversation may cost, in tokens read and written; the
            executor needs a journal for it.
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
        if not hasattr(store, "turns"):
            message = "must be a ContextStore, such as SqliteContextStore(path)"
            raise DefinitionError(message, where="store", value=store)
        self._executor, self._store, self._agent = executor, store, agent
        self._budget, self._spent = max_conversation_tokens, SpentTokens()
        self._turns = TurnDriver(executor, store)

    @overload
    async def chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        answer_schema: AnswerType[Answer] | None = None,
        agent: str | None = None,
        run_id: str | None = None,
        deps: object = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply[Answer]: ...
    @overload
    async def chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        answer_schema: Mapping[str, Any],
        agent: str | None = None,
        run_id: str | None = None,
        deps: object = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply[Any]: ...
    async def chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
        agent: str | None = None,
        run_id: str | None = None,
        deps: object = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply[Any]:
        """Let an agent answer in a conversation, a new one without an id, and store the turn under its run's id.

        `max_tokens` are those read and written over the turn; both limits only narrow the agent's own, None leaves
        them. A `run_id` that has been answered gives its reply again. `answer_schema` and `deps` are as of `run_agent`,
        and each call that goes on with a turn gives its own. However the run ends is told in the reply; raised are
        AgentNotFound, DefinitionError for bad input, ToolError for a store that cannot be used, and, once the turn is
        stored, AnswerError for an answer that its type refuses. The turns of a conversation wait for each other. A
        cancelled caller cancels the turn, which is not stored.
        """
        conversation = new_run_id() if conversation_id is None else check_conversation_id(conversation_id)
        run = new_run_id() if run_id is None else check_run_id(run_id)
        options = ConversationOptions(max_tool_calls=max_tool_calls, max_tokens=max_tokens, conversation=conversation)
        reader = AnswerReader.of(answer_schema)
        asked = TurnRequest(self._agent_name(agent), user_message, conversation, run, options, answer=reader, deps=deps)
        async with self._turns.lock(conversation):
            if tape := await self._turns.tape(run):
                return await self._turns.run(as_recorded(tape, asked), on_event)
            turns = await read_turns(self._store, conversation)
            if self._budget is not None and self._executor.journal is not None:
                with open_journal(self._executor.journal) as journal:
                    spent = await self._spent.count(turns, journal)
                if spent >= self._budget:
                    return refuse_spent(conversation, spent, self._budget)
                options = replace(options, max_tokens=least_of(max_tokens, self._budget - spent))
            options = replace(options, conversation_history=join_turns(turns))
            return await self._turns.run(replace(asked, options=options), on_event)

    @overload
    def stream_chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        answer_schema: AnswerType[Answer] | None = None,
        agent: str | None = None,
        run_id: str | None = None,
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[ChatReply[Answer]], None]: ...
    @overload
    def stream_chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        answer_schema: Mapping[str, Any],
        agent: str | None = None,
        run_id: str | None = None,
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[ChatReply[Any]], None]: ...
    def stream_chat(
        self,
        user_message: str,
        conversation_id: str | None = None,
        max_tool_calls: int | None = 5,
        max_tokens: int | None = TURN_TOKENS,
        *,
        answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
        agent: str | None = None,
        run_id: str | None = None,
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[ChatReply[Any]], None]:
        """Yield the events of `chat` as they happen, and last `{"event": "result", "result": …}` with the reply.

        To stop iterating cancels the turn, as with `stream_agent`. What `chat` raises, the iteration raises.
        """
        return stream_events(
            lambda hear: self.chat(
                user_message,
                conversation_id,
                max_tool_calls,
                max_tokens,
                answer_schema=answer_schema,
                agent=agent,
                run_id=run_id,
                deps=deps,
                on_event=hear,
            )
        )

    @overload
    async def decide(
        self,
        conversation_id: str,
        run_id: str,
        decisions: Decisions,
        *,
        answer_schema: AnswerType[Answer] | None = None,
        by: str = "caller",
        deps: object = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply[Answer]: ...
    @overload
    async def decide(
        self,
        conversation_id: str,
        run_id: str,
        decisions: Decisions,
        *,
        answer_schema: Mapping[str, Any],
        by: str = "caller",
        deps: object = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply[Any]: ...
    async def decide(
        self,
        conversation_id: str,
        run_id: str,
        decisions: Decisions,
        *,
        answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
        by: str = "caller",
        deps: object = None,
        on_event: OnEvent | None = None,
    ) -> ChatReply[Any]:
        """Go on with a turn that waits for a person, by the decisions on its calls, and store it once it has ended.

        `by` names who decided. DecisionError for a decision that fits nothing, and for a run that is no turn of this
        conversation.
        """
        tape = await self._turns.tape(check_run_id(run_id))
        if not tape:
            raise DecisionError(f"run {run_id!r} is not in the journal of this executor, so nothing waits there")
        agent, prompt = (
            read_start(tape).get(key, {}).get(name) for key, name in (("agent", "name"), ("config", "prompt"))
        )
        reader = AnswerReader.of(answer_schema)
        asked = TurnRequest(agent, prompt, conversation_id, run_id, ConversationOptions(), decisions, by, reader, deps)
        async with self._turns.lock(conversation_id):
            return await self._turns.run(as_recorded(tape, asked), on_event)

    async def history(self, conversation_id: str) -> list[Message]:
        """Return the stored messages, oldest first, each with the `trace_id` of its run; none where there is no such
        one."""
        return join_turns(await read_turns(self._store, conversation_id))

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation; whether there was one. The records of its runs stay in the journal."""
        async with self._turns.lock(conversation_id):
            return await self._store.clear(conversation_id)

    async def withdraw(self, conversation_id: str, *, by: str = "caller") -> Turn:
        """Withdraw the turn that waits for a person, whose message is returned; empty where none waits.

        Its run ends as cancelled and stays in the journal; no stored turn is touched.
        """
        async with self._turns.lock(conversation_id):
            return await self._turns.withdraw(conversation_id, by)

    async def undo(self, conversation_id: str, *, by: str = "caller") -> Turn:
        """Take back the last turn, which is returned; empty where there is none. Its run stays in the journal.

        A turn that waits for a person is the last one, and is withdrawn.
        """
        async with self._turns.lock(conversation_id):
            if withdrawn := await self._turns.withdraw(conversation_id, by):
                return withdrawn
            return await undo_turn(self._store, conversation_id)

    def _agent_name(self, agent: str | None) -> str:
        """Return the agent that answers. DefinitionError where there are several and none is named."""
        names = [each.name for each in self._executor.catalog.list()]
        chosen = agent or self._agent or (names[0] if len(names) == 1 else None)
        if chosen is None:
            known = f"name one of {', '.join(names)}" if names else "the catalogue has no agent"
            raise DefinitionError(f"no agent is named; {known}", where="agent")
        return self._executor.catalog.get(chosen).name
