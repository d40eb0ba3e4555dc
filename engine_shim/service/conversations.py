"""ConversationService: conversations with the agents of a host, whose turns are runs like any other."""

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

from agent_core.agents.history import check_conversation_id
from agent_core.agents.reply import ChatReply
from agent_core.outputs import Json
from agent_core.run.run_id import new_run_id
from engine_shim.errors import EngineError
from engine_shim.runs.conversations import HostConversations, reply_of
from engine_shim.service.run_service import RunService, key_to_id
from engine_shim.store.conversations import NewestTurn
from utools.context.turns import Message

MAX_TOOL_CALLS: Final = 50
MAX_TOKENS: Final = 100_000
"""What one turn may cost at most, whatever its caller asks for; an agent's own limits are narrower as a rule."""
LONGEST_LAST: Final = 200
"""Characters that a list shows of a conversation's last message."""


class ConversationNotFound(EngineError):
    """The store has no such conversation."""

    def __init__(self, conversation: str) -> None:
        super().__init__(f"there is no conversation {conversation!r}")


class ConversationSpent(EngineError):
    """A conversation has spent its tokens, and nothing ran; the `reply` says so as one of a turn."""

    def __init__(self, reply: ChatReply) -> None:
        super().__init__(reply.error["message"] if reply.error else str(reply.finish_reason))
        self.reply = reply


class TurnBegun(NamedTuple):
    """A turn that continues: its run, and its conversation."""

    run: str
    conversation: str


class ConversationService:
    """The conversations of one tenant. Share it among the tasks of one event loop."""

    def __init__(self, host: HostConversations, runs: RunService) -> None:
        self.host, self._runs = host, runs

    async def begin(
        self,
        message: str,
        conversation: str | None,
        *,
        agent: str | None,
        max_tool_calls: int = MAX_TOOL_CALLS,
        max_tokens: int = MAX_TOKENS,
        by: str,
        key: str | None = None,
        trace: str | None = None,
        is_followed: bool = False,
    ) -> TurnBegun:
        """Let an agent answer, and do not wait for it. A `key` that came before names the turn of that time.

        AgentNotFound, DefinitionError for bad input, ConversationSpent, KeyReused for a key of another message,
        OverShare under load.
        """
        name = self.host.choose_agent(agent)
        run = new_run_id() if key is None else key_to_id(f"agent/{name}", key)
        if conversation is None:
            conversation = new_run_id() if key is None else run  # so that the turn finds its conversation again
        check_conversation_id(conversation)
        if spent := await self.host.refuse_spent(name, conversation):
            raise ConversationSpent(spent)
        calls, tokens = min(max_tool_calls, MAX_TOOL_CALLS), min(max_tokens, MAX_TOKENS)
        await self._runs.submit(
            self.host.make_turn(name, max_tool_calls=calls, max_tokens=tokens),
            {"message": message, "conversation_id": conversation, "max_tool_calls": calls, "max_tokens": tokens},
            by=by,
            key=key,
            run_id=run,
            trace=trace,
            is_followed=is_followed,
            takes_unlisted=True,
        )
        return TurnBegun(run, conversation)

    async def wait_for_reply(self, run: str) -> ChatReply:
        """Return the reply of a turn once it has come to rest. ServerEnds where this process ends before that."""
        view = await self._runs.wait_settled(run)
        return reply_of(view.conversation or "", view)

    async def history(self, conversation: str) -> list[Message]:
        """Return the messages of a conversation; ConversationNotFound."""
        messages = await self.host.history(conversation)
        if not messages:
            raise ConversationNotFound(conversation)
        return messages

    async def describe(self, turns: Sequence[NewestTurn], most: int) -> list[Json]:
        """Describe the stored conversations among those that have these newest turns: who answered last, how many
        messages there are, and the beginning of the last one."""
        described: list[Json] = []
        for turn in turns:
            stored = list(chain.from_iterable(await self.host.store.turns(turn.conversation)))
            if len(described) < most and stored:
                about = {"conversation_id": turn.conversation, "agent": turn.agent, "updated_at": turn.started_at}
                last = next((each["content"] for each in reversed(stored) if isinstance(each.get("content"), str)), "")
                described.append({**about, "messages": len(stored), "last": last[:LONGEST_LAST]})
        return described

    async def delete(self, conversation: str) -> None:
        """Delete a conversation; ConversationNotFound."""
        if not await self.host.delete(conversation):
            raise ConversationNotFound(conversation)

    def describe_agents(self) -> list[Json]:
        """Describe the agents, with the tools that each has here."""
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
