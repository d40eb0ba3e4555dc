"""Who decided what: decisions about calls, and whatever else a person did to a run. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from agent_core.audit.report.listing import Listing, Tally, shorten
from agent_core.journal.control import waiting_calls
from agent_core.journal.facts import Added, Fact, Resolved, Sent, Waiting
from agent_core.journal.record import Tape

UNDECIDED: Final = ("batch", "elapsed", "signalled", "late")
"""What is resolved without a person."""


@dataclass(frozen=True, slots=True)
class PersonActs:
    """How often somebody did one thing: `began` a run, or `decision` as below."""

    by: str
    decision: str
    about: str
    times: int
    run: str


@dataclass(frozen=True, slots=True)
class PersonAct:
    """One act of a person: a decision about a call; `pause`, `resume`, `cancel`; a `message` or a `signal` that was
    sent. `about` is the tool, the role or the signal's name, `said` the person's reason."""

    run: str
    place: str
    at: str
    by: str
    decision: str
    about: str
    said: str


@dataclass(frozen=True, slots=True)
class WaitingNow:
    """A call or a node that waits; `reason` is why, as in a finish reason."""

    run: str
    place: str
    tool: str
    reason: str


@dataclass(slots=True)
class People:
    """Who decided what in many runs."""

    tally: Tally[tuple[str, str, str]] = field(default_factory=Tally[tuple[str, str, str]])
    acts: Listing[PersonAct] = field(default_factory=Listing[PersonAct])
    waiting: Listing[WaitingNow] = field(default_factory=Listing[WaitingNow])

    def add(self, run: str, acts: Iterable[PersonAct], waiting: Iterable[WaitingNow], submitter: str | None) -> None:
        if submitter is not None:
            self.tally.add((shorten(submitter), "began", ""), run)
        for act in acts:
            self.tally.add((act.by, act.decision, act.about), run)
            self.acts.add(act)
        for each in waiting:
            self.waiting.add(each)

    def list(self) -> Listing[PersonActs]:
        return self.tally.list(lambda key, times, run: PersonActs(*key, times, run))


def read_acts(run: str, facts: Iterable[Fact]) -> Iterator[PersonAct]:
    """Yield what persons did, strand by strand."""
    for place, act in _read_acts(facts):
        yield PersonAct(run, place, *map(shorten, act))


def _read_acts(facts: Iterable[Fact]) -> Iterator[tuple[str, tuple[str, str, str, str, str]]]:
    """Yield each record by which somebody did something: when, who, what, about what, and what was said."""
    waiting: dict[str, str] = {}
    for fact in facts:
        place = f"{fact.strand}:{fact.n}"
        match fact:
            case Waiting(tool=str(tool)):
                waiting[fact.strand] = tool
            case Resolved(decision=decision) if decision not in UNDECIDED:
                yield place, (fact.at, fact.by, decision, waiting.get(fact.strand, ""), fact.message)
            case Added(role=role):
                yield place, (fact.at, fact.by, "message", role, fact.content)
            case Sent(name=name):
                yield place, (fact.at, fact.by, "signal", name, "")
            case _:
                pass


def read_waiting_now(run: str, tape: Tape) -> Iterator[WaitingNow]:
    """Yield what a run waits for."""
    for call in waiting_calls(tape):
        yield WaitingNow(run, f"{call['strand']}:{call['n']}", shorten(call["tool"]), shorten(call["reason"]))
