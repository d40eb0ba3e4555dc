"""read_document(): what a resource or a prompt of an MCP server says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from utools.errors import ToolError

if TYPE_CHECKING:
    from mcp.client import Client


async def read_document(client: "Client", document: Mapping[str, Any]) -> str:
    """Return the text of a resource, {uri}, or of a prompt, {name, arguments?}. ToolError for one that is no text."""
    if document.get("uri") is not None:
        read = await client.read_resource(document["uri"], cache_mode="bypass")
        texts = [getattr(each, "text", None) for each in read.contents]
    else:
        prompt = await client.get_prompt(document["name"], document.get("arguments") or None)
        texts = [getattr(each.content, "text", None) for each in prompt.messages]
    if not texts or None in texts:
        raise ToolError("it holds something that is no text")
    return "\n\n".join(text for text in texts if text is not None)
