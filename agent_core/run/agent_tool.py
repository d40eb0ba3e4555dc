"""`agent_tool`: the tool `agent_core`, by which a workflow's node, or another agent, runs an agent."""

from collections.abc import Iterable
from functools import cache

from pydantic import BaseModel

from agent_core.config import AgentConfig
from agent_core.models.client import ModelClient
from agent_core.outputs import Json
from agent_core.run.agent_drive import CODE
from agent_core.run.agent_output import OUTPUT
from agent_core.run.arguments import model_of
from agent_core.run.node import run_agent
from utools.registry import ToolRegistry
from utools.tool import Args, Tool, ToolContext, ToolResult
from utools.words.text import Text


def agent_tool(registry: ToolRegistry | Iterable[Tool], model: ModelClient | str | None = None) -> Tool:
    """Return the tool `agent_core`: as a workflow's node, or as another agent's tool, it is a run in a child strand.

    Its tools get the `deps` of the run that it is nested in.

    Args:
        registry: A registry, or tools, of which the config of each call names those that the agent may call.
        model: A client or `provider:name`, which answers every question; by default that of the config of each call.

    Example:
        ```python
        import asyncio

        from agent_core import agent_tool
        from agent_core.models import ScriptedModel
        from utools import ToolRegistry

        helper = agent_tool([], ScriptedModel(['{"type":"final","answer":"A spring in the desert."}']))
        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        result = asyncio.run(ToolRegistry([helper]).execute("agent_core", config))
        assert result.output["final_answer"] == "A spring in the desert."
        ```
    """
    registry, model = ToolRegistry.from_tools(registry), model_of(model)

    async def execute(args: Args, context: ToolContext) -> ToolResult:
        output = await run_agent(args, registry=registry, model=model, deps=context.deps)
        success = output.finish_reason == "final"
        error = None if success else Text("ended by {reason}", reason=output.finish_reason)
        return ToolResult(success, output.model_dump(), error)

    return Tool(
        code=CODE,
        description="Let an agent work on a task of its own with the tools it is allowed, and give its answer.",
        config_schema=_node_schema(),
        output_schema=OUTPUT,
        execute=execute,
        effect="nested",
        foreign=True,
    )


@cache
def _node_schema() -> Json:
    """Return the ConfigSchema: a model that calls an agent sends it a prompt; every other key is the author's."""
    for field in AgentConfig.model_fields.values():
        if isinstance(field.default, BaseModel):
            type(field.default).model_rebuild()  # pydantic 2.12 writes no default of a model that is not built yet
    schema = AgentConfig.model_json_schema()
    authored = {name: {**rule, "x-author": True} for name, rule in schema["properties"].items() if name != "prompt"}
    prompt = {**schema["properties"]["prompt"], "description": "The task."}
    told = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return {**told, "properties": {"prompt": prompt, **authored}}
