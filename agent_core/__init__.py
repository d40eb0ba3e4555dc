"""One agent run: any model, whitelisted tools, hard limits, and a journal that proves it."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from agent_core.audit.replay import Replay as Replay
    from agent_core.audit.replay import replay as replay
    from agent_core.audit.verify import Verification as Verification
    from agent_core.audit.verify import verify as verify
    from agent_core.config import AgentConfig as AgentConfig
    from agent_core.decisions import Approve as Approve
    from agent_core.decisions import Deny as Deny
    from agent_core.decisions import Done as Done
    from agent_core.decisions import Edit as Edit
    from agent_core.decisions import Fail as Fail
    from agent_core.decisions import Retry as Retry
    from agent_core.decisions import Skip as Skip
    from agent_core.errors import AnswerError as AnswerError
    from agent_core.errors import DecisionError as DecisionError
    from agent_core.errors import DefinitionError as DefinitionError
    from agent_core.errors import JournalError as JournalError
    from agent_core.journal.jsonl import JsonlJournal as JsonlJournal
    from agent_core.journal.memory import MemoryJournal as MemoryJournal
    from agent_core.journal.signature import Keys as Keys
    from agent_core.journal.sqlite import SqliteJournal as SqliteJournal
    from agent_core.protocol.errors import ProtocolError as ProtocolError
    from agent_core.protocol.parse import Action as Action
    from agent_core.protocol.parse import Final as Final
    from agent_core.protocol.parse import Plan as Plan
    from agent_core.protocol.parse import parse as parse
    from agent_core.protocol.step_schema import step_schema as step_schema
    from agent_core.run.agent_output import AgentOutput as AgentOutput
    from agent_core.run.events import Event as Event
    from agent_core.run.events import StreamResult as StreamResult
    from agent_core.run.node import agent_tool as agent_tool
    from agent_core.run.node import run_agent as run_agent
    from agent_core.run.node import run_agent_sync as run_agent_sync
    from agent_core.run.node import stream_agent as stream_agent

HOMES = {
    "Action": "agent_core.protocol.parse",
    "AgentConfig": "agent_core.config",
    "AgentOutput": "agent_core.run.agent_output",
    "AnswerError": "agent_core.errors",
    "Approve": "agent_core.decisions",
    "DecisionError": "agent_core.errors",
    "DefinitionError": "agent_core.errors",
    "Deny": "agent_core.decisions",
    "Done": "agent_core.decisions",
    "Edit": "agent_core.decisions",
    "Event": "agent_core.run.events",
    "Fail": "agent_core.decisions",
    "Final": "agent_core.protocol.parse",
    "JournalError": "agent_core.errors",
    "JsonlJournal": "agent_core.journal.jsonl",
    "Keys": "agent_core.journal.signature",
    "MemoryJournal": "agent_core.journal.memory",
    "Plan": "agent_core.protocol.parse",
    "ProtocolError": "agent_core.protocol.errors",
    "Replay": "agent_core.audit.replay",
    "Retry": "agent_core.decisions",
    "Skip": "agent_core.decisions",
    "SqliteJournal": "agent_core.journal.sqlite",
    "StreamResult": "agent_core.run.events",
    "Verification": "agent_core.audit.verify",
    "agent_tool": "agent_core.run.node",
    "parse": "agent_core.protocol.parse",
    "replay": "agent_core.audit.replay",
    "run_agent": "agent_core.run.node",
    "run_agent_sync": "agent_core.run.node",
    "step_schema": "agent_core.protocol.step_schema",
    "stream_agent": "agent_core.run.node",
    "verify": "agent_core.audit.verify",
}
"""The public names, each imported from its module when it is first used: `import agent_core` loads no pydantic."""
__all__ = list(HOMES)
__getattr__, __dir__ = lazy_menu(__name__, HOMES)
