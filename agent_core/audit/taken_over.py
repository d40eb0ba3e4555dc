"""leave_taken_over(): the facts of a fork without its past, which is told of the run where it happened. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from agent_core.journal.facts import Answered, Batch, Call, Fact, Question, RunStarted, Waiting


def leave_taken_over(facts: Iterable[Fact]) -> list[Fact]:
    """Return what a run did itself: of a fork how it began, and what came after it was forked; all of any other run."""
    facts = list(facts)
    origins = (fact.begun.forked for fact in facts if isinstance(fact, RunStarted))
    since = next((origin.get("at") for origin in origins if origin is not None), None)
    if since is None:
        return facts
    return [fact for _, strand in groupby(facts, attrgetter("strand")) for fact in _own_facts(list(strand), since)]


def _own_facts(strand: Sequence[Fact], since: str) -> list[Fact]:
    """Return a strand's facts from the first one that is dated so or later; what asks is as old as what answers it."""
    first = next((index for index, fact in enumerate(strand) if _time_of(fact) >= since), len(strand))
    while first and isinstance(strand[first - 1], Question | Call | Batch | Waiting):
        first -= 1
    return [*(fact for fact in strand[:first] if _is_beginning(fact)), *strand[first:]]


def _is_beginning(fact: Fact) -> bool:
    return isinstance(fact, RunStarted) and fact.begun.forked is not None


def _time_of(fact: Fact) -> str:
    match fact:
        case RunStarted(begun=begun):
            return begun.at
        case Answered(answer=answer):
            return answer.at
        case _:
            return str(getattr(fact, "at", None) or "")
