"""AnswerCache: a tool that reads and sets `cache` is not called again while its answer to the same call is fresh.

An answer goes to the host's store, which other processes may share. A tool that asked for a secret is different: its
answers depend on the secret's value, so they stay in this process, under a key that only equal secrets give.
"""

import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from secrets import token_bytes
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from utools.calls.store import CallStore
from utools.calls.store_memory import MemoryCallStore
from utools.errors import ToolError, UtoolsError
from utools.schema.json_value import as_json
from utools.tool import Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    import asyncio

LARGEST = 2**20
"""Characters of an answer that is cached."""
SHAPE = 2
"""The version of what is stored: a release that stores another shape finds nothing of this one."""
Secret = Callable[[str], str]
Call = Callable[[ToolContext], Awaitable[ToolResult]]


class AnswerCache:
    """The cached answers of one host. Of equal calls at the same time one is made; the others wait for its answer."""

    def __init__(self, store: CallStore) -> None:
        self._shared = store
        self._private = MemoryCallStore()
        self._private_key = token_bytes(32)
        self._under_way: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Future[None]]]
        self._under_way = WeakKeyDictionary()
        self._secret_names: dict[str, set[str]] = {}

    async def answer(
        self, tool: Tool, request: Any, context: ToolContext, call: Call, clean: Callable[[Any], Any]
    ) -> ToolResult:
        """Return the cached answer, marked `cached`, or the result of `call`; a success is cached as `clean` leaves it.

        `request` tells one call of the tool from another: its arguments, with secrets by name.
        A store that fails costs the calls that it would have saved, and is logged.
        """
        from asyncio import get_running_loop, wait

        loop = get_running_loop()
        key, under_way = key_of(tool, request), self._under_way.setdefault(loop, {})
        while (cached := await self._find(tool, key, context)) is None:
            if key not in under_way:
                break
            await wait({under_way[key]})
        if cached is not None:
            return cached
        under_way[key] = made = loop.create_future()
        try:
            result = await call(replace(context, secret=self._note_secrets(tool, context.secret)))
            if result.success:
                await self._save(tool, key, clean(result.output), context)
            return result
        finally:
            del under_way[key]
            made.set_result(None)

    def _note_secrets(self, tool: Tool, secret: Secret) -> Secret:
        """Return the same secrets; each name is noted. It binds all answers of the tool, which may remember the
        value."""
        names = self._secret_names.setdefault(tool.code, set())

        def noting(name: str) -> str:
            names.add(name)
            return secret(name)

        return noting

    def _store_for(self, tool: Tool, key: str, context: ToolContext) -> tuple[CallStore, str]:
        """Return where the answer to a call is cached, and under which key."""
        names = self._secret_names.get(tool.code)
        if not names:
            return self._shared, key
        request = json.dumps([key, [[name, _value(context.secret, name)] for name in sorted(names)]])
        return self._private, hmac.digest(self._private_key, request.encode(), "sha256").hex()

    async def _find(self, tool: Tool, key: str, context: ToolContext) -> ToolResult | None:
        store, key = self._store_for(tool, key, context)
        try:
            text = await store.get(key)
            record = {} if text is None else _read_record(text)
            if "output" not in record:
                return None
            return ToolResult(output=_checked_output(tool, record["output"]), metadata={"cached": True})
        except (UtoolsError, OSError, ValueError) as error:
            context.log.warning("cached answers cannot be read: %s", error)
            return None

    async def _save(self, tool: Tool, key: str, output: Any, context: ToolContext) -> None:
        text = json.dumps({"output": output})
        if len(text) > LARGEST or tool.cache is None:
            return
        store, key = self._store_for(tool, key, context)
        try:
            await store.put(key, text, float(tool.cache["ttl"]))
        except (UtoolsError, OSError) as error:
            context.log.warning("the answer of %s cannot be cached: %s", tool.code, error)


def key_of(tool: Tool, request: Any) -> str:
    """Return one key for equal calls of one version of a tool; the request cannot be read from it."""
    version: list[Any] = [tool.description, tool.config_schema, tool.output_schema, tool.fingerprint]
    text = json.dumps([SHAPE, tool.code, request, version], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def _value(secret: Secret, name: str) -> str | None:
    try:
        return secret(name)
    except ToolError:  # not allowed here, or not set
        return None


def _read_record(text: str) -> dict[str, Any]:
    """Return a stored record; empty if it is not an object. ValueError for a text that no host has written."""
    if len(text) > LARGEST:
        raise ValueError(f"one has {len(text)} characters, and at most {LARGEST} are kept")
    try:
        record = json.loads(text)
    except RecursionError:
        raise ValueError("one is nested too deep") from None
    return record if isinstance(record, dict) else {}


def _checked_output(tool: Tool, output: Any) -> Any:
    """Return a cached output; ValueError for one that the tool may not give: other programs may write to the store."""
    from utools.schema.compiled import compile_schema

    output = as_json(output)
    if tool.output_schema is not None and (faults := compile_schema(tool.output_schema).faults(output)):
        raise ValueError(f"one breaks the output_schema of {tool.code}: {faults[0].message}")
    return output
