"""Problem details (RFC 9457) for whatever a request can run into, and the route class that gives them."""

import logging
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from agent_core.agents.errors import AgentNotFound
from agent_core.errors import Damaged, DecisionError, DecisionTaken, DefinitionError, Divergence, JournalError
from engine_shim.api.answers import MANNERS
from engine_shim.errors import EngineAway, RunBusy, RunNotFound, WritesRepeated
from engine_shim.service.completions import ModelNotFound, NotAnswered
from engine_shim.service.conversations import ConversationNotFound
from engine_shim.service.driven_runs import ServerEnds
from engine_shim.service.run_service import KeyReused
from engine_shim.service.shares import OverShare, TooManyRuns
from engine_shim.service.tool_review import ChangedMeanwhile, HostOnly
from engine_shim.service.triggers import NotSigned
from engine_shim.service.workflow_files import EditedMeanwhile, NotWritable, SharedDirectory, VersionExists
from engine_shim.service.workflows import WorkflowNotFound
from utools.errors import ToolError, UnknownTool
from utools.problems import problems_in
from utools.schema.faults import hint
from utools.schema.model_faults import keys_of, word_fault
from utools.words.text import error_words

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 2
STORE: Final = "store"
log = logging.getLogger("engine_shim.api")
NOT_FOUND = (
    *(RunNotFound, WorkflowNotFound, AgentNotFound, ConversationNotFound),
    *(UnknownTool, ModelNotFound),
)
KINDS: Final[tuple[tuple[tuple[type[Exception], ...], int, str], ...]] = (
    (NOT_FOUND, 404, "not_found"),
    ((NotSigned,), 401, "not_signed"),
    ((TooManyRuns,), 429, "too_many_runs"),
    ((OverShare,), 429, "over_share"),
    ((ServerEnds,), 503, "server_ends"),
    ((EngineAway,), 503, "engine_away"),
    ((KeyReused,), 422, "key_reused"),
    ((WritesRepeated,), 409, "writes_repeated"),
    ((RunBusy,), 409, "run_busy"),
    ((VersionExists,), 409, "version_exists"),
    ((EditedMeanwhile,), 409, "edited_meanwhile"),
    ((ChangedMeanwhile,), 409, "changed_meanwhile"),
    ((SharedDirectory,), 403, "shared"),
    ((HostOnly,), 403, "host_only"),
    ((DecisionTaken,), 409, "already_decided"),
    ((DecisionError,), 409, "decision"),
    ((Damaged, Divergence), 409, "damaged"),
    ((DefinitionError,), 422, "invalid"),
    ((JournalError, ToolError, NotWritable), 503, STORE),
)
"""The status and the kind of each error, the first that fits."""


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
    413: "Request too large",
    415: "Media type not supported",
    422: "Cannot be processed",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
}
COMMON: Final = (400, 401, 403, 405, 408, 413, 422, 429, 503)
"""What any route may answer beside its own."""


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems of a route for its documentation, those of every route included."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": TITLES[status], "content": content} for status in sorted({*COMMON, *statuses})}


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


def refusal_of(error: Exception, model: type[BaseModel] | None = None) -> Refusal:
    """Return why a request was refused, by the error that it ran into; `model` is that of the route's body."""
    if isinstance(error, Refused):
        return error.refusal
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, "http", str(error.detail))
    if isinstance(error, RequestValidationError):
        faults = tuple(_faults_of(error, model))
        return Refusal(422, "invalid", "; ".join(f"{where}: {message}" for where, message in faults), faults)
    for types, status, kind in KINDS:
        if isinstance(error, types):
            return Refusal(status, kind, _detail(error), _places(error)) if kind != STORE else _refuse_store(error)
    if isinstance(error, NotAnswered):
        return Refusal(422, error.kind, str(error))
    log.exception("a request failed by a mistake in this program", exc_info=error)
    return Refusal(500, "internal", "a mistake in the server; its log says more")


class ProblemRoute(APIRoute):
    """A route whose errors become problem details, in whatever program it is mounted."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_problems(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                return refusal_of(error, _body_model(self)).response()

        return handle_with_problems


def _refuse_store(error: Exception) -> Refusal:
    """Return a store that cannot be used: where its file is, the log alone says."""
    log.error("a request met a store that cannot be used: %s", error)
    return Refusal(503, STORE, "the server cannot use its store now; its log says why")


def _body_model(route: APIRoute) -> type[BaseModel] | None:
    model = None if route.body_field is None else route.body_field.field_info.annotation
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _detail(error: Exception) -> str:
    return "; ".join(map(str, problems_in(error))) if isinstance(error, DefinitionError) else error_words(error)


def _places(error: Exception) -> tuple[tuple[str, str], ...]:
    if not isinstance(error, DefinitionError):
        return ()
    return tuple((each.where, each.message) for each in problems_in(error))


def _faults_of(error: RequestValidationError, model: type[BaseModel] | None) -> Iterator[tuple[str, str]]:
    for fault in error.errors():
        place, *keys = fault["loc"]
        if fault["type"] == "json_invalid":
            yield place, f"is no JSON: {fault['ctx']['error']} at character {keys[0]}"
        elif fault["type"] == "model_attributes_type":
            yield place, "must be a JSON object, sent with `Content-Type: application/json`"
        elif fault["type"] == "extra_forbidden" and model is not None:
            yield "/".join(map(str, fault["loc"])), f"unknown key; {hint(str(keys[-1]), keys_of(model)(tuple(keys)))}"
        else:
            yield "/".join(map(str, fault["loc"])), word_fault(fault)


def _as_text(text: str) -> str:
    """Return a text that UTF-8 can write, whatever came in."""
    return text.encode("utf-8", "backslashreplace").decode()
