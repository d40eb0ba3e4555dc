"""The tools of other hosts, named `<host>.<code>`, as their operator approved them."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from utools.errors import DefinitionError, ToolError
from utools.sources.http_call import HttpPolicy, Request, checked_origin, in_path, result_of, send, too_large
from utools.sources.loop_thread import LoopThread
from utools.sources.pinned_source import PinnedSource, check_unchanged
from utools.sources.remote_wire import EXECUTE, TOOLS, Executed, Execution, Offer
from utools.sources.tool_lock_file import Change, Definition
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult

__all__ = ["Change", "RemoteHost", "RemoteHosts"]

OFFERS = TypeAdapter(list[Offer], config=ConfigDict(defer_build=True))
LISTED_ANEW = 300.0
"""Seconds after which a host is asked again what its tools are."""


class RemoteHost(HttpPolicy):
    """Another host: the `url` that its API begins with, and globs of the `tools` taken.

    `trust_effects` believes it when it says that a tool only reads, or can be called twice.
    """

    url: str
    tools: list[str] = Field(default=["*"])
    trust_effects: bool = False

    @field_validator("url")
    @classmethod
    def _sound(cls, value: str) -> str:
        checked_origin(value)
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
        self._listed: dict[str, tuple[float, list[Definition]]] = {}

    def tools(self) -> list[Tool]:
        """The approved tools. DefinitionError for a new host that cannot be asked."""
        return [
            self._tool(name, each)
            for name, approved in self.approved().items()
            for each in approved
            if any(fnmatchcase(each.name, glob) for glob in self._hosts[name].tools)
        ]

    def offered(self, names: Sequence[str]) -> dict[str, list[Definition]]:
        """What these hosts offer now."""
        background = LoopThread(_nothing, seconds=1.0)
        try:
            asked = {name: background.submit(self._ask(name, self._context)) for name in names}
            return {name: answer.result() for name, answer in asked.items()}
        except (ToolError, ConnectionError, TimeoutError) as error:
            raise DefinitionError(f"cannot be asked for its tools: {error}", where=self.where) from None
        finally:
            background.close()

    async def _ask(self, name: str, context: ToolContext) -> list[Definition]:
        host = self._hosts[name]
        answer = await send(Request("GET", f"{host.url}{TOOLS}", {"accept": "application/json"}), host, context)
        result = result_of(answer, reads=True)
        if not result.success:
            raise ToolError(f"{name}: {result.error}")
        if answer.truncated:
            raise ToolError(f"{name}: the list of its tools is larger than {host.max_bytes} bytes (max_bytes)")
        try:
            found = [_definition(each) for each in OFFERS.validate_python(result.output)]
        except ValidationError as error:
            raise ToolError(f"{name}: its answer is no list of tools: {_first(error)}") from None
        self._listed[name] = (time.monotonic(), found)
        return found

    async def _now(self, name: str, context: ToolContext) -> list[Definition]:
        """What the host offers, asked not too long ago."""
        asked, found = self._listed.get(name, (float("-inf"), []))
        return found if time.monotonic() - asked < LISTED_ANEW else await self._ask(name, context)

    def _tool(self, name: str, approved: Definition) -> Tool:
        trusted = self._hosts[name].trust_effects
        return Tool(
            code=f"{name}.{approved.name}",
            description=approved.description,
            config_schema=approved.input_schema,
            execute=self._execute(name, approved),
            effect=self._effect(name, approved),
            idempotent=trusted and approved.idempotent,
            foreign=True,
            fingerprint=approved.fingerprint,
        )

    def _execute(self, name: str, approved: Definition) -> Execute:
        host = self._hosts[name]

        async def execute(args: Args, context: ToolContext) -> ToolResult:
            now = {each.name: each for each in await self._listing(name, context)}
            check_unchanged(self._key(name), approved, now.get(approved.name))
            url = host.url + EXECUTE.format(code=in_path(approved.name))
            sent = Execution(args=args, idempotency_key=context.idempotency_key or None)
            content = json.dumps(sent.model_dump(), ensure_ascii=False).encode()
            answer = await send(Request("POST", url, {"content-type": "application/json"}, content), host, context)
            result = result_of(answer, reads=False)
            if result.success and answer.truncated:
                return too_large(name, host, reads=self._effect(name, approved) == "read")
            return _executed(name, result.output) if result.success else result

        return execute

    def _effect(self, name: str, approved: Definition) -> Literal["read", "write"]:
        return "read" if self._hosts[name].trust_effects and approved.read_only else "write"

    async def _listing(self, name: str, context: ToolContext) -> list[Definition]:
        """The same, for a call: that it cannot be had means that nothing was done."""
        try:
            return await self._now(name, context)
        except (ConnectionError, TimeoutError) as error:
            raise ToolError(f"{name} cannot be asked for its tools: {error}", transient=True) from None


def _definition(offer: Offer) -> Definition:
    function = offer.function
    return Definition(
        name=function.name,
        description=function.description or function.name,
        input_schema=function.parameters,
        read_only=offer.effect == "read",
        idempotent=offer.idempotent,
    )


def _executed(name: str, answer: object) -> ToolResult:
    try:
        done = Executed.model_validate(answer)
    except ValidationError as error:
        raise ToolError(f"{name} answered something else than a result: {_first(error)}") from None
    told = {"transient": done.transient, "cut_off": done.cut_off}
    return ToolResult(done.success, done.output, done.error, {key: True for key, held in told.items() if held})


def _first(error: ValidationError) -> str:
    """The first fault, with its place where it has one."""
    fault = error.errors(include_url=False)[0]
    return f"{'/'.join(map(str, fault['loc']))}: {fault['msg']}".removeprefix(": ")


async def _nothing() -> None:
    """Nothing is left to be closed."""
