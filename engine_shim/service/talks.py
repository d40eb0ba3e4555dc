"""Talks: conversations with the agents of a host, whose turns go on when their callers go away."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from agent_core.agents.chat import Conversations
from agent_core.agents.conversation import ConversationOptions
from agent_core.agents.errors import AgentError, AgentNotFound
from agent_core.agents.reply import ChatReply, read_reply
from agent_core.agents.result import ConversationResult
from agent_core.effects import Json
from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions
from agent_core.journal.reader import read_run
from agent_core.run.node import ROOT
from agent_core.run.run_id import new_run_id
from engine_shim.errors import DefinitionError, EngineError, RunBusy
from engine_shim.runs.chat import HostConversations, agent_note
from engine_shim.runs.drive import OnEvent
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.service.run_service import POLL_S, KeyReused, key_to_id
from engine_shim.service.shares import OverShare
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.run_store import RunStore
from engine_shim.store.search import Turn
from utools.context.turns import Message

Result = TypeVar("Result")
MAX_TURNS: Final = 1000
"""Turns that are under way in one process."""
MAX_TOOL_CALLS: Final = 50
MAX_TOKENS: Final = 100_000
"""What one turn may cost at most, whatever its caller asks for; an agent's own limits are narrower as a rule."""


BEGINS_S, GLANCE_S = 1.0, 0.01
"""How long a turn is awaited until it is recorded, and how often it is looked at: an earlier one may go on."""
LONGEST_LAST: Final = 200
"""Characters that a list shows of a conversation's last message."""
log = logging.getLogger("engine_shim")


class ConversationNotFound(EngineError):
    """The store has no such conversation."""

    def __init__(self, conversation: str) -> None:
        super().__init__(f"there is no conversation {conversation!r}")


class Talks:
    """The conversations of one tenant. Share it among the tasks of one event loop.

    `on_rest` is told the run of each turn that has ended or waits.
    """

    def __init__(self, host: HostConversations, store: RunStore, on_rest: Callable[[str], None] | None = None) -> None:
        self.host, self._store, self._on_rest = host, store, on_rest
        self._runs = AsyncRunStore(store)
        self._by_agent: dict[str, Conversations] = {}
        self._turns: set[asyncio.Task[Any]] = set()
        self._unwatched: set[asyncio.Task[ChatReply]] = set()
        self._leases = LeaseKeeper(store.leases)

    async def chat(
        self,
        message: str,
        conversation: str | None,
        *,
        agent: str | None,
        max_tool_calls: int,
        max_tokens: int,
        by: str,
        key: str | None = None,
        run_id: str | None = None,
        trace: str | None = None,
        on_event: OnEvent = None,
    ) -> ChatReply:
        """Let an agent answer, as the run `run_id` where one is given. A `key` that came before gives the reply of that
        time. `trace` is the caller's `traceparent`.

        AgentNotFound, DefinitionError for bad input, KeyReused for a key of another message, OverShare under load.
        """
        name = self.choose_agent(agent)
        run = key_to_id(f"agent/{name}", key) if key is not None else run_id or new_run_id()
        if key is not None and conversation is None:
            conversation = run  # so that the turn finds its conversation again
        turn = self._conversations(name).chat(
            message,
            conversation,
            min(max_tool_calls, MAX_TOOL_CALLS),
            min(max_tokens, MAX_TOKENS),
            run_id=run,
            on_event=on_event,
        )
        return await self._run(run, turn, key, partial(self._note, run, by, trace))

    async def begin(
        self,
        message: str,
        conversation: str | None,
        *,
        agent: str | None,
        max_tool_calls: int,
        max_tokens: int,
        by: str,
        key: str | None = None,
        trace: str | None = None,
    ) -> Json:
        """Let an agent answer, as `chat` does, and do not wait for it: {conversation_id, trace_id}.

        Raises what `chat` does, as far as that shows before the agent begins.
        """
        name = self.choose_agent(agent)
        run = new_run_id() if key is None else key_to_id(f"agent/{name}", key)
        conversation = conversation or (new_run_id() if key is None else run)
        answering = self.chat(
            message,
            conversation,
            agent=name,
            max_tool_calls=max_tool_calls,
            max_tokens=max_tokens,
            by=by,
            key=key,
            run_id=run,
            trace=trace,
        )
        is_known = await self._is_known(run)
        turn = asyncio.create_task(answering)
        self._unwatched.add(turn)
        turn.add_done_callback(self._end_unwatched)
        for _ in range(round(BEGINS_S / GLANCE_S)):
            await asyncio.wait([turn], timeout=GLANCE_S)
            if turn.done():
                turn.result()
            if turn.done() or (not is_known and await self._is_known(run)):
                break
        return {"conversation_id": conversation, "trace_id": run}

    def _end_unwatched(self, turn: "asyncio.Task[ChatReply]") -> None:
        self._unwatched.discard(turn)
        if not turn.cancelled() and (error := turn.exception()) is not None:
            log.error("a turn that nobody waited for could not be made: %s", error)

    async def answer(
        self,
        agent: str,
        messages: Sequence[Json],
        *,
        run: str,
        by: str,
        key: str | None,
        temperature: float | None,
        on_event: OnEvent,
    ) -> ConversationResult:
        """Let an agent answer a conversation that its caller keeps; the last of the `messages` is the user's.

        AgentError, with the result as far as it got, AgentNotFound, DefinitionError, KeyReused, OverShare.
        """
        executor = self.host.executor(self.choose_agent(agent))
        options = ConversationOptions(conversation_history=messages[:-1], temperature=temperature)
        text = messages[-1]["content"]
        turn = executor.execute_conversation(agent, text, options, run_id=run, on_event=on_event)
        return await self._run(run, turn, key, lambda: self._store.save_submission(run, by))

    async def decide(self, run: str, decisions: Decisions, *, by: str) -> ChatReply:
        """Go on with a turn that waits. DecisionError for what fits nothing that waits."""
        note = await self._runs.run_blocking(agent_note, self.host.journal, run)
        if note is None:
            raise DecisionError(f"run {run!r} is no turn of a conversation")
        conversation, agent = note.get("conversation"), note["name"]
        if conversation is not None:
            return await self._run(run, self._conversations(agent).decide(conversation, run, decisions, by=by))
        tape = await self._runs.load(run)
        config = read_run(tape, ROOT).config
        temperature = config["temperature"] if "temperature" in note["overrides"] else None
        options = ConversationOptions(conversation_history=config["messages_json"] or (), temperature=temperature)
        turn = self.host.executor(agent).execute_conversation(
            agent, config["prompt"], options, run_id=run, decisions=decisions, by=by
        )
        try:
            return read_reply("", await self._run(run, turn))
        except AgentError as error:
            if error.result is None:
                raise
            return read_reply("", error.result)

    def cancel(self, run: str) -> None:
        """Cancel a turn that is under way in this process; it is not stored, and its run ends as cancelled."""
        for turn in self._turns:
            if turn.get_name() == run:
                turn.cancel()

    async def history(self, conversation: str) -> list[Message]:
        """The messages of a conversation; ConversationNotFound."""
        messages = await self._any().history(conversation)
        if not messages:
            raise ConversationNotFound(conversation)
        return messages

    async def describe(self, turns: Sequence[Turn], most: int) -> list[Json]:
        """The stored conversations among those that have these newest turns: who answered last, how many messages there
        are, and the beginning of the last one."""
        found: list[Json] = []
        for turn in turns:
            stored = list(chain.from_iterable(await self.host.store.turns(turn.conversation)))
            if len(found) < most and stored:
                about = {"conversation_id": turn.conversation, "agent": turn.agent, "updated_at": turn.started_at}
                last = next((each["content"] for each in reversed(stored) if isinstance(each.get("content"), str)), "")
                found.append({**about, "messages": len(stored), "last": last[:LONGEST_LAST]})
        return found

    async def delete(self, conversation: str) -> None:
        """Delete a conversation; ConversationNotFound."""
        if not await self._any().delete(conversation):
            raise ConversationNotFound(conversation)

    def describe_agents(self) -> list[Json]:
        """The agents, with the tools that each has here."""
        catalog = self.host.catalog
        return [
            {
                "name": agent.name,
                "description": agent.description,
                "model": agent.model,
                "tools": list(catalog.config_of(agent.name)[1]["kept"]),
            }
            for agent in catalog.list()
        ]

    def choose_agent(self, agent: str | None) -> str:
        """The agent that answers: the one of this name, or the only one. AgentNotFound."""
        names = [each.name for each in self.host.catalog.list()]
        if agent is None and len(names) == 1:
            return names[0]
        if agent is None:
            raise AgentNotFound("", names)
        return self.host.catalog.get(agent).name

    @property
    def open(self) -> int:
        """How many turns are under way."""
        return len(self._turns)

    async def close(self, grace: float) -> None:
        """Let the turns that are under way end; those that take longer are cancelled."""
        if self._turns:
            _, late = await asyncio.wait(self._turns, timeout=grace)
            for turn in late:
                turn.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run_alone(self, run: str, turn: Coroutine[Any, Any, Result], key: str) -> Result:
        """What comes of a turn that a key names, once no other of that key is under way."""
        with closing(turn):
            while True:
                with suppress(RunBusy):
                    async with self._leases.driving(run):
                        try:
                            return await turn
                        except (DefinitionError, DecisionError) as error:
                            is_other = isinstance(error, DecisionError) or error.where.startswith("config/")
                            if is_other and await self._is_known(run):
                                raise KeyReused(key) from None
                            raise
                await asyncio.sleep(POLL_S)

    async def _make(
        self, run: str, turn: Coroutine[Any, Any, Result], key: str | None, note: Callable[[], None] | None
    ) -> Result:
        """What comes of a turn: noted before it begins, and told to whoever wants to know that it rests."""
        with closing(turn):
            if note is not None:
                await self._runs.run_blocking(note)
            result = await (turn if key is None else self._run_alone(run, turn, key))
        if self._on_rest is not None:
            try:
                await self._runs.run_blocking(self._on_rest, run)
            except Exception:  # the turn is made, whatever becomes of those who are told of it
                log.exception("nobody is told that the turn %s rests", run)
        return result

    async def _run(
        self,
        run: str,
        turn: Coroutine[Any, Any, Result],
        key: str | None = None,
        note: Callable[[], None] | None = None,
    ) -> Result:
        """What comes of a turn, which goes on when its caller is cancelled."""
        if len(self._turns) >= MAX_TURNS:
            turn.close()
            raise OverShare("this tenant", MAX_TURNS, "turns")
        task = asyncio.create_task(self._make(run, turn, key, note), name=run)
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        return await asyncio.shield(task)

    def _note(self, run: str, by: str, trace: str | None) -> None:
        """Note who asks, and under which span."""
        if self.host.telemetry is not None:
            self.host.telemetry.keep_parent(run, trace)
        self._store.save_submission(run, by)

    async def _is_known(self, run: str) -> bool:
        return bool(await self._runs.tail(run))

    def _any(self) -> Conversations:
        return self._conversations(self.host.catalog.list()[0].name)

    def _conversations(self, agent: str) -> Conversations:
        if agent not in self._by_agent:
            self._by_agent[agent] = self.host.of(agent)
        return self._by_agent[agent]
