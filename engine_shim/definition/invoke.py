"""The tool `invoke_workflow`: another workflow, run in a child strand under the call or the node."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_shim.definition.errors import DefinitionErrors, Problem, message_of
from engine_shim.definition.load import UNBOUND, Bounds, Workflow, load_workflow
from engine_shim.definition.model import INVOKE
from utools.errors import DefinitionError, SandboxError, ToolError
from utools.files.held_path import hold_path
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
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "status": {"type": "string"},
        "outputs": {"type": "object"},
        "path": {"type": "array", "items": {"type": "string"}},
        "waiting": {"type": "array", "items": {"type": "object"}},
        "error": {"type": ["object", "null"]},
        "journal": {"type": "object"},
    },
    "additionalProperties": False,
}


async def _execute(args: Args, context: ToolContext) -> Any:
    raise ToolError(f"{INVOKE} is run by a workflow engine, not by itself")


def invoke_tool() -> Tool:
    """Return the tool, for a registry. A model that calls it gives the inputs; the author chooses the workflow."""
    description = "Run another workflow to its end, and give its outputs."
    return Tool(
        code=INVOKE,
        description=description,
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        execute=_execute,
        effect="nested",
        foreign=True,
    )


def load_invoked(config: Mapping[str, Any], base: Path, bounds: Bounds = UNBOUND) -> Workflow:
    """Return the workflow that a config names, its path relative to `base`; the bounds of who names it hold for it as
    well.

    DefinitionError when it cannot be read. One that came over HTTP is told nothing else of the file.
    """
    file = config["workflow"]
    path = named = base / file
    try:
        if bounds.within is not None:
            path = hold_path(named, bounds.within, bounds.without)
        found = load_workflow(path, base=named.parent, shown=file)
        if bounds.is_foreign(path):
            message = "this came over HTTP: it may not do what the host's own files may do until a person reviews it"
            raise DefinitionErrors([Problem(file, message)])
    except SandboxError:
        raise DefinitionError(f"{file!r} is not below the directory of the workflows", where=file) from None
    except DefinitionError as error:
        if bounds.from_http:
            raise DefinitionError("this is no workflow that can be invoked", where=file) from None
        if isinstance(error, DefinitionErrors):
            raise
        where = error.where.replace(str(path), file)  # the reader need not know where the host keeps its files
        raise DefinitionError(message_of(error), where=where) from None
    return replace(found, bounds=bounds)
