"""The node as a task of Celery."""

from engine_shim.plugins.celery.task import AgentRunFailed, decide, make_agent_task

__all__ = ["AgentRunFailed", "decide", "make_agent_task"]
