"""The node as an op and as an asset of Dagster."""

from engine_shim.plugins.dagster.resource import AgentResource
from engine_shim.plugins.dagster.sensor import make_agent_sensor
from engine_shim.plugins.dagster.step import make_agent_asset, make_agent_op

__all__ = ["AgentResource", "make_agent_asset", "make_agent_op", "make_agent_sensor"]
