"""The node as a task of Celery."""

from engine_shim.plugins.celery.task import decide, make_agent_task
from engine_shim.plugins.decided import AgentRunFailed

__all__ = ["AgentRunFailed", "decide", "make_agent_task"]
