"""ChatState: one conversation and the agent that answers in it; its turns are taken in one event loop."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from agent_core.agents.history import check_conversation_id
from agent_core.agents.reply import ChatReply
from agent_core.journal.control import Decisions
from agent_core.journal.reader import read_run
from agent_core.journal.record import Tape
from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.chats.chat_view import ChatView
from engine_shim.definition.model import ROOT
from engine_shim.runs.conversations import HostConversations, reply_of
from engine_shim.runs.drive import RunResult
from utools.context.turns import Message, Turn


class ChatState:
    """The state of a conversation. AgentNotFound; DefinitionError for a model that cannot be asked."""

    def __init__(self, host: HostConversations, agent: str, conversation: str, runner: asyncio.Runner) -> None:
        self.host, self.conversation, self.view = host, conversation, ChatView()
        self._runner = runner
        self._run: str | None = None
        self.choose(agent)

    def choose(self, agent: str) -> None:
        """Go on with this agent. AgentNotFound; DefinitionError for a model that cannot be asked."""
        self.host.check_askable(agent)
        self.agent = self.view.agent = agent

    def ask(self, message: str) -> ChatReply:
        """Take a turn, within the agent's own limits."""
        check_conversation_id(self.conversation)
        if spent := self._runner.run(self.host.refuse_spent(self.agent, self.conversation)):
            return spent
        self._run = new_run_id()
        external = {"message": message, "conversation_id": self.conversation}
        run = partial(self.host.engine.run, self.host.make_turn(self.agent), external=external, run_id=self._run)
        return self._take(run(on_event=self.view.show))

    def resume(self, run: str, decisions: Decisions | None = None) -> ChatReply:
        """Go on with a turn that waits."""
        self._run = run
        resume = self.host.engine.resume(run, decisions=decisions, by=output.user(), on_event=self.view.show)
        return self._take(resume)

    def history(self) -> list[Message]:
        """Return the stored messages."""
        return self._runner.run(self.host.history(self.conversation))

    def withdraw(self) -> str | None:
        """Withdraw the turn that waits for a person, whose message is returned; None where none waits."""
        run = self.host.find_waiting(self.conversation)
        if run is None:
            return None
        self._runner.run(self.host.engine.cancel(run, by=output.user()))
        self._run = None
        return self.question(run)

    def undo(self) -> Turn:
        """Take back the last turn that is stored, which is returned; empty where there is none."""
        self._run = None
        return self._runner.run(self.host.undo(self.conversation))

    def last_run(self) -> str | None:
        """Return the run of the last turn: of this session, also if it was cancelled, else of those that are stored."""
        if self._run is not None and self.tape(self._run):
            return self._run
        runs = [each["trace_id"] for each in self.history() if "trace_id" in each]
        return runs[-1] if runs else None

    def runs(self) -> list[str]:
        """Return the runs of the stored turns, and of the last one if it is not stored."""
        stored = [each["trace_id"] for each in self.history() if "trace_id" in each]
        return [*dict.fromkeys([*stored, *filter(None, [self.last_run()])])]

    def question(self, run: str) -> str:
        """Return the message that a turn answers."""
        return str(read_run(self.tape(run), ROOT).external["message"])

    def tape(self, run: str) -> Tape:
        """Return the records of a turn."""
        return self.host.engine.store.journal.load(run)

    def _take(self, turn: Coroutine[Any, Any, RunResult]) -> ChatReply:
        with self.view:
            return reply_of(self.conversation, self._runner.run(turn))
