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
    "AgentCatalog": "agent_core.agents.catalog",
    "AgentDefinition": "agent_core.agents.definition",
    "AgentError": "agent_core.agents.errors",
    "AgentExecutor": "agent_core.agents.conversation",
    "AgentNotFound": "agent_core.agents.errors",
    "ChatReply": "agent_core.agents.reply",
    "ConversationOptions": "agent_core.agents.conversation",
    "ConversationResult": "agent_core.agents.result",
    "Conversations": "agent_core.agents.chat",
    "MaxStepsExceeded": "agent_core.agents.errors",
    "McpPolicy": "agent_core.agents.definition",
    "McpPrompt": "agent_core.agents.definition",
    "McpResource": "agent_core.agents.definition",
    "ModelCallFailed": "agent_core.agents.errors",
    "ReplyCall": "agent_core.agents.reply",
    "ReplyMeta": "agent_core.agents.reply",
    "SkillPolicy": "agent_core.agents.definition",
    "ToolCount": "agent_core.agents.result",
    "TurnUsage": "agent_core.agents.result",
}
"""The names of this room, each imported from its module when it is first used."""
__all__ = list(HOMES)
__getattr__, __dir__ = lazy_menu(__name__, HOMES)
