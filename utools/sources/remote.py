"""The tools of other hosts, named `<host>.<code>`, as their operator approved them.

Another host is an `agent-core serve`, whose calls are runs (`served_run.py`), or any program that offers tools as JSON
by two routes: `GET /tools` with a list, and `POST /tools/{code}/execute`.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from utools.errors import DefinitionError, ToolError
from utools.left_out import LeftOut
from utools.schema.config_schema import author_keys, visible
from utools.schema.model_faults import word_fault
from utools.sources.http_call import HttpPolicy, Url, read_response, refuse_truncated, send
from utools.sources.loop_thread import LoopThread
from utools.sources.pinned_source import PinnedSource, UsableTool, check_unchanged
from utools.sources.request import Request, encode_segment
from utools.sources.served_run import ServedCall
from utools.sources.tool_lock_file import Change, Definition
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult

T = TypeVar("T", bound=BaseModel)
log = logging.getLogger(__name__)
__all__ = ["Change", "RemoteHost", "RemoteHosts"]

LISTING_AGE = 300.0
"""Seconds after which a host is asked again which tools it has."""


class _Function(BaseModel):
    """A tool in function-calling shape: its code, what it does, the schema of its arguments."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default={"type": "object"})


class _Offer(BaseModel):
    """One entry of the list that `GET /tools` answers, as `ToolRegistry.definitions` gives it.

    `effect` and `idempotent` are believed only of a host that is trusted.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    type: Literal["function"] = "function"
    function: _Function
    effect: Literal["read", "write"] = "write"
    idempotent: bool = False

    def definition(self) -> Definition:
        return Definition(
            name=self.function.name,
            description=self.function.description or self.function.name,
            input_schema=self.function.parameters,
            read_only=self.effect == "read",
            idempotent=self.idempotent,
        )


class _ServedTool(BaseModel):
    """One tool of the list that `GET /tools` of `agent-core serve` answers. Only an `executable` one can be called."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    code: str
    description: str = ""
    effect: str = "write"
    executable: bool
    config_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    idempotent: bool = False

    def definition(self) -> Definition:
        return Definition(
            name=self.code,
            description=self.description or self.code,
            input_schema=visible(self.config_schema, author_keys(self.config_schema)),
            output_schema=self.output_schema,
            read_only=self.effect == "read",
            idempotent=self.idempotent,
        )


@dataclass(frozen=True, slots=True)
class _Listing:
    """What a host offered at a time; `is_served` says that it is an `agent-core serve`."""

    at: float = float("-inf")
    definitions: tuple[Definition, ...] = ()
    is_served: bool = False


class _Execution(BaseModel):
    """The body of `POST /tools/{code}/execute`. `idempotency_key` is the same for every attempt of one call."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    args: dict[str, Any]
    idempotency_key: str | None = None


class _Outcome(BaseModel):
    """The answer to it, with status 200 even where the tool failed.

    `transient`: trying again may help; `cut_off`: the tool had started, and its progress is unknown.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    success: bool
    output: Any = None
    error: str | None = None
    transient: bool = False
    cut_off: bool = False


OFFERS = TypeAdapter(list[_Offer], config=ConfigDict(defer_build=True))


class RemoteHost(HttpPolicy):
    """Another host: the `url` that its API begins with, and globs of the `tools` that are taken.

    `trust_effects` believes it when it says that a tool only reads, or can be called twice.
    """

    bounds: ClassVar = ("tools",)

    url: Url
    tools: list[str] = Field(default=["*"])
    trust_effects: bool = False

    @field_validator("url")
    @classmethod
    def _strip_slash(cls, value: str) -> str:
        return value.rstrip("/")


class RemoteHosts(PinnedSource):
    """The other hosts that one host takes tools of."""

    where = "remote"

    def __init__(
        self, hosts: Mapping[str, RemoteHost], *, lock: Path, secret: Callable[[str], str] | None = None
    ) -> None:
        super().__init__(hosts, lock)
        self._hosts = dict(hosts)
        self._context = ToolContext(secret=secret or ToolContext().secret)
        self._listings: dict[str, _Listing] = {}

    def make_tools(self, name: str, usable: Sequence[UsableTool]) -> Iterator[Tool | LeftOut]:
        for each in usable:
            own = each.definition.name
            if any(fnmatchcase(own, glob) for glob in self._hosts[name].tools):
                try:
                    yield self._make_tool(name, each)
                except DefinitionError as error:
                    yield LeftOut(f"{name}.{own}", f"{self._key(name)}/{own}", error.message)

    def offered(self, names: Sequence[str]) -> dict[str, list[Definition] | DefinitionError]:
        """Return what these hosts offer now."""
        thread = LoopThread(seconds=1.0)
        try:
            listings = {name: thread.submit(self._list_definitions(name)) for name in names}
            return {name: self._listed(name, listing) for name, listing in listings.items()}
        finally:
            thread.close()

    def _listed(self, name: str, listing: "Future[list[Definition]]") -> list[Definition] | DefinitionError:
        try:
            return listing.result()
        except (ToolError, DefinitionError, OSError) as error:  # what is away is an OSError
            return DefinitionError(f"cannot be asked for its tools: {error}", where=self._key(name))

    async def _list_definitions(self, name: str) -> list[Definition]:
        return list((await self._list_tools(name, self._context)).definitions)

    async def _list_tools(self, name: str, context: ToolContext) -> _Listing:
        host = self._hosts[name]
        response = await send(Request("GET", f"{host.url}/tools", {"accept": "application/json"}), host, context)
        result = read_response(response, reads=True)
        if not result.success:
            raise ToolError("{name}: {error}", name=name, error=result.error)
        if response.truncated:
            raise ToolError(
                "{name}: the list of its tools is larger than {most} bytes (max_bytes)", name=name, most=host.max_bytes
            )
        served = result.output.get("tools") if isinstance(result.output, dict) else None
        try:
            found = _read_served(served, name) if isinstance(served, list) else _read_offers(result.output, name)
        except ValidationError as error:
            raise ToolError(
                "{name}: its answer is no list of tools: {fault}", name=name, fault=_first_fault(error)
            ) from None
        self._listings[name] = _Listing(time.monotonic(), tuple(found), isinstance(served, list))
        return self._listings[name]

    async def _recent_tools(self, name: str, context: ToolContext) -> _Listing:
        """Return what the host offers, asked at most LISTING_AGE ago. Where it does not say, no call was made."""
        listing = self._listings.get(name, _Listing())
        if time.monotonic() - listing.at < LISTING_AGE:
            return listing
        try:
            return await self._list_tools(name, context)
        except (ConnectionError, TimeoutError) as error:
            raise ToolError(
                "{name} cannot be asked for its tools: {error}", name=name, error=error, transient=True
            ) from None

    def _make_tool(self, name: str, usable: UsableTool) -> Tool:
        trusted, approved = self._hosts[name].trust_effects, usable.definition
        return Tool(
            code=f"{name}.{approved.name}",
            description=approved.description,
            config_schema=usable.schema,
            output_schema=usable.output_schema,
            execute=self._make_execute(name, approved),
            effect=self._effect(name, approved),
            idempotent=trusted and approved.idempotent,
            foreign=True,
            fingerprint=approved.fingerprint,
        )

    def _make_execute(self, name: str, approved: Definition) -> Execute:
        host = self._hosts[name]

        async def execute(args: Args, context: ToolContext) -> ToolResult:
            listing = await self._recent_tools(name, context)
            now = {each.name: each for each in listing.definitions}
            check_unchanged(self._key(name), approved, now.get(approved.name))
            if listing.is_served:
                reads = self._effect(name, approved) == "read"
                return await ServedCall(name, host.url, host, context, reads).execute(approved.name, args)
            url = f"{host.url}/tools/{encode_segment(approved.name)}/execute"
            body = _Execution(args=args, idempotency_key=context.idempotency_key or None)
            content = json.dumps(body.model_dump(), ensure_ascii=False).encode()
            response = await send(Request("POST", url, {"content-type": "application/json"}, content), host, context)
            result = read_response(response, reads=False)
            if result.success and response.truncated:
                return refuse_truncated(name, host, reads=self._effect(name, approved) == "read")
            return _read_outcome(name, result.output) if result.success else result

        return execute

    def _effect(self, name: str, approved: Definition) -> Literal["read", "write"]:
        return "read" if self._hosts[name].trust_effects and approved.read_only else "write"


def _read_served(tools: list[Any], name: str) -> list[Definition]:
    """Return the tools that another `agent-core serve` executes by themselves."""
    found = [each for each in _read_each(_ServedTool, tools, name) if each.executable]
    if not found:
        raise ToolError(
            "{name}: it executes no tool by itself: its operator lists them in execute_tools, in its agent-core.yaml",
            name=name,
        )
    return [each.definition() for each in found]


def _read_offers(offers: Any, name: str) -> list[Definition]:
    """ValidationError where there is no list, or nothing in it is a tool."""
    if not isinstance(offers, list) or not offers:
        return [each.definition() for each in OFFERS.validate_python(offers)]
    return [each.definition() for each in _read_each(_Offer, offers, name)]


def _read_each(model: type[T], entries: list[Any], name: str) -> list[T]:
    """Return each entry that is a tool. ValidationError, of the first, where none is."""
    found, faults = list[T](), list[ValidationError]()
    for entry in entries:
        try:
            found.append(model.model_validate(entry))
        except ValidationError as error:
            faults.append(error)
            log.warning("a tool of %s is left out: %s", name, _first_fault(error))
    if faults and not found:
        TypeAdapter(list[model]).validate_python(entries)  # type: ignore[valid-type] # names the place in the list
    return found


def _read_outcome(name: str, answer: object) -> ToolResult:
    try:
        outcome = _Outcome.model_validate(answer)
    except ValidationError as error:
        raise ToolError(
            "{name} answered something else than a result: {fault}", name=name, fault=_first_fault(error)
        ) from None
    flags = {"transient": outcome.transient, "cut_off": outcome.cut_off}
    metadata = {flag: True for flag, value in flags.items() if value}
    return ToolResult(outcome.success, outcome.output, outcome.error, metadata)


def _first_fault(error: ValidationError) -> str:
    """Return the first fault, with its position where it has one."""
    fault = error.errors(include_url=False)[0]
    return f"{'/'.join(map(str, fault['loc']))}: {word_fault(fault)}".removeprefix(": ")
