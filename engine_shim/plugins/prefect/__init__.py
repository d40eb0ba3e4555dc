"""The node as a task of Prefect."""

from engine_shim.plugins.decided import AgentRunFailed
from engine_shim.plugins.prefect.ask import AgentDecisions, ask_agent
from engine_shim.plugins.prefect.blocks import AgentModel, AgentStore
from engine_shim.plugins.prefect.task import make_agent_task

__all__ = ["AgentDecisions", "AgentModel", "AgentRunFailed", "AgentStore", "ask_agent", "make_agent_task"]
