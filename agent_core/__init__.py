"""One agent run: any model, whitelisted tools, hard limits, and a journal that proves it."""

from agent_core.audit.replay import Replay, replay
from agent_core.audit.verify import Verification, verify
from agent_core.config import AgentConfig
from agent_core.decisions import Approve, Deny, Edit, Fail, Retry, Skip
from agent_core.errors import DecisionError, DefinitionError, JournalError
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.sqlite import SqliteJournal
from agent_core.protocol.parse import Action, Final, Plan, ProtocolError, parse
from agent_core.protocol.step_schema import step_schema
from agent_core.run.node import AgentOutput, agent_tool, run_agent, run_agent_sync

__all__ = [
    "Action",
    "AgentConfig",
    "AgentOutput",
    "Approve",
    "DecisionError",
    "DefinitionError",
    "Deny",
    "Edit",
    "Fail",
    "Final",
    "JournalError",
    "JsonlJournal",
    "MemoryJournal",
    "Plan",
    "ProtocolError",
    "Replay",
    "Retry",
    "Skip",
    "SqliteJournal",
    "Verification",
    "agent_tool",
    "parse",
    "replay",
    "run_agent",
    "run_agent_sync",
    "step_schema",
    "verify",
]
