"""The node as an activity in a program's own workflow on Temporal."""

from engine_shim.plugins.temporal.activity import AgentRequest, make_agent_activity

__all__ = ["AgentRequest", "make_agent_activity"]
