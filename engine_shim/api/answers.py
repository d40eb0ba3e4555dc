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
    """Return the content of server-sent events for the OpenAPI document. `data` is the schema of each event's JSON."""
    text: dict[str, Any] = {"type": "string"}
    if data is not None:
        text |= {"contentMediaType": "application/json", "contentSchema": dict(data)}
    keys = {"id": {"type": "string"}, "event": {"type": "string"}, "data": text}
    return {"text/event-stream": {"itemSchema": {"type": "object", "properties": keys, "required": ["data"]}}}
