"""Refusal: why a request is refused, and how it is written as a problem detail (RFC 9457)."""

from dataclasses import dataclass
from typing import Final

import orjson
from fastapi import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from engine_shim.api.answers import MANNERS

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 2


class FieldFault(BaseModel):
    """What is wrong with one field: its place, as in `body/external/order`, and why."""

    where: str
    message: str


class Problem(BaseModel):
    """Why a request was refused. `kind` is for programs, `errors` are the fields at fault."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    kind: str
    errors: list[FieldFault] = []


TITLES: Final = {
    400: "Bad request",
    401: "Caller not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Request too slow",
    409: "In conflict with the current state",
    410: "Gone",
    413: "Request too large",
    415: "Media type not supported",
    422: "Cannot be processed",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A problem before it is written."""

    status: int
    kind: str
    detail: str
    errors: tuple[tuple[str, str], ...] = ()

    def response(self) -> Response:
        """Return the problem as an answer."""
        body = Problem(
            title=TITLES.get(self.status, "Refused"),
            status=self.status,
            detail=_as_text(self.detail),
            kind=self.kind,
            errors=[FieldFault(where=_as_text(where), message=_as_text(message)) for where, message in self.errors],
        )
        return Response(orjson.dumps(body.model_dump()), self.status, self.headers(), MEDIA_TYPE)

    def headers(self) -> dict[str, str]:
        """Return the headers that its status asks for."""
        if self.status in (429, 503):
            return {**MANNERS, "Retry-After": str(RETRY_AFTER_S)}
        return {**MANNERS, "WWW-Authenticate": "Bearer"} if self.status == 401 else {**MANNERS}


class Refused(HTTPException):
    """A refusal from within the reading of a request."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.status, refusal.detail)
        self.refusal = refusal


def _as_text(text: str) -> str:
    """Return a text that UTF-8 can write, whatever came in."""
    return text.encode("utf-8", "backslashreplace").decode()
