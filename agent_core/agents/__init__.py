"""Agents by name: a catalogue of YAML files, and conversations with them."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from agent_core.agents.catalog import AgentCatalog as AgentCatalog
    from agent_core.agents.chat import Conversations as Conversations
    from agent_core.agents.conversation import AgentExecutor as AgentExecutor
    from agent_core.agents.conversation import ConversationOptions as ConversationOptions
    from agent_core.agents.definition import AgentDefinition as AgentDefinition
    from agent_core.agents.definition import McpPolicy as McpPolicy
    from agent_core.agents.definition import McpPrompt as McpPrompt
    from agent_core.agents.definition import McpResource as McpResource
    from agent_core.agents.definition import SkillPolicy as SkillPolicy
    from agent_core.agents.errors import AgentError as AgentError
    from agent_core.agents.errors import AgentNotFound as AgentNotFound
    from agent_core.agents.errors import MaxStepsExceeded as MaxStepsExceeded
    from agent_core.agents.errors import ModelCallFailed as ModelCallFailed
    from agent_core.agents.reply import ChatReply as ChatReply
    from agent_core.agents.reply import ReplyCall as ReplyCall
    from agent_core.agents.reply import ReplyMeta as ReplyMeta
    from agent_core.agents.result import ConversationResult as ConversationResult
    from agent_core.agents.result import ToolCount as ToolCount
    from agent_core.agents.result import TurnUsage as TurnUsage

HOMES = {
    "agent_core.agents.catalog": "AgentCatalog",
    "agent_core.agents.chat": "Conversations",
    "agent_core.agents.conversation": "AgentExecutor ConversationOptions",
    "agent_core.agents.definition": "AgentDefinition McpPolicy McpPrompt McpResource SkillPolicy",
    "agent_core.agents.errors": "AgentError AgentNotFound MaxStepsExceeded ModelCallFailed",
    "agent_core.agents.reply": "ChatReply ReplyCall ReplyMeta",
    "agent_core.agents.result": "ConversationResult ToolCount TurnUsage",
}
"""The names of this room by their modules; each is imported when it is first used."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
