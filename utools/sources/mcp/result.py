"""What an MCP server's answer becomes: JSON, without the bytes of pictures and sounds. Pure."""

from typing import Any

from utools.tool import ToolResult
from utools.words.text import Text

LONGEST = 2**20
"""Characters of one text."""


def read_result(answer: Any) -> ToolResult:
    """The structured content where there is some, else the blocks: one alone by itself, several as a list."""
    blocks = [read_block(each) for each in answer.content]
    if answer.is_error:
        texts = [each if isinstance(each, str) else str(each) for each in blocks]
        return ToolResult(False, error="\n".join(texts) or Text("the server says that it failed, and not why"))
    if answer.structured_content is not None:
        return ToolResult(output=replace_bytes(answer.structured_content))
    return ToolResult(output=blocks[0] if len(blocks) == 1 else blocks)


def read_block(block: Any) -> Any:
    """A text as it is; of an image, a sound and whatever is no text, what it is and its size in bytes."""
    match block.type:
        case "text":
            return _cut(block.text)
        case "image" | "audio":
            return {"type": block.type, "mime_type": block.mime_type, "bytes": _size(block.data)}
        case "resource_link":
            fields = {
                "uri": str(block.uri),
                "name": block.name,
                "description": block.description,
                "mime_type": block.mime_type,
                "bytes": block.size,
            }
            return {"type": "resource_link", **{name: each for name, each in fields.items() if each is not None}}
        case "resource":
            return {"type": "resource", **_read_resource(block.resource)}
    return {"type": block.type}


def replace_bytes(value: Any) -> Any:
    """Structured content, in which each piece of base64 is replaced by what it is and its size."""
    match value:
        case {"data": str(base64), "mimeType": str(kind)}:
            return {**value, "data": f"({_size(base64)} bytes of {kind})"}
        case {"blob": str(base64), "uri": str()}:
            return {**value, "blob": f"({_size(base64)} bytes)"}
        case dict():
            return {name: replace_bytes(each) for name, each in value.items()}
        case list():
            return [replace_bytes(each) for each in value]
    return value


def _read_resource(resource: Any) -> dict[str, Any]:
    fields = {"uri": str(resource.uri)} | ({"mime_type": resource.mime_type} if resource.mime_type else {})
    text = getattr(resource, "text", None)
    return fields | ({"text": _cut(text)} if text is not None else {"bytes": _size(resource.blob)})


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[cut: {len(text) - LONGEST} characters more]"
