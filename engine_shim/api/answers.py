"""write_json(): what a route answers, written without another walk through it."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Response


def write_json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON. The route's model documents it; tests hold every answer against that."""
    return Response(orjson.dumps(data), status, headers, "application/json")
