"""The call that a decision link is about: found while it waits, and decided."""

from typing import Final, Literal

from agent_core.decisions import Decision
from agent_core.errors import DecisionError
from agent_core.journal.control import calls_for_person, waiting_calls
from agent_core.outputs import WaitingCall
from agent_core.statuses import OPEN, ListedStatus
from engine_shim.errors import EngineError, RunBusy, RunNotFound
from engine_shim.service.link_token import LinkGrant
from engine_shim.service.run_service import RunService

ByLink = Literal["approve", "deny", "retry", "skip", "fail"]
"""What links may decide: neither other arguments of a call, nor what a write in doubt gave."""
OF_APPROVAL: Final[tuple[ByLink, ...]] = ("approve", "deny")
OF_DOUBT: Final[tuple[ByLink, ...]] = ("retry", "skip", "fail")


class LinkExpired(EngineError):
    """A link whose time is over."""

    def __init__(self) -> None:
        super().__init__("this link has expired; ask for a new one")


class LinkUsed(EngineError):
    """A link to a call that waits no longer: by this link or otherwise it was decided, or its run has ended."""

    def __init__(self) -> None:
        super().__init__("this call waits no longer: it is decided, or its run has ended")


class LinkRunGone(EngineError):
    """A link to a call of a run that was deleted."""

    def __init__(self) -> None:
        super().__init__("the run of this call was deleted")


def list_decisions(call: WaitingCall) -> tuple[ByLink, ...]:
    """Return what a link may decide about a call."""
    return OF_DOUBT if call["reason"] == "in_doubt" else OF_APPROVAL


async def find_open_calls(runs: RunService, run: str) -> tuple[ListedStatus, list[WaitingCall]]:
    """Return the status of a run, and what waits in it for a person. RunNotFound."""
    view = await runs.view(run)
    waiting = view.waiting
    if view.status in OPEN:  # it may be about to rest: what waits is in the journal before its status says so
        waiting = waiting_calls(await runs.store.load(run))
    return view.status, calls_for_person(waiting)


async def find_linked_call(runs: RunService, grant: LinkGrant) -> WaitingCall:
    """Return the call that a grant is about. LinkExpired; LinkUsed once it waits no longer; LinkRunGone."""
    if grant.expires <= runs.engine.store.clock.read():
        raise LinkExpired
    try:
        status, waiting = await find_open_calls(runs, grant.run)
    except RunNotFound:
        raise LinkRunGone from None
    call = next((each for each in waiting if (each["strand"], each["n"]) == (grant.strand, grant.n)), None)
    if call is None:
        raise LinkUsed
    if status == "paused":  # to decide would resume it, which no link allows
        raise DecisionError("the run of this call is paused; it can be decided once somebody has resumed the run")
    return call


async def decide_linked_call(runs: RunService, grant: LinkGrant, decision: Decision, *, by: str) -> None:
    """Decide about the call of a grant. Raises what `find_linked_call` does, LinkUsed for who comes second."""
    try:
        await runs.decide(grant.run, {(grant.strand, grant.n): decision}, by=by)
    except (DecisionError, RunBusy, RunNotFound):
        await find_linked_call(runs, grant)
        raise
