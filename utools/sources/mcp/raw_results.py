"""Results that are kept from the library's models, and read by us as they were sent. Pure.

The library (mcp 2.3) makes a model of each result, and refuses a whole page of tools for one that is odd, or a whole
answer for one block that it does not know. It gets an envelope instead, with no more in it than it works with itself:
the names of the tools, and of their schemas the headers that an argument is repeated in. The rest is beside it.
"""

from collections.abc import Mapping
from typing import Any, Final

from utools.errors import DefinitionError
from utools.schema.older_drafts import read_arguments_schema

RAW: Final = "io.github.agent-core/raw"
"""The key of `_meta` under which a result is as it was sent."""
KEPT: Final = frozenset({"ttlMs", "cacheScope", "resultType"})

Json = Mapping[str, Any]


def wrap_result(method: str, result: Json) -> tuple[Json, str]:
    """Return the result of a request as the library gets it, and why it cannot be read, empty if it can."""
    if method == "tools/list":
        return _wrap_tools(result)
    if method == "tools/call" and result.get("resultType", "complete") == "complete":
        kept = {key: each for key, each in result.items() if key in KEPT}
        return {**kept, "content": [], "isError": result.get("isError") is True, "_meta": {RAW: dict(result)}}, ""
    return result, ""


def unwrap_result(meta: Any) -> Any:
    """Return what was sent, by the `_meta` of the library's model; None where nothing was kept from it."""
    return meta.get(RAW) if isinstance(meta, dict) else None


def _wrap_tools(result: Json) -> tuple[Json, str]:
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result, "it is no list of tools"
    kept = {key: each for key, each in result.items() if key in KEPT}
    cursor = result.get("nextCursor")
    following = {"nextCursor": cursor} if isinstance(cursor, str) and cursor else {}
    shown = [shown for each in tools if (shown := _show_tool(each)) is not None]
    return {**kept, **following, "tools": shown, "_meta": {RAW: tools}}, ""


def _show_tool(tool: Any) -> Json | None:
    """Return what the library has to know of a tool; None for one that cannot be called by its name."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    try:
        schema, _ = read_arguments_schema(tool.get("inputSchema"))
    except DefinitionError:
        schema = {}
    written = schema.get("properties")
    properties = written if isinstance(written, dict) else {}
    shown = {name: each for name, each in properties.items() if isinstance(each, dict | bool)}
    return {"name": tool["name"], "inputSchema": {"type": "object", "properties": shown}}
