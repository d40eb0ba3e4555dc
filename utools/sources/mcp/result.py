"""What an MCP server's answer is for us: JSON, without anybody's pictures in it. Pure."""

from typing import Any

from utools.tool import ToolResult

LONGEST = 2**20
"""Characters of one text that are kept."""


def result_of(answer: Any) -> ToolResult:
    """The structured content where there is some, else the blocks: one alone by itself, several as a list."""
    blocks = [block_of(each) for each in answer.content]
    if answer.is_error:
        texts = [each if isinstance(each, str) else str(each) for each in blocks]
        return ToolResult(False, error="\n".join(texts) or "the server says that it failed, and not why")
    if answer.structured_content is not None:
        return ToolResult(output=without_bytes(answer.structured_content))
    return ToolResult(output=blocks[0] if len(blocks) == 1 else blocks)


def block_of(block: Any) -> Any:
    """A text as it is; of an image, a sound and whatever is no text, what it is and its size in bytes."""
    match block.type:
        case "text":
            return _cut(block.text)
        case "image" | "audio":
            return {"type": block.type, "mime_type": block.mime_type, "bytes": _bytes_of(block.data)}
        case "resource_link":
            told = {"uri": str(block.uri), "name": block.name, "description": block.description}
            kind = {"mime_type": block.mime_type, "bytes": block.size}
            return {"type": "resource_link", **{name: each for name, each in (told | kind).items() if each is not None}}
        case "resource":
            return {"type": "resource", **_resource(block.resource)}
    return {"type": block.type}


def without_bytes(value: Any) -> Any:
    """Structured content, in which each piece of base64 is replaced by what it is and its size."""
    match value:
        case {"data": str(base64), "mimeType": str(kind)}:
            return {**value, "data": f"({_bytes_of(base64)} bytes of {kind})"}
        case {"blob": str(base64), "uri": str()}:
            return {**value, "blob": f"({_bytes_of(base64)} bytes)"}
        case dict():
            return {name: without_bytes(each) for name, each in value.items()}
        case list():
            return [without_bytes(each) for each in value]
    return value


def _resource(resource: Any) -> dict[str, Any]:
    told = {"uri": str(resource.uri)} | ({"mime_type": resource.mime_type} if resource.mime_type else {})
    text = getattr(resource, "text", None)
    return told | ({"text": _cut(text)} if text is not None else {"bytes": _bytes_of(resource.blob)})


def _bytes_of(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[cut: {len(text) - LONGEST} characters more]"
