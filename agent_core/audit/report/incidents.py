"""What went otherwise than it should: writes in doubt, and what was tried again. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from agent_core.audit.report.listing import Listing, Tally, shorten
from agent_core.effects import Failed, ModelReply
from agent_core.journal.facts import Answered, Call, Fact, Question, Resolved, RunStarted, Waiting
from agent_core.journal.path import last_segment, parse_segment

IncidentKind = Literal[
    "in doubt", "late answer", "asked again", "further attempt", "run retried", "damaged", "unreadable"
]
UNDECIDED: Final = "not decided yet"


@dataclass(frozen=True, slots=True)
class IncidentTimes:
    """How many incidents of a kind there were."""

    kind: IncidentKind
    times: int
    run: str


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident.

    `in doubt`: a write may or may not have happened, and `what` became of it; `late answer`: its answer came after
    all. `asked again`: a model or a tool was asked more than once for one answer. `further attempt`: a node was
    visited again after it had failed. `run retried`: the run retries a failed one. `damaged`: a record is not what was
    written; `unreadable`: the run cannot be read.
    """

    kind: IncidentKind
    run: str
    place: str
    what: str


@dataclass(slots=True)
class Incidents:
    """The incidents of many runs."""

    tally: Tally[IncidentKind] = field(default_factory=Tally[IncidentKind])
    rows: Listing[Incident] = field(default_factory=Listing[Incident])

    def add(self, incidents: Iterable[Incident]) -> None:
        for each in incidents:
            self.tally.add(each.kind, each.run)
            self.rows.add(each)

    def list(self) -> Listing[IncidentTimes]:
        return self.tally.list(IncidentTimes)


def read_incidents(run: str, facts: Iterable[Fact]) -> Iterator[Incident]:
    """Yield the incidents of a run, strand by strand."""
    doubts: dict[str, tuple[str, str]] = {}
    for fact in facts:
        place = f"{fact.strand}:{fact.n}"
        match fact:
            case Waiting(reason="in_doubt", tool=str(tool)):
                doubts[fact.strand] = place, tool
            case Resolved(decision="late"):
                _, tool = doubts.pop(fact.strand, ("", ""))
                yield Incident("late answer", run, place, shorten(tool))
            case Resolved() if fact.strand in doubts:
                doubt, tool = doubts.pop(fact.strand)
                yield Incident("in doubt", run, doubt, shorten(f"{tool}: {fact.decision} by {fact.by}"))
            case Answered(answer=ModelReply(requests=requests) | Failed(requests=requests)) if requests > 1:
                yield Incident("asked again", run, place, f"{_name(fact)}: {requests} requests")
            case RunStarted(begun=begun) if begun.forked is not None and begun.forked.get("retry"):
                yield Incident("run retried", run, place, shorten(begun.forked["run"]))
            case _:
                pass
        if fact.n == 0 and (attempt := _further_attempt(fact.strand)):
            yield Incident("further attempt", run, place, attempt)
    for doubt, tool in doubts.values():
        yield Incident("in doubt", run, doubt, shorten(f"{tool}: {UNDECIDED}"))


def _name(fact: Answered) -> str:
    match fact.asked:
        case Question(model=name) | Call(tool=name):
            return shorten(name)
        case _:
            return ""


def _further_attempt(strand: str) -> str:
    """Return what is visited again by a strand; empty for a first visit."""
    visit = parse_segment(last_segment(strand))
    return f"{shorten(visit.name)}: attempt {visit.item + 1}" if visit.name is not None and visit.item else ""
