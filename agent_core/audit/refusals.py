"""find_refused(): the calls of a run that were not let through, and why. Pure."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from agent_core.journal.facts import Decided, Fact

AWAITING: Final = "awaiting_approval"


class Refusal(NamedTuple):
    """A call that was not let through, and the finish reason that stands for why."""

    tool: str
    args: Any
    reason: str


def find_refused(facts: Iterable[Fact]) -> list[Refusal]:
    """Return the calls that were refused, or wait for a person."""
    return [
        Refusal(call["tool"], call["args"], AWAITING if call["verdict"] == "wait" else str(call.get("reason")))
        for fact in facts
        if isinstance(fact, Decided)
        for call in fact.calls
        if call["verdict"] != "run"
    ]
