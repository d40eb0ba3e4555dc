"""Attempts at one question: a client that asks again by itself does not begin a second run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Self

from fastapi import Request

from agent_core.errors import Damaged, JournalError, Unreadable
from engine_shim.api.access import Caller
from engine_shim.api.refusal import Refusal, Refused
from engine_shim.errors import DefinitionError, EngineAway, RunNotFound
from engine_shim.service.completions import ModelNotFound, NotAnswered, Question
from engine_shim.service.driven_runs import ServerEnds
from engine_shim.service.run_service import KeyReused
from engine_shim.service.shares import OverShare

RETRY_HEADER: Final = "X-Stainless-Retry-Count"
"""How often OpenAI's clients have tried before; they send no key of their own."""
NO_KEY: Final = Refusal(
    409,
    "retry_without_key",
    "your client tries again by itself: it is unknown what its first attempt did, and another one might do it again; "
    "send an Idempotency-Key, by which attempts are one run, or set its retries to 0 to see why the first one failed",
)


ANSWERED: Final = (NotAnswered, ModelNotFound, DefinitionError, KeyReused, RunNotFound, Damaged, Unreadable)
"""Errors that say what became of a run, or that it is not to begin: whoever asks again begins another one."""
LATER: Final = (OverShare, ServerEnds, EngineAway, JournalError)
"""Errors after which a later attempt may well be answered."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request for an answer. Its `question` has the run of the same request, which its caller left before the
    answer, or which the server could not answer: then it is `known`."""

    request: Request
    caller: Caller
    body: bytes
    question: Question
    known: bool

    @classmethod
    async def of(cls, request: Request, caller: Caller, question: Question) -> Self:
        """Return a request as an attempt. Refused for one that is not the first by its own account and has no key,
        unless the earlier one is known: that may have begun, and made writes.

        One that does not say so may be a person's, who asks again on purpose: what they have cancelled, or what began
        before they changed the workflow, does not answer it.
        """
        self = cls(request, caller, await request.body(), question, known=False)
        if question.key is not None:
            return self
        is_retry = request.headers.get(RETRY_HEADER, "0") != "0"
        earlier = caller.tenant.completions.unanswered.take(caller.principal.id, self.body)
        if earlier is None:
            if is_retry:
                raise Refused(NO_KEY)
            return self
        with self.until_answered(earlier):
            is_same = is_retry or await caller.tenant.completions.may_answer(earlier, question)
        return replace(self, question=replace(question, run=earlier, key=earlier), known=True) if is_same else self

    @contextmanager
    def until_answered(self, run: str) -> Iterator[None]:
        """Note the run that is awaited within the block if its caller leaves before the answer, or may ask again as the
        server could not begin it, or not tell what became of it."""
        watching, is_answered = asyncio.create_task(self._watch(run)), False
        try:
            yield
            is_answered = True
        except Exception as error:
            is_answered = isinstance(error, ANSWERED) or (self.known and not isinstance(error, LATER))
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
