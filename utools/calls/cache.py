"""Kept answers: a tool that reads and sets `cache` is not called again while its answer to the same call is fresh."""

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from utools.calls.store import CallStore
from utools.errors import UtoolsError
from utools.tool import Args, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    import asyncio

LARGEST = 2**20
"""Characters of an answer that is kept."""


class AnswerCache:
    """The kept answers of one host. Of equal calls at the same time one is made, and the others wait for its answer."""

    def __init__(self, store: CallStore) -> None:
        self._store = store
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Future[None]]] = WeakKeyDictionary()

    async def answer(
        self,
        tool: Tool,
        args: Args,
        context: ToolContext,
        call: Callable[[], Awaitable[ToolResult]],
        clean: Callable[[Any], Any],
    ) -> ToolResult:
        """The kept answer, marked `cached`, or what `call` gives: if it is a success it is kept, as `clean` leaves it.

        A store that cannot be asked costs the calls that it would have saved, and is logged.
        """
        from asyncio import get_running_loop, wait

        loop = get_running_loop()
        key, under_way = key_of(tool, args), self._made.setdefault(loop, {})
        while (kept := await self._kept(key, context)) is None:
            if key not in under_way:
                break
            await wait({under_way[key]})
        if kept is not None:
            return kept
        under_way[key] = made = loop.create_future()
        try:
            result = await call()
            if result.success:
                await self._keep(key, tool, clean(result.output), context)
            return result
        finally:
            del under_way[key]
            made.set_result(None)

    async def _kept(self, key: str, context: ToolContext) -> ToolResult | None:
        try:
            text = await self._store.kept(key)
            return None if text is None else ToolResult(output=json.loads(text), metadata={"cached": True})
        except (UtoolsError, OSError, ValueError) as error:
            context.log.warning("the kept answers cannot be read: %s", error)
            return None

    async def _keep(self, key: str, tool: Tool, output: Any, context: ToolContext) -> None:
        text = json.dumps(output)
        if len(text) > LARGEST or tool.cache is None:
            return
        try:
            await self._store.keep(key, text, float(tool.cache["ttl"]))
        except (UtoolsError, OSError) as error:
            context.log.warning("the answer of %s cannot be kept: %s", tool.code, error)


def key_of(tool: Tool, args: Args) -> str:
    """One key for equal calls of one version of a tool. The arguments, secrets among them, cannot be read from it."""
    from hashlib import sha256

    version: list[Any] = [tool.description, tool.config_schema, tool.output_schema, tool.fingerprint]
    told = json.dumps([tool.code, args, version], sort_keys=True, separators=(",", ":"))
    return sha256(told.encode()).hexdigest()
