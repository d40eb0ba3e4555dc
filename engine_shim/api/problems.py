"""Problem details (RFC 9457) for whatever a request can run into, and the route class that gives them."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from agent_core.agents.errors import AgentNotFound
from agent_core.errors import (
    Damaged,
    DecisionError,
    DecisionTaken,
    DefinitionError,
    Divergence,
    JournalError,
    Newer,
    Unreadable,
)
from engine_shim.api.refusal import MEDIA_TYPE, TITLES, Problem, Refusal, Refused
from engine_shim.api.request_faults import RequestFields
from engine_shim.api.served_route import ServedRoute
from engine_shim.errors import EngineAway, RunBusy, RunNotFound, WritesRepeated
from engine_shim.service.completions import ModelNotFound, NotAnswered
from engine_shim.service.conversations import ConversationNotFound
from engine_shim.service.decision_links import LinkUnknown
from engine_shim.service.driven_runs import ServerEnds
from engine_shim.service.linked_calls import LinkExpired, LinkRunGone, LinkUsed
from engine_shim.service.run_service import KeyReused
from engine_shim.service.shares import OverShare, TooManyRuns
from engine_shim.service.tool_review import ChangedMeanwhile, HostOnly
from engine_shim.service.triggers import NotSigned
from engine_shim.service.workflow_files import EditedMeanwhile, NotWritable, SharedDirectory, VersionExists
from engine_shim.service.workflows import WorkflowNotFound
from utools.errors import ToolError, UnknownTool
from utools.problems import problems_in
from utools.words.text import error_words

STORE: Final = "store"
log = logging.getLogger("engine_shim.api")
NOT_FOUND = (
    *(RunNotFound, WorkflowNotFound, AgentNotFound, ConversationNotFound),
    *(UnknownTool, ModelNotFound, LinkUnknown),
)
KINDS: Final[tuple[tuple[tuple[type[Exception], ...], int, str], ...]] = (
    (NOT_FOUND, 404, "not_found"),
    ((NotSigned,), 401, "not_signed"),
    ((LinkExpired,), 410, "link_expired"),
    ((LinkUsed,), 410, "link_used"),
    ((LinkRunGone,), 410, "run_deleted"),
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
    ((Newer,), 503, "newer_version"),
    ((Unreadable,), 409, "unreadable"),
    ((Damaged, Divergence), 409, "damaged"),
    ((DefinitionError,), 422, "invalid"),
    ((JournalError, ToolError, NotWritable), 503, STORE),
)
"""The status and the kind of each error, the first that fits."""
FIELDS: Final[Mapping[type[Exception], str]] = {
    RunNotFound: "run_id",
    WorkflowNotFound: "name",
    AgentNotFound: "agent",
    ConversationNotFound: "conversation_id",
    UnknownTool: "code",
    ModelNotFound: "model",
    KeyReused: "idempotency-key",
    EditedMeanwhile: "expects",
    ChangedMeanwhile: "digest",
}
"""The field of a request that an error is about."""
NO_FIELDS: Final = RequestFields()
COMMON: Final = (400, 401, 403, 405, 408, 413, 422, 429, 503)
"""What any route may answer beside its own."""


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems of a route for its documentation, those of every route included."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": TITLES[status], "content": content} for status in sorted({*COMMON, *statuses})}


class NoContent(Response):
    """What a route answers that has no content but a problem."""

    media_type = MEDIA_TYPE


def define_problem(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return `responses` for a route of the class NoContent. One such route brings the model, to which those of all
    others refer, into the document of whatever program has the routes."""
    return {status: {**each, "model": Problem} for status, each in responses(*statuses).items()}


def refusal_of(error: Exception, fields: RequestFields = NO_FIELDS) -> Refusal:
    """Return why a request was refused, by the error that it ran into; `fields` are those of its route."""
    if isinstance(error, Refused):
        return error.refusal
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, "http", str(error.detail))
    if isinstance(error, RequestValidationError):
        return _refuse_fields(fields.find_faults(error))
    for types, status, kind in KINDS:
        if isinstance(error, types):
            return _refuse(error, status, kind, fields) if kind != STORE else _refuse_store(error)
    if isinstance(error, NotAnswered):
        return Refusal(400, error.kind, str(error))
    log.exception("a request failed by a mistake in this program", exc_info=error)
    return Refusal(500, "internal", "a mistake in the server; its log says more")


class ProblemRoute(ServedRoute):
    """A route whose errors become problem details."""

    def check(self, request: Request) -> None:
        if not self.fields.query or not request.scope["query_string"]:
            return
        given = request.query_params
        if unknown := given.keys() - self.fields.query:
            raise Refused(_refuse_fields(self.fields.explain_unknown(unknown)))
        if b"&" in request.scope["query_string"]:
            doubled = self.fields.explain_doubled(name for name, _ in given.multi_items())
            if doubled:
                raise Refused(_refuse_fields(doubled))

    def refuse(self, request: Request, error: Exception) -> Response:
        return refusal_of(error, self.fields).response()


def open_router(tag: str, *, route_class: type[ServedRoute] = ProblemRoute, prefix: str = "") -> APIRouter:
    """Return a router for the routes of one subject, which are complete without it."""
    return APIRouter(
        prefix=prefix, route_class=route_class, tags=[tag], generate_unique_id_function=lambda route: route.name
    )


def _refuse_fields(faults: Iterable[tuple[str, str]]) -> Refusal:
    """Return the refusal of a request whose fields are at fault."""
    found = tuple(faults)
    return Refusal(422, "invalid", "; ".join(f"{where}: {message}" for where, message in found), found)


def _refuse(error: Exception, status: int, kind: str, fields: RequestFields) -> Refusal:
    if isinstance(error, DefinitionError):
        problems = [fields.place_problem(each) for each in problems_in(error)]
        detail, faults = "; ".join(map(str, problems)), [(each.where, each.message) for each in problems]
        return Refusal(status, kind, detail, tuple(faults))
    detail = error_words(error)
    field = error.where if isinstance(error, DecisionError) else FIELDS.get(type(error), "")
    place = fields.find(field)
    return Refusal(status, kind, detail, ((place, detail),) if place else ())


def _refuse_store(error: Exception) -> Refusal:
    """Return a store that cannot be used: where its file is, the log alone says."""
    log.error("a request met a store that cannot be used: %s", error)
    return Refusal(503, STORE, "the server cannot use its store now; its log says why")
