"""TurnDriver: drives the turns of stored conversations, one at a time in each, and knows those that wait."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from agent_core.agents.conversation import AgentExecutor, ConversationOptions
from agent_core.agents.errors import AgentError
from agent_core.agents.reply import ChatReply, read_reply
from agent_core.agents.result import ConversationResult
from agent_core.agents.turn_request import TurnRequest, as_recorded, read_start, stored_turn_of
from agent_core.errors import DefinitionError
from agent_core.journal.chain import is_finished
from agent_core.journal.control import waiting_calls
from agent_core.journal.record import Tape
from agent_core.run.agent_drive import ROOT
from agent_core.run.arguments import open_journal
from agent_core.run.blocking import run_blocking
from agent_core.run.control import withdraw_pending
from agent_core.run.events import Event
from agent_core.run.secrets import signing_keys
from utools.context.store import ContextStore
from utools.context.turns import Turn

OnEvent = Callable[[Event], None]


class TurnDriver:
    """The turns of an executor's conversations in a store."""

    def __init__(self, executor: AgentExecutor, store: ContextStore) -> None:
        self._executor, self._store = executor, store
        self._waiting = dict[str, list[str]]()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def withdraw(self, conversation: str, by: str) -> Turn:
        run = await self._find_waiting(conversation)
        if run is None or self._executor.journal is None:
            return []
        with open_journal(self._executor.journal) as journal:
            await run_blocking(journal, partial(withdraw_pending, journal, run, by=by, keys=signing_keys()))
        started = read_start(tape := await self.tape(run))
        if not is_finished(tape, ROOT):
            agent, prompt = started["agent"]["name"], started["config"]["prompt"]
            asked = TurnRequest(agent, prompt, conversation, run, ConversationOptions(), by=by)
            with suppress(DefinitionError):  # this host lacks what the run needs: withdrawn it is all the same
                await self._result(as_recorded(tape, asked), None)
        self._note_waiting(conversation, run, waits=False)
        return [{"role": "user", "content": started["config"]["prompt"], "trace_id": run}]

    async def _find_waiting(self, conversation: str) -> str | None:
        """Return the run of the turn that waits for a person."""
        for run in reversed(self._waiting.get(conversation, ())):
            if waiting_calls(await self.tape(run)):
                return run
        return None

    def _note_waiting(self, conversation: str, run: str, *, waits: bool) -> None:
        runs = [each for each in self._waiting.pop(conversation, ()) if each != run] + [run] * waits
        if runs:
            self._waiting[conversation] = runs

    async def run(self, asked: TurnRequest, on_event: OnEvent | None) -> ChatReply[Any]:
        result = await self._result(asked, on_event)
        self._note_waiting(asked.conversation, asked.run, waits=bool(result.output.waiting))
        if turn := stored_turn_of(result):
            await self._store.append(asked.conversation, asked.run, turn)
        return read_reply(asked.conversation, replace(result, output=asked.answer.read(result.output)))

    async def _result(self, asked: TurnRequest, on_event: OnEvent | None) -> ConversationResult:
        """Return what came of the turn, also when it is an error to the executor."""
        try:
            return await self._executor.execute_conversation(
                asked.agent,
                asked.message,
                asked.options,
                answer_schema=asked.answer.schema,
                run_id=asked.run,
                decisions=asked.decisions,
                by=asked.by,
                deps=asked.deps,
                on_event=on_event,
            )
        except AgentError as error:
            if error.result is None:
                raise
            return error.result

    async def tape(self, run: str) -> Tape:
        if self._executor.journal is None:
            return {}
        with open_journal(self._executor.journal) as journal:
            return await run_blocking(journal, lambda: journal.load(run))

    def lock(self, conversation: str) -> asyncio.Lock:
        return self._locks.setdefault(conversation, asyncio.Lock())
