"""Routes for decision links: makes one, shows the call that it is about, and decides. To look at a link never decides:
mail scanners and previews of chats open every link."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Header, Path, Request, Response
from pydantic import ValidationError

from agent_core.errors import DecisionError
from agent_core.outputs import WaitingCall
from engine_shim.api.access import Access, Caller
from engine_shim.api.answers import write_json
from engine_shim.api.link_models import Decided, LinkDecision, LinkedCall, LinkRequest
from engine_shim.api.problems import open_router, refusal_of, responses
from engine_shim.api.refusal import Refusal, Refused
from engine_shim.api.run_models import DecisionLink, RecordRef
from engine_shim.service.decision_links import DecisionLinks, LinkUnknown
from engine_shim.service.link_token import LinkGrant, name_token
from engine_shim.service.linked_calls import decide_linked_call, find_linked_call, find_open_calls, list_decisions
from engine_shim.service.tenants import Tenant

NO_REFERRER: Final = {"Referrer-Policy": "no-referrer"}
NO_LINKS: Final = (
    "this host makes no links: `decision_links` of its configuration names the URL by which people reach it"
)
FORM: Final = ("decision", "message")
"""The fields of the page's form."""
ANYONE: Final[dict[str, Any]] = {"security": []}
Shown = LinkedCall | Decided | Refusal
WritePage = Callable[[Shown, str, str], Response]
"""Writes what a link shows as a page, by its token, in the language of an Accept-Language header."""
Token = Annotated[str, Path(description="The last part of a decision link.")]


def decision_routes(access: Access, write_page: WritePage | None = None) -> APIRouter:
    """Return the routes for decision links. A link shows no token of a caller: its own says what it allows. Browsers
    get pages, where there is one to `write_page`."""
    router = open_router("links")
    decide, reader = access.needs("decide"), _LinkReader(access)
    anybody: dict[str, Any] = {"openapi_extra": ANYONE, "dependencies": [access.anybody]}

    @router.post("/runs/{run_id}/links", response_model=DecisionLink, status_code=201, responses=responses(404, 409))
    async def make_link(run_id: str, body: LinkRequest, caller: Caller = decide) -> Response:
        """Make a link by which whoever gets it can decide about one waiting call of a run, once."""
        links, runs = require_links(access), caller.tenant.runs
        await runs.check_exists(run_id)
        _, waiting = await find_open_calls(runs, run_id)
        call = choose_call(run_id, waiting, body.at)
        seconds = min(body.expires_in or links.lifetime, links.lifetime)
        expires = int(caller.tenant.store.clock.read()) + seconds
        place = (run_id, call["strand"], call["n"])
        grant = LinkGrant(*place, expires, caller.name, caller.tenant.name, body.person or "")
        return write_json(links.write(grant), 201)

    @router.get("/decide/{token}", response_model=LinkedCall, responses=responses(404, 409, 410), **anybody)
    async def show_link(
        token: Token, accept: Annotated[str, Header()] = "", accept_language: Annotated[str, Header()] = ""
    ) -> Response:
        """Show the call that a link is about; a browser gets a page with buttons. It decides nothing."""
        if write_page is None or "text/html" not in accept:
            return write_json((await reader.show(token)).model_dump(), headers=NO_REFERRER)
        return write_page(await _told(reader.show(token)), token, accept_language)

    @router.post("/decide/{token}", response_model=Decided, responses=responses(404, 409, 410), **anybody)
    async def decide_by_link(token: Token, body: LinkDecision) -> Response:
        """Decide about the call that a link is about; its run continues. The records say by which link."""
        return write_json((await reader.decide(token, body)).model_dump(), headers=NO_REFERRER)

    if write_page is not None:

        @router.post("/decide/{token}/form", include_in_schema=False)
        async def decide_by_form(
            request: Request, token: str, accept_language: Annotated[str, Header()] = ""
        ) -> Response:
            return write_page(await _told(reader.decide_by_form(token, request)), token, accept_language)

    return router


def require_links(access: Access) -> DecisionLinks:
    """Return what makes links. Refused on a host that makes none."""
    links = access.service.tenants.links
    if links is None:
        raise Refused(Refusal(409, "no_links", NO_LINKS))
    return links


def choose_call(run: str, waiting: list[WaitingCall], at: RecordRef | None) -> WaitingCall:
    """Return the waiting call at a place, or the only one. DecisionError where none waits there, or several do."""
    if at is not None:
        found = [call for call in waiting if (call["strand"], call["n"]) == at.place]
        if not found:
            raise DecisionError(f"no call waits at {at.strand}:{at.n} of run {run!r}", where="at")
        return found[0]
    if not waiting:
        raise DecisionError(f"no call waits in run {run!r}")
    if len(waiting) > 1:
        raise DecisionError(f"{len(waiting)} calls wait in run {run!r}; say which one by `at`", where="at")
    return waiting[0]


class _LinkReader:
    """Finds the calls of links, whatever tenant they are of."""

    def __init__(self, access: Access) -> None:
        self._service = access.service

    async def show(self, token: str) -> LinkedCall:
        grant, tenant = self._read(token)
        with self._service.shares.requests.take(grant.tenant, name_token(token)):
            call = await find_linked_call(tenant.runs, grant)
        return LinkedCall(
            tool=call["tool"],
            args=call["args"],
            reason=call["reason"],
            message=call.get("message"),
            decisions=list(list_decisions(call)),
            expires_at=datetime.fromtimestamp(grant.expires, UTC).isoformat(),
        )

    async def decide(self, token: str, body: LinkDecision) -> Decided:
        grant, tenant = self._read(token)
        identity = name_token(token)
        with self._service.shares.requests.take(grant.tenant, identity):
            call = await find_linked_call(tenant.runs, grant)
            if body.decision not in (allowed := list_decisions(call)):
                raise DecisionError(f"this link takes {', '.join(allowed)}, not {body.decision}", where="decision")
            person = f" for {grant.person}" if grant.person else ""
            by = f"link:{identity}{person} (made by {grant.by})"
            await decide_linked_call(tenant.runs, grant, body.read(), by=by)
        return Decided(decision=body.decision)

    async def decide_by_form(self, token: str, request: Request) -> Decided:
        """Decide as the form of the page says; whoever has no link is refused before it is read."""
        self._read(token)
        try:
            decision = _read_form(await request.body())
        except (ValidationError, ValueError):
            raise Refused(Refusal(422, "invalid", "the form of this page was sent with other fields")) from None
        return await self.decide(token, decision)

    def _read(self, token: str) -> tuple[LinkGrant, Tenant]:
        links, tenants = self._service.tenants.links, self._service.tenants
        if links is None:
            raise LinkUnknown
        grant = links.read(token, list(tenants))
        return grant, tenants[grant.tenant]


def _read_form(body: bytes) -> LinkDecision:
    """Return the decision in a form. ValueError, or ValidationError, for what the page's own form cannot have sent."""
    fields = dict(pairs := parse_qsl(body.decode(), max_num_fields=len(FORM)))
    if len(fields) < len(pairs):
        raise ValueError("a field is given twice")
    sent = {name: fields[name] for name in FORM if name in fields}
    if sent.get("decision") != "deny":
        sent.pop("message", None)
    return LinkDecision.model_validate(sent)


async def _told(shown: Awaitable[LinkedCall | Decided]) -> Shown:
    """Return what a link shows, or why it shows nothing."""
    try:
        return await shown
    except Exception as error:  # as the route class does for programs
        return refusal_of(error)
