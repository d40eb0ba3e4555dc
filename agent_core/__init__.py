"""One agent run: any model, whitelisted tools, hard limits, and a journal that proves it."""

from typing import TYPE_CHECKING

try:
    from utools.lazy_menu import lazy_menu
except ModuleNotFoundError as error:
    if error.name != "utools.lazy_menu":
        raise
    import utools

    raise ImportError(f"{utools.__file__} hides the package utools, which agent-core needs: rename it") from None

if TYPE_CHECKING:
    from agent_core.audit.repeats import MadeWrite as MadeWrite
    from agent_core.audit.replay import Replay as Replay
    from agent_core.audit.replay import replay as replay
    from agent_core.audit.verify import Verification as Verification
    from agent_core.audit.verify import verify as verify
    from agent_core.config import AgentConfig as AgentConfig
    from agent_core.config import AllowedTool as AllowedTool
    from agent_core.config import AnyOf as AnyOf
    from agent_core.config import Document as Document
    from agent_core.config import Example as Example
    from agent_core.config import ExampleCall as ExampleCall
    from agent_core.config import PlanConfig as PlanConfig
    from agent_core.decisions import Approve as Approve
    from agent_core.decisions import Deny as Deny
    from agent_core.decisions import Done as Done
    from agent_core.decisions import Edit as Edit
    from agent_core.decisions import Fail as Fail
    from agent_core.decisions import Retry as Retry
    from agent_core.decisions import Skip as Skip
    from agent_core.errors import Abandoned as Abandoned
    from agent_core.errors import AgentCoreError as AgentCoreError
    from agent_core.errors import AnswerError as AnswerError
    from agent_core.errors import Damaged as Damaged
    from agent_core.errors import DecisionError as DecisionError
    from agent_core.errors import DecisionTaken as DecisionTaken
    from agent_core.errors import DefinitionError as DefinitionError
    from agent_core.errors import Divergence as Divergence
    from agent_core.errors import JournalAway as JournalAway
    from agent_core.errors import JournalError as JournalError
    from agent_core.errors import Lost as Lost
    from agent_core.errors import NoEventLoop as NoEventLoop
    from agent_core.journal.control import Decisions as Decisions
    from agent_core.journal.identity import StoreIdentity as StoreIdentity
    from agent_core.journal.jsonl import JsonlJournal as JsonlJournal
    from agent_core.journal.memory import MemoryJournal as MemoryJournal
    from agent_core.journal.record import Row as Row
    from agent_core.journal.record import Tape as Tape
    from agent_core.journal.signature import Keys as Keys
    from agent_core.journal.source import Source as Source
    from agent_core.journal.sqlite import SqliteJournal as SqliteJournal
    from agent_core.journal.store import Journal as Journal
    from agent_core.journal.store import TailedJournal as TailedJournal
    from agent_core.models.client import Completion as Completion
    from agent_core.models.client import Delta as Delta
    from agent_core.models.client import ModelClient as ModelClient
    from agent_core.models.client import ModelError as ModelError
    from agent_core.models.client import ModelInfo as ModelInfo
    from agent_core.models.client import Question as Question
    from agent_core.models.providers import create_model as create_model
    from agent_core.models.scripted import ScriptedModel as ScriptedModel
    from agent_core.outputs import FinishReason as FinishReason
    from agent_core.outputs import JournalEnd as JournalEnd
    from agent_core.outputs import PolicyDecision as PolicyDecision
    from agent_core.outputs import RunError as RunError
    from agent_core.outputs import RunUsage as RunUsage
    from agent_core.outputs import TraceAction as TraceAction
    from agent_core.outputs import TraceStep as TraceStep
    from agent_core.outputs import UsedTool as UsedTool
    from agent_core.outputs import WaitingCall as WaitingCall
    from agent_core.protocol.errors import ProtocolError as ProtocolError
    from agent_core.protocol.parse import Action as Action
    from agent_core.protocol.parse import Final as Final
    from agent_core.protocol.parse import Plan as Plan
    from agent_core.protocol.parse import PlanStep as PlanStep
    from agent_core.protocol.parse import parse as parse
    from agent_core.protocol.step_schema import step_schema as step_schema
    from agent_core.run.agent_output import AgentOutput as AgentOutput
    from agent_core.run.agent_stream import stream_agent as stream_agent
    from agent_core.run.agent_tool import agent_tool as agent_tool
    from agent_core.run.events import Event as Event
    from agent_core.run.events import StreamResult as StreamResult
    from agent_core.run.node import run_agent as run_agent
    from agent_core.run.node import run_agent_sync as run_agent_sync
    from agent_core.run.row_listener import ActListener as ActListener
    from agent_core.run.row_listener import Observe as Observe
    from agent_core.run.secrets import Secrets as Secrets
    from agent_core.statuses import RunStatus as RunStatus
    from utools.problems import DefinitionErrors as DefinitionErrors

HOMES = {
    "agent_core.audit.repeats": "MadeWrite",
    "agent_core.audit.replay": "Replay replay",
    "agent_core.audit.verify": "Verification verify",
    "agent_core.config": "AgentConfig AllowedTool AnyOf Document Example ExampleCall PlanConfig",
    "agent_core.decisions": "Approve Deny Done Edit Fail Retry Skip",
    "agent_core.errors": (
        "Abandoned AgentCoreError AnswerError Damaged DecisionError DecisionTaken DefinitionError Divergence "
        "JournalAway JournalError Lost NoEventLoop"
    ),
    "agent_core.journal.control": "Decisions",
    "agent_core.journal.identity": "StoreIdentity",
    "agent_core.journal.jsonl": "JsonlJournal",
    "agent_core.journal.memory": "MemoryJournal",
    "agent_core.journal.record": "Row Tape",
    "agent_core.journal.signature": "Keys",
    "agent_core.journal.source": "Source",
    "agent_core.journal.sqlite": "SqliteJournal",
    "agent_core.journal.store": "Journal TailedJournal",
    "agent_core.models.client": "Completion Delta ModelClient ModelError ModelInfo Question",
    "agent_core.models.providers": "create_model",
    "agent_core.models.scripted": "ScriptedModel",
    "agent_core.outputs": (
        "FinishReason JournalEnd PolicyDecision RunError RunUsage TraceAction TraceStep UsedTool WaitingCall"
    ),
    "agent_core.protocol.errors": "ProtocolError",
    "agent_core.protocol.parse": "Action Final Plan PlanStep parse",
    "agent_core.protocol.step_schema": "step_schema",
    "agent_core.run.agent_output": "AgentOutput",
    "agent_core.run.agent_stream": "stream_agent",
    "agent_core.run.agent_tool": "agent_tool",
    "agent_core.run.events": "Event StreamResult",
    "agent_core.run.node": "run_agent run_agent_sync",
    "agent_core.run.row_listener": "ActListener Observe",
    "agent_core.run.secrets": "Secrets",
    "agent_core.statuses": "RunStatus",
    "utools.problems": "DefinitionErrors",
}
"""The public names by their modules; each is imported when it is first used: `import agent_core` loads no pydantic."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
