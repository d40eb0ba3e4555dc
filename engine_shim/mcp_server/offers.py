"""The tools that a tenant offers: each workflow of its catalogue in its newest version, and each agent."""

from typing import Any, Final

from mcp_types import Tool

from agent_core.outputs import Json
from agent_core.statuses import STATUSES
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.mcp_server.names import Target, tool_name
from engine_shim.service.tenants import Tenant

_WAITING: Final[Json] = {
    "type": "array",
    "items": {"type": "object"},
    "description": "The calls that a person has to decide on, each by its strand and n",
}
_ERROR: Final[Json] = {"type": ["object", "null"], "description": "Why there is no result: kind and message"}
RUN_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "status": {"type": "string", "enum": list(STATUSES)},
        "outputs": {"type": "object"},
        "path": {"type": "array", "items": {"type": "string"}},
        "waiting": _WAITING,
        "error": _ERROR,
    },
    "required": ["run_id", "status", "outputs", "error"],
}
REPLY_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "response": {"type": "string"},
        "conversation_id": {"type": "string", "description": "Give it with the next message to go on"},
        "trace_id": {"type": ["string", "null"], "description": "The id of the turn's run"},
        "finish_reason": {"type": "string"},
        "tool_calls": {"type": "array", "items": {"type": "object"}},
        "meta": {"type": "object"},
        "waiting": _WAITING,
        "error": _ERROR,
    },
    "required": ["success", "response", "conversation_id", "trace_id", "finish_reason"],
}
MESSAGE_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "maxLength": 1_000_000, "description": "What the agent is to do"},
        "conversation_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "The conversation to go on with; absent: a new one",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}


def find_target(tenant: Tenant, name: str) -> Target | None:
    """Return what a tool of a tenant stands for; None for a name that no tool has."""
    agents = tenant.conversations.describe_agents() if tenant.conversations else []
    targets = [Target("workflow", identity) for identity in tenant.workflows.list()]
    targets += [Target("agent", agent["name"]) for agent in agents]
    return next((each for each in targets if tool_name(each) == name), None)


def list_tools(tenant: Tenant) -> list[Tool]:
    """Return the tools of a tenant: workflows, then agents."""
    newest = [next(iter(versions.values())) for versions in tenant.workflows.list().values()]
    agents = tenant.conversations.describe_agents() if tenant.conversations else []
    return [*map(_workflow_tool, newest), *map(_agent_tool, agents)]


def _workflow_tool(workflow: CheckedWorkflow) -> Tool:
    definition = workflow.definition
    return Tool(
        name=tool_name(Target("workflow", definition.id)),
        title=definition.name or definition.id,
        description=definition.description or f"Run the workflow {definition.id}.",
        input_schema=_object_schema(definition.inputs),
        output_schema=RUN_SCHEMA,
    )


def _agent_tool(agent: dict[str, Any]) -> Tool:
    return Tool(
        name=tool_name(Target("agent", agent["name"])),
        title=agent["name"],
        description=agent["description"] or f"Ask the agent {agent['name']}.",
        input_schema=MESSAGE_SCHEMA,
        output_schema=REPLY_SCHEMA,
    )


def _object_schema(inputs: Json | None) -> Json:
    """Return the inputs of a definition as MCP wants them: an object, whatever else they say. OpenAI's models take none
    without `properties`, and their clients refuse all tools then."""
    return {"properties": {}, **(inputs or {}), "type": "object"}
