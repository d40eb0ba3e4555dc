"""ChatState: one conversation and the agent that answers in it; its turns are taken in one event loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from agent_core.agents.reply import ChatReply
from agent_core.journal.control import Decisions
from agent_core.journal.record import Tape
from engine_shim.cli import output
from engine_shim.cli.chat_view import ChatView
from engine_shim.runs.chat import HostConversations
from utools.context.turns import Message


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
        chat = self._conversations.chat(message, self.conversation, None, None, on_event=self.view.show)
        return self._take(chat)

    def resume(self, run: str, decisions: Decisions | None = None) -> ChatReply:
        """Go on with a turn that waits, with the agent that it began with."""
        conversations = self.host.of(self.host.agent_of(run) or self.agent)
        decide = conversations.decide(
            self.conversation, run, decisions or {}, by=output.user(), on_event=self.view.show
        )
        return self._take(decide)

    def history(self) -> list[Message]:
        """The stored messages."""
        return self._runner.run(self._conversations.history(self.conversation))

    def undo(self) -> bool:
        """Take the last turn back; whether there was one."""
        self._run = None
        return bool(self._runner.run(self._conversations.undo(self.conversation)))

    def last_run(self) -> str | None:
        """The run of the last turn: of this process, else of those that are stored."""
        runs = [each["trace_id"] for each in self.history() if "trace_id" in each]
        return self._run or (runs[-1] if runs else None)

    def tape(self, run: str) -> Tape:
        """The records of a turn."""
        return self.host.journal.load(run)

    def _take(self, turn: Coroutine[Any, Any, ChatReply]) -> ChatReply:
        with self.view:
            reply = self._runner.run(turn)
        self._run = reply.trace_id
        return reply
