"""write_json(): what a route answers, written without another walk through it; and how streams are described."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from fastapi import Response

MANNERS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Headers of whatever is answered: no browser guesses what it is, and none keeps it."""


def write_json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON. The route's model documents it; tests hold every answer against that."""
    return Response(orjson.dumps(data), status, {**MANNERS, **(headers or {})}, "application/json")


def describe_events(data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of server-sent events for the OpenAPI document, which is a text to it. `data` is the schema of
    each event's JSON. OpenAPI 3.1 has no word for the events of a stream: `x-itemSchema` is the `itemSchema` of 3.2."""
    text: dict[str, Any] = {"type": "string"}
    if data is not None:
        text |= {"contentMediaType": "application/json", "contentSchema": _inline(data, data.get("$defs", {}))}
    keys = {"id": {"type": "string"}, "event": {"type": "string"}, "data": text}
    event = {"type": "object", "properties": keys, "required": ["data"]}
    return {"text/event-stream": {"schema": {"type": "string"}, "x-itemSchema": event}}


def _inline(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return a schema with its parts in place of references: within a document these would lead to the document's."""
    match schema:
        case {"$ref": str(place)}:
            return _inline(parts[place.rpartition("/")[2]], parts)
        case dict():
            return {key: _inline(value, parts) for key, value in schema.items() if key != "$defs"}
        case list():
            return [_inline(each, parts) for each in schema]
        case _:
            return schema
