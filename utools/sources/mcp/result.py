"""What an MCP server's answer becomes: JSON, without the bytes of pictures and sounds. Pure.

The answer is read as it was sent: a block that the protocol does not know, or that breaks it, takes no other with it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from utools.errors import ResultError
from utools.schema.compiled import compile_schema
from utools.schema.faults import Fault
from utools.schema.json_value import NotJson, as_json
from utools.tool import ToolResult
from utools.words.text import Text

LONGEST: Final = 2**20
"""Characters of one text."""
BESIDE: Final = "_content"
"""The key under which structured content is given what the blocks beside it say, if that is more."""
FAULTS: Final = 5
KNOWN: Final = frozenset({"content", "structuredContent", "isError", "_meta", "resultType", "ttlMs", "cacheScope"})
"""Keys of an answer that has nothing else; the others, such as a `task`, are what one without contents says."""

Schema = dict[str, Any]


def read_result(answer: Mapping[str, Any], output_schema: Schema | None = None) -> ToolResult:
    """Return the structured content where there is some, else the blocks: one alone by itself, several as a list.

    ResultError, with what the server says beside it, for structured content that breaks the tool's output schema.
    """
    listed = answer.get("content")
    blocks = [read_block(each) for each in (listed if isinstance(listed, list) else [] if listed is None else [listed])]
    structured = answer.get("structuredContent")
    if answer.get("isError") is True:
        return ToolResult(False, error=_explain_failure(blocks, structured))
    if output_schema is None and not _is_json(structured):  # NaN, a huge integer: as it was sent
        structured, blocks = None, [*blocks, _cut(_to_json(structured))]
    if structured is None and output_schema is not None:
        structured = _find_structured(blocks, output_schema)
    if structured is None:
        said = {} if blocks else {key: each for key, each in answer.items() if key not in KNOWN}
        return ToolResult(output=replace_bytes(said) or (blocks[0] if len(blocks) == 1 else blocks))
    _check_output(structured, output_schema, blocks)
    return _join(replace_bytes(structured), [each for each in blocks if not _repeats(each, structured)], output_schema)


def read_block(block: Any) -> Any:
    """Return a text as it is; of an image, a sound and whatever is no text, what it is and its size in bytes."""
    match block:
        case {"type": "text", "text": str(text)}:
            return _cut(text)
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return {"type": kind, "mime_type": block.get("mimeType"), "bytes": _size(data)}
        case {"type": "resource_link", "uri": str(uri)}:
            names = {"name": "name", "description": "description", "mimeType": "mime_type", "size": "bytes"}
            found = {own: block[name] for name, own in names.items() if block.get(name) is not None}
            return {"type": "resource_link", "uri": uri, **found}
        case {"type": "resource", "resource": {"uri": str()} as resource}:
            return {"type": "resource", **_read_resource(resource)}
        case _:
            return _cut_value(replace_bytes(block))


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
        case _:
            return value


def _explain_failure(blocks: Sequence[Any], structured: Any) -> str:
    """Return what the server says of a failure: its texts, and what it says beside them."""
    said = [each if isinstance(each, str) else _to_json(each) for each in blocks]
    if structured is not None and not any(_parse(each) == structured for each in said):
        said.append(_to_json(replace_bytes(structured)))
    return _cut("\n".join(said)) or Text("the server says that it failed, and not why")


def _find_structured(blocks: Sequence[Any], schema: Schema) -> Any:
    """Return the structured content that a server of before 2025 writes as its only text. ResultError if there is
    none."""
    (only,) = blocks if len(blocks) == 1 else (None,)
    found = _parse(only) if isinstance(only, str) else None
    if found is None or _faults(found, schema):
        raise ResultError(
            "its tool has an output schema, and the answer holds no structured content that fits it{beside}",
            beside=_beside(blocks),
        )
    return found


def _check_output(structured: Any, schema: Schema | None, blocks: Sequence[Any]) -> None:
    if schema is None or not (faults := _faults(structured, schema)):
        return
    listed = " ".join(each.message for each in faults[:FAULTS])
    raise ResultError(
        "its structured content breaks the tool's output schema: {faults} It is {structured}{beside}",
        faults=listed,
        structured=_cut(_to_json(replace_bytes(structured))),
        beside=_beside([each for each in blocks if not _repeats(each, structured)]),
    )


def _beside(blocks: Sequence[Any]) -> str:
    if not blocks:
        return ""
    return Text(
        "; it says: {text}", text="\n".join(each if isinstance(each, str) else _to_json(each) for each in blocks)
    )


def _join(structured: Any, more: list[Any], schema: Schema | None) -> ToolResult:
    """Structured content with what is said beside it; in the metadata where the content can have no other key."""
    if not more:
        return ToolResult(output=structured)
    if isinstance(structured, dict) and BESIDE not in structured:
        joined = {**structured, BESIDE: more}
        if schema is None or not _faults(joined, schema):
            return ToolResult(output=joined)
    return ToolResult(output=structured, metadata={BESIDE.strip("_"): more})


def _repeats(block: Any, structured: Any) -> bool:
    """Return whether a block says nothing that the structured content, or a part of it, does not say."""
    if not isinstance(block, str):
        return False
    if not (text := block.strip()):
        return True
    parsed = _parse(text)
    return any(
        part == parsed or (isinstance(part, str) and part.strip() == text) or str(part) == text
        for part in _parts(structured)
        if parsed is not None or not isinstance(part, dict | list)
    )


def _parts(value: Any) -> Iterator[Any]:
    todo = [value]
    while todo:
        part = todo.pop()
        yield part
        todo += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def _faults(value: Any, schema: Schema) -> list[Fault]:
    return compile_schema(schema).faults(value)


def _parse(text: str) -> Any:
    """Return the JSON value that a text is; None for any other text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_json(value: Any) -> bool:
    try:
        as_json(value)
    except NotJson:
        return False
    return True


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_resource(resource: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"uri": resource["uri"]} | ({"mime_type": resource["mimeType"]} if resource.get("mimeType") else {})
    text, blob = resource.get("text"), resource.get("blob")
    if isinstance(text, str):
        return {**fields, "text": _cut(text)}
    return {**fields, "bytes": _size(blob)} if isinstance(blob, str) else fields


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _cut_value(value: Any) -> Any:
    """Return a value as it is; one that is too long as the beginning of its JSON text."""
    text = _to_json(value)
    return value if len(text) <= LONGEST else _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[cut: {len(text) - LONGEST} characters more]"
