"""Kept answers: a tool that reads and sets `cache` is not called again while its answer to the same call is fresh.

Under the key of a call stands its answer; or, where a call of that tool asked for secrets, which those are, and the
answer stands under a second key, which only they who have the same secrets can find.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from utools.calls.store import CallStore
from utools.errors import ToolError, UtoolsError
from utools.jsonvalue import as_json
from utools.schema.config_schema import ConfigSchema
from utools.tool import Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    import asyncio

LARGEST = 2**20
"""Characters of an answer that is kept."""
SHAPE = 2
"""Which shape what is kept has: what another release wrote in another is not found."""
Secret = Callable[[str], str]
Call = Callable[[ToolContext], Awaitable[ToolResult]]


class AnswerCache:
    """The kept answers of one host. Of equal calls at the same time one is made, and the others wait for its answer."""

    def __init__(self, store: CallStore) -> None:
        self._store = store
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Future[None]]] = WeakKeyDictionary()
        self._asked: dict[str, set[str]] = {}

    async def answer(
        self, tool: Tool, said: Any, context: ToolContext, call: Call, clean: Callable[[Any], Any]
    ) -> ToolResult:
        """The kept answer, marked `cached`, or what `call` gives: if it is a success it is kept, as `clean` leaves it.

        `said` is what tells one call of the tool from another: its arguments, secrets by their names.
        A store that cannot be asked costs the calls that it would have saved, and is logged.
        """
        from asyncio import get_running_loop, wait

        loop = get_running_loop()
        key, under_way = key_of(tool, said), self._made.setdefault(loop, {})
        while (kept := await self._kept(tool, key, context)) is None:
            if key not in under_way:
                break
            await wait({under_way[key]})
        if kept is not None:
            return kept
        under_way[key] = made = loop.create_future()
        try:
            result = await call(replace(context, secret=self._noting(tool, context.secret)))
            if result.success:
                await self._keep(key, tool, clean(result.output), context)
            return result
        finally:
            del under_way[key]
            made.set_result(None)

    def _noting(self, tool: Tool, secret: Secret) -> Secret:
        """The same secrets; those that the tool asks for count for all its answers, since it may remember them."""
        names = self._asked.setdefault(tool.code, set())

        def noted(name: str) -> str:
            names.add(name)
            return secret(name)

        return noted

    async def _kept(self, tool: Tool, key: str, context: ToolContext) -> ToolResult | None:
        try:
            kept = await self._read(key)
            if names := _names(kept):
                kept = await self._read(await sealed(key, names, context.secret))
            output = _output(tool, kept) if "output" in kept else None
        except (UtoolsError, OSError, ValueError) as error:
            context.log.warning("the kept answers cannot be read: %s", error)
            return None
        return ToolResult(output=output, metadata={"cached": True}) if "output" in kept else None

    async def _read(self, key: str) -> dict[str, Any]:
        """What is kept; nothing where there is none, or something else. ValueError for what no host has written."""
        text = await self._store.kept(key)
        if text is not None and len(text) > LARGEST:
            raise ValueError(f"one has {len(text)} characters, and at most {LARGEST} are kept")
        try:
            found = None if text is None else json.loads(text)
        except RecursionError:
            raise ValueError("one is nested too deep") from None
        return found if isinstance(found, dict) else {}

    async def _keep(self, key: str, tool: Tool, output: Any, context: ToolContext) -> None:
        text, names = json.dumps({"output": output}), sorted(self._asked.get(tool.code, ()))
        if len(text) > LARGEST or tool.cache is None:
            return
        ttl = float(tool.cache["ttl"])
        try:
            if names:
                await self._store.keep(await sealed(key, names, context.secret), text, ttl)
                text = json.dumps({"secrets": names})
            await self._store.keep(key, text, ttl)
        except (UtoolsError, OSError) as error:
            context.log.warning("the answer of %s cannot be kept: %s", tool.code, error)


def key_of(tool: Tool, said: Any) -> str:
    """One key for equal calls of one version of a tool. What was said cannot be read from it."""
    from hashlib import sha256

    version: list[Any] = [tool.description, tool.config_schema, tool.output_schema, tool.fingerprint]
    told = json.dumps([SHAPE, tool.code, said, version], sort_keys=True, separators=(",", ":"))
    return sha256(told.encode()).hexdigest()


async def sealed(key: str, names: list[str], secret: Secret) -> str:
    """The key of the same call by somebody who has these secrets, or lacks them. It does not tell them.

    Whoever reads it could try guesses, each of which takes some 50 ms and 16 MB: enough against any token.
    """
    import hmac
    from asyncio import to_thread

    told = json.dumps([[name, _value(secret, name)] for name in sorted(names)])
    return hmac.digest(await to_thread(stretched, told), key.encode(), "sha256").hex()


@lru_cache(maxsize=64)
def stretched(secrets: str) -> bytes:
    """A key made of secrets at such a cost that guessing them does not pay (scrypt, RFC 7914)."""
    from hashlib import scrypt

    return scrypt(secrets.encode(), salt=b"agent-core: kept answers", n=2**14, r=8, p=1, dklen=32)


def _value(secret: Secret, name: str) -> str | None:
    try:
        return secret(name)
    except ToolError:  # not allowed here, or not set
        return None


def _output(tool: Tool, kept: dict[str, Any]) -> Any:
    """A kept answer; ValueError for one that the tool may not give, since others may have written to the store."""
    output = as_json(kept["output"])
    schema = None if tool.output_schema is None else _compiled(json.dumps(tool.output_schema))
    if schema and (faults := schema.faults(output)):
        raise ValueError(f"one breaks the output_schema of {tool.code}: {faults[0].message}")
    return output


@lru_cache(maxsize=64)
def _compiled(schema: str) -> ConfigSchema:
    return ConfigSchema(json.loads(schema), foreign=True)


def _names(kept: dict[str, Any]) -> list[str]:
    found = kept.get("secrets")
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else []
