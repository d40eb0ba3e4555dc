"""Admission: a call that must not happen twice waits for its rate limit before it is asked.

A process that dies while it waits then leaves nothing in doubt.
"""

from dataclasses import dataclass
from time import perf_counter

from agent_core.effects import ToolCall
from agent_core.journal.operations import Act
from agent_core.run.deadline import TooLate, run_within
from agent_core.words.catalogue import words_in
from utools.calls.rate_limit import RateLimit
from utools.calls.rate_limiter import acquire
from utools.calls.store import CallStore

WAIT_SHARE = 0.9
"""The share of a call's time that may pass while it waits for its tool's rate limit: it must still end in time."""


@dataclass(frozen=True, slots=True)
class Admission:
    """When the time of a call began (`perf_counter`), and why it may not be made, if so."""

    began: float
    refusal: str | None = None


def call_to_admit(op: Act) -> ToolCall | None:
    """Return the call of an act that waits before it is asked; None for one that need not wait, or that waits when it
    acts."""
    call = op.effect
    return call if op.once_only and isinstance(call, ToolCall) and call.rate_limit is not None else None


async def admit(store: CallStore, call: ToolCall) -> Admission:
    """Wait for the call's turn, within its time."""
    began = perf_counter()
    try:
        return Admission(began, await run_within(wait_for_rate_limit(store, call, began), call.within))
    except TooLate:
        no_slot = words_in(call.language).no_slot
        return Admission(began, no_slot.format(tool=call.tool, seconds=f"{call.within:g}"))


async def wait_for_rate_limit(store: CallStore, call: ToolCall, began: float) -> str | None:
    """Wait for the tool's rate limit; the reason for a refusal where that leaves too little of the call's time."""
    if call.rate_limit is None:
        return None
    within = None if call.within is None else call.within * WAIT_SHARE - (perf_counter() - began)
    return await acquire(
        store, call.tool, RateLimit.from_text(call.rate_limit), within=within, words=words_in(call.language)
    )
