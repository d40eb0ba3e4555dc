"""The tool `invoke_workflow`: another workflow, run in a child strand under the call or the node."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_shim.definition.errors import DefinitionErrors, message_of
from engine_shim.definition.model import INVOKE, Workflow, load_workflow
from utools.errors import DefinitionError, ToolError
from utools.tool import Args, Tool, ToolContext

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "workflow": {
            "type": "string",
            "pattern": r"\.(json|yaml|yml)$",
            "description": "The definition's file, relative to the definition that names it",
            "x-author": True,
        },
        "inputs": {"type": "object", "description": "What the workflow is started with", "additionalProperties": True},
    },
    "required": ["workflow"],
}


async def _execute(args: Args, context: ToolContext) -> Any:
    raise ToolError(f"{INVOKE} is run by a workflow engine, not by itself")


def invoke_tool() -> Tool:
    """The tool, for a registry. A model that calls it gives the inputs; which workflow it is, its author says."""
    message = "Run another workflow to its end, and give its outputs."
    return Tool(code=INVOKE, description=message, config_schema=SCHEMA, execute=_execute, effect="nested", foreign=True)


def invoked(config: Mapping[str, Any], base: Path) -> Workflow:
    """The workflow that a config names, its paths relative to `base`. DefinitionError when it cannot be read."""
    named = config["workflow"]
    try:
        return load_workflow(base / named)
    except DefinitionErrors:
        raise
    except DefinitionError as error:  # whoever reads this need not know where the host keeps its files
        where = error.where.replace(str(base / named), named)
        raise DefinitionError(message_of(error), where=where) from None
