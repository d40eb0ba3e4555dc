"""ServedRoute: a route that FastAPI describes, and that reads its requests itself.

To read one, FastAPI finds out anew what is known once the route is made: which parameters there are, and that a request
without any has the defaults. What it alone can do is left to it: dependencies that another program adds, and its spans.
"""

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from typing import Any, Final, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from fastapi import Request, Response
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from engine_shim.api.refusal import Refusal, Refused
from engine_shim.api.request_faults import RequestFields
from engine_shim.service.json_bodies import read_json

HELD: Final = "agent_core.held"
"""In the scope of a request: what is let go of once its answer is sent."""
TRACED: Final = "fastapi.telemetry"
"""In the scope of a request that FastAPI has spans for."""
NOTHING: Final = object()
"""In place of a body that is empty."""
_OWN_PATHS: Final = WeakKeyDictionary[Callable[..., Any], str]()
"""The path of each endpoint in its own router; an older FastAPI makes another route of one that it includes."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Fault = Mapping[str, Any]


class JsonRequest(Request):
    """A request whose body is read as RFC 8259 has it. What is no JSON is refused, with what is wrong with it."""

    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except ValueError as error:
            is_coded = self.headers.get("content-encoding", "identity") != "identity"
            hint = "; send it as it is, without Content-Encoding" if is_coded else ""
            fault = ("body", f"{error}{hint}")
            raise Refused(Refusal(422, "invalid", ": ".join(fault), (fault,))) from None


@runtime_checkable
class Admission(Protocol):
    """A dependency that needs nothing but the request."""

    async def admit(self, request: Request) -> Any:
        """Return who calls. Raises what refuses them."""
        ...


class ServedRoute(APIRoute):
    """A route whose errors become answers, in whatever program it is mounted, and that holds what its caller has taken
    until its answer is sent. `depth` are the parts of its path without a prefix of that program."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        needs = self.dependant.dependencies
        self._needs = [(each.name, found.admit) for each in needs if (found := _admission_of(each.call))]
        dependant = self.dependant
        self._path, self._query, self._header = map(
            _Parameters, (dependant.path_params, dependant.query_params, dependant.header_params)
        )
        self._by_fastapi = self.app
        self.depth = _OWN_PATHS.setdefault(self.endpoint, self.path).count("/")
        if len(self._needs) == len(needs):
            self.app = self._serve

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            scope[HELD] = held
            await super().handle(scope, receive, send)

    def get_route_handler(self) -> Handler:
        handle, self.fields = super().get_route_handler(), RequestFields.from_route(self)

        async def answer(request: Request) -> Response:
            return await self._answer(JsonRequest(request.scope, request.receive), handle)

        return answer

    def check(self, request: Request) -> None:
        """Raise what refuses a request before it is read."""

    @abstractmethod
    def refuse(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that ran into an error."""

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if TRACED in scope:
            await self._by_fastapi(scope, receive, send)
            return
        response = await self._answer(JsonRequest(scope, receive), self._call)
        await response(scope, receive, send)

    async def _answer(self, request: Request, handle: Handler) -> Response:
        try:
            self.check(request)
            return await handle(request)
        except Exception as error:
            return self.refuse(request, error)

    async def _call(self, request: Request) -> Response:
        """Return what the endpoint answers. RequestValidationError for a request that does not fit."""
        body = NOTHING if self.body_field is None else await _read_body(request)
        admitted = [(name, await admit(request)) for name, admit in self._needs]
        values: dict[str, Any] = {name: each for name, each in admitted if name is not None}
        faults: list[Fault] = []
        self._path.read(request.path_params, values, faults)
        self._query.read(request.query_params if request.scope["query_string"] else {}, values, faults)
        self._header.read(request.headers, values, faults)
        self._add_body(body, values, faults)
        if faults:
            raise RequestValidationError(faults, body=None if body is NOTHING else body)
        if self.dependant.request_param_name:
            values[self.dependant.request_param_name] = request
        response: Response = await self.endpoint(**values)
        return response

    def _add_body(self, body: Any, values: dict[str, Any], faults: list[Fault]) -> None:
        """Add the body as its model, or what is wrong with it."""
        if (field := self.body_field) is None:
            return
        if body is not NOTHING:
            values[field.name], found = field.validate(body, {}, loc=("body",))
            faults += found or ()
        elif field.field_info.is_required():
            faults.append({"type": "missing", "loc": ("body",), "msg": "Field required", "input": None})
        else:
            values[field.name] = deepcopy(field.default)


class _Parameters:
    """The parameters of one kind, and their values in a request that has none of them."""

    def __init__(self, fields: Sequence[Any]) -> None:
        self._fields, self._names = fields, {each.alias: each.name for each in fields}
        self._values, self._faults = request_params_to_args(fields, {})
        self._are_texts = all(each.field_info.annotation is str and not each.field_info.metadata for each in fields)

    def read(self, given: Mapping[str, str], values: dict[str, Any], faults: list[Fault]) -> None:
        """Add the values of a request, and what is wrong with them."""
        there = [alias for alias in self._names if alias in given]
        if not there:
            found, wrong = self._values, self._faults
        elif self._are_texts and len(there) == len(self._names):
            found, wrong = {name: given[alias] for alias, name in self._names.items()}, []
        else:
            found, wrong = request_params_to_args(self._fields, given)
        values |= found
        faults += wrong


def _admission_of(call: object) -> Admission | None:
    return call if isinstance(call, Admission) else None


async def _read_body(request: Request) -> Any:
    """Return the value of a JSON body, the bytes of another one."""
    try:
        if not (raw := await request.body()):
            return NOTHING
        return await request.json() if _is_json(request.headers.get("content-type", "")) else raw
    except HTTPException:
        raise
    except Exception as error:  # the client has gone
        raise HTTPException(400, "There was an error parsing the body") from error


def _is_json(content_type: str) -> bool:
    kind, _, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    return kind == "application" and (subtype == "json" or (subtype.endswith("+json") and "/" not in subtype))
