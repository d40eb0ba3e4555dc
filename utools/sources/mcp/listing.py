"""The tools that an MCP server says it has, as definitions without what nobody is to see."""

import logging
from typing import TYPE_CHECKING, Any

from utools.errors import ToolError
from utools.secrets.redaction import Redactor
from utools.sources.tool_lock_file import Definition

if TYPE_CHECKING:
    from mcp.client import Client

PAGES = 100
TOOLS = 5000


async def listed(client: "Client", name: str, clean: Redactor) -> dict[str, Definition]:
    """The tools that the server offers now, by name; ToolError for one that offers too many."""
    found = [_definition(each) for each in await _asked(client)]
    definitions = [_cleaned(each, clean) for each in found if not _tells(each, name, clean)]
    return {each.name: each for each in definitions}


async def _asked(client: "Client") -> list[Any]:
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND

    found: list[Any] = []
    cursor = None
    try:
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            if len(found) > TOOLS:
                raise ToolError(f"it offers more than {TOOLS} tools")
            cursor = page.next_cursor
            if cursor is None:
                break
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:  # a server may have prompts and resources only
            raise
    return found


def _definition(tool: Any) -> Definition:
    hints = tool.annotations
    return Definition(
        name=tool.name,
        description=tool.description or tool.title or tool.name,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        read_only=bool(hints and hints.read_only_hint),
        idempotent=bool(hints and hints.idempotent_hint),
    )


def _tells(definition: Definition, server: str, clean: Redactor) -> bool:
    """Whether the name itself tells a secret. It cannot be cleaned, since the tool is called by it."""
    name = clean.text(definition.name)
    if name != definition.name:
        told = "the tool %s of the MCP server %s is left out: its name holds a secret"
        logging.getLogger(__name__).warning(told, name, server)
    return name != definition.name


def _cleaned(definition: Definition, clean: Redactor) -> Definition:
    return Definition(**clean.value(definition.model_dump()))
