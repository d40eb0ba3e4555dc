"""Attempts at one question: a client that asks again by itself does not begin a second run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from fastapi import Request

from engine_shim.api.access import Caller
from engine_shim.api.refusal import Refusal, Refused
from engine_shim.errors import DefinitionError
from engine_shim.service.completions import ModelNotFound, NotAnswered

KEY_HEADER: Final = "Idempotency-Key"
RETRY_HEADER: Final = "X-Stainless-Retry-Count"
"""How often OpenAI's clients have tried before; they send no key of their own."""
NO_KEY: Final = Refusal(
    409,
    "retry_without_key",
    "your client tries again by itself: it is unknown what its first attempt did, and another one might do it again; "
    "send an Idempotency-Key, by which attempts are one run, or set its retries to 0 to see why the first one failed",
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request for an answer. `earlier` is the run of the same request, which its caller left before the answer, or
    which the server could not answer."""

    request: Request
    caller: Caller
    body: bytes
    earlier: str | None

    @classmethod
    async def of(cls, request: Request, caller: Caller) -> Self:
        """Return a request as an attempt. Refused for one that is not the first by its own account and has no key,
        unless the earlier one is known: that may have begun, and made writes."""
        body, has_key = await request.body(), KEY_HEADER in request.headers
        earlier = None if has_key else caller.tenant.completions.unanswered.take(caller.principal.id, body)
        if earlier is None and not has_key and request.headers.get(RETRY_HEADER, "0") != "0":
            raise Refused(NO_KEY)
        return cls(request, caller, body, earlier)

    @contextmanager
    def until_answered(self, run: str) -> Iterator[None]:
        """Note the run that is awaited within the block if its caller leaves before the answer, or may ask again as the
        server could not begin it, or not tell what became of it."""
        watching, is_answered = asyncio.create_task(self._watch(run)), False
        try:
            yield
            is_answered = True
        except (NotAnswered, ModelNotFound, DefinitionError):
            is_answered = True
            raise
        finally:
            if not watching.done() and not is_answered:
                self._note(run)
            watching.cancel()

    async def _watch(self, run: str) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
        self._note(run)

    def _note(self, run: str) -> None:
        self.caller.tenant.completions.unanswered.add(self.caller.principal.id, self.body, run)
