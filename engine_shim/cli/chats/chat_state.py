"""ChatState: one conversation and the agent that answers in it; its turns are taken in one event loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from agent_core.agents.reply import ChatReply
from agent_core.journal.control import Decisions
from agent_core.journal.reader import read_run
from agent_core.journal.record import Tape
from agent_core.run.node import ROOT
from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.chats.chat_view import ChatView
from engine_shim.runs.chat import HostConversations
from utools.context.turns import Message, Turn


class ChatState:
    """What goes on in a conversation. AgentNotFound; DefinitionError for a model that cannot be asked."""

    def __init__(self, host: HostConversations, agent: str, conversation: str, runner: asyncio.Runner) -> None:
        self.host, self.conversation, self.view = host, conversation, ChatView()
        self._runner = runner
        self._run: str | None = None
        self.choose(agent)

    def choose(self, agent: str) -> None:
        """Go on with this agent. AgentNotFound; DefinitionError for a model that cannot be asked."""
        self._conversations, self.agent = self.host.of(agent), agent

    def ask(self, message: str) -> ChatReply:
        """Take a turn, within the agent's own limits."""
        self._run = new_run_id()
        chat = self._conversations.chat(
            message, self.conversation, None, None, run_id=self._run, on_event=self.view.show
        )
        return self._take(chat)

    def resume(self, run: str, decisions: Decisions | None = None) -> ChatReply:
        """Go on with a turn that waits, with the agent that it began with."""
        self._run = run
        conversations = self.host.of(self.host.agent_of(run) or self.agent)
        decide = conversations.decide(
            self.conversation, run, decisions or {}, by=output.user(), on_event=self.view.show
        )
        return self._take(decide)

    def history(self) -> list[Message]:
        """The stored messages."""
        return self._runner.run(self._conversations.history(self.conversation))

    def withdraw(self) -> Turn:
        """Withdraw the turn that waits for a person, which is returned; empty where none waits."""
        if turn := self._runner.run(self._conversations.withdraw(self.conversation, by=output.user())):
            self._run = None
        return turn

    def undo(self) -> Turn:
        """Take back the last turn that is stored, which is returned; empty where there is none."""
        self._run = None
        return self._runner.run(self._conversations.undo(self.conversation))

    def last_run(self) -> str | None:
        """The run of the last turn: of this session, also if it was cancelled, else of those that are stored."""
        if self._run is not None and self.tape(self._run):
            return self._run
        runs = [each["trace_id"] for each in self.history() if "trace_id" in each]
        return runs[-1] if runs else None

    def question(self, run: str) -> str:
        """The message that a turn answers."""
        return str(read_run(self.tape(run), ROOT).config["prompt"])

    def tape(self, run: str) -> Tape:
        """The records of a turn."""
        return self.host.journal.load(run)

    def _take(self, turn: Coroutine[Any, Any, ChatReply]) -> ChatReply:
        with self.view:
            return self._runner.run(turn)
