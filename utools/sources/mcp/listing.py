"""The tools that an MCP server offers, as definitions without its secrets."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from utools.errors import DefinitionError, ToolError
from utools.secrets.redaction import Redactor
from utools.sources.mcp.raw_results import unwrap_result
from utools.sources.tool_lock_file import Definition

if TYPE_CHECKING:
    from mcp.client import Client

TOOLS = 5000
LONGEST_DESCRIPTION = 2**16
"""Characters of a description that are kept; the rest is cut, and what models read of it is shorter still."""
log = logging.getLogger(__name__)


async def list_definitions(client: "Client", name: str, redactor: Redactor) -> dict[str, Definition]:
    """Return the tools that the server offers now, by name. ToolError for one that offers too many.

    A tool that cannot be used has its `fault`. One without a name, of a name that another one has, or whose name holds
    a secret is left out, since it cannot be called.
    """
    definitions: dict[str, Definition] = {}
    for each in _define_all(await _list_tools(client), name):
        if (clean := redactor.text(each.name)) == each.name:
            definitions[each.name] = Definition(**redactor.value(each.model_dump()))
        else:
            log.warning("the tool %s of the MCP server %s is left out: its name holds a secret", clean, name)
    return definitions


async def _list_tools(client: "Client") -> list[tuple[Any, bool]]:
    """Return each tool as it was sent, and whether the library calls it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND

    found: list[tuple[Any, bool]] = []
    cursor, seen = None, set[str | None]()
    try:
        while cursor not in seen:  # a cursor that comes again leads to the same tools
            seen.add(cursor)
            page = await client.list_tools(cursor=cursor)
            known = {each.name for each in page.tools}
            raw = unwrap_result(page.meta)
            found += [(each, isinstance(each, dict) and each.get("name") in known) for each in raw or ()]
            if len(found) > TOOLS:
                raise ToolError("it offers more than {most} tools", most=TOOLS)
            cursor = page.next_cursor
            if cursor is None:
                break
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:  # a server may have prompts and resources only
            raise
    return found


def _define_all(tools: Sequence[tuple[Any, bool]], server: str) -> Iterator[Definition]:
    names: set[str] = set()
    for number, (tool, is_callable) in enumerate(tools, 1):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name.strip():
            log.warning("tool %d of the MCP server %s is left out: it has no name", number, server)
        elif name in names:
            log.warning("a tool of the MCP server %s is left out: another one is called %r too", server, name)
        else:
            names.add(name)
            yield define_tool(tool, is_callable=is_callable)


def define_tool(tool: dict[str, Any], *, is_callable: bool = True) -> Definition:
    """Return a tool as its server describes it, with what has one meaning alone taken as it is meant."""
    hints = tool.get("annotations")
    schema, output = tool.get("inputSchema"), tool.get("outputSchema")
    execution = tool.get("execution")
    fault = None if is_callable else "its schema has an x-mcp-header that the protocol does not allow"
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        fault = "it is called as a task only, and this host waits for answers"
    if schema is None or schema is True:
        schema = {"type": "object"}
    if not isinstance(schema, dict):
        fault, schema = str(DefinitionError("its inputSchema is no JSON object", value=schema)), {}
    texts = (tool.get(key) for key in ("description", "title"))
    said = next((each for each in texts if isinstance(each, str) and each.strip()), tool["name"])
    return Definition(
        name=tool["name"],
        description=said if len(said) <= LONGEST_DESCRIPTION else f"{said[:LONGEST_DESCRIPTION]}…",
        input_schema=schema,
        output_schema=output if isinstance(output, dict) else None,
        read_only=isinstance(hints, dict) and hints.get("readOnlyHint") is True,
        idempotent=isinstance(hints, dict) and hints.get("idempotentHint") is True,
        fault=fault,
    )
