"""The tools that an MCP server offers, as definitions without its secrets."""

import logging
from typing import TYPE_CHECKING, Any

from utools.errors import ToolError
from utools.secrets.redaction import Redactor
from utools.sources.tool_lock_file import Definition

if TYPE_CHECKING:
    from mcp.client import Client

PAGES = 100
TOOLS = 5000


async def list_definitions(client: "Client", name: str, redactor: Redactor) -> dict[str, Definition]:
    """The tools that the server offers now, by name. ToolError for one that offers too many.

    A tool whose name holds a secret is left out, since it can only be called by that name.
    """
    found = {each.name: each for each in map(_define, await _list_tools(client))}
    definitions: dict[str, Definition] = {}
    for each in found.values():
        if (clean := redactor.text(each.name)) == each.name:
            definitions[each.name] = Definition(**redactor.value(each.model_dump()))
        else:
            text = "the tool %s of the MCP server %s is left out: its name holds a secret"
            logging.getLogger(__name__).warning(text, clean, name)
    return definitions


async def _list_tools(client: "Client") -> list[Any]:
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND

    found: list[Any] = []
    cursor = None
    try:
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            if len(found) > TOOLS:
                raise ToolError("it offers more than {most} tools", most=TOOLS)
            cursor = page.next_cursor
            if cursor is None:
                break
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:  # a server may have prompts and resources only
            raise
    return found


def _define(tool: Any) -> Definition:
    hints = tool.annotations
    return Definition(
        name=tool.name,
        description=tool.description or tool.title or tool.name,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        read_only=bool(hints and hints.read_only_hint),
        idempotent=bool(hints and hints.idempotent_hint),
    )
