"""What was refused and why: calls by a policy, a limit or a person, plans, and questions by a model's vendor. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from agent_core.audit.explain import explain_limit, explain_verdict
from agent_core.audit.report.listing import Listing, Tally, shorten
from agent_core.effects import ModelReply
from agent_core.journal.facts import Answered, Decided, Fact, Resolved, Waiting
from agent_core.records import AgentStarted

FindStart = Callable[[str], AgentStarted]
"""Returns how the agent in a strand began."""


@dataclass(frozen=True, slots=True)
class RefusedTimes:
    """How often something was refused for one reason."""

    what: str
    reason: str
    times: int
    run: str


@dataclass(frozen=True, slots=True)
class Refused:
    """One refusal: `what` is the tool, the plan or the model, `why` the rule with its key and value, or what was said.

    `reason` is a finish reason; `denied`, by a person; `plan`; or `model`, whose vendor did not pass on its reply.
    """

    run: str
    place: str
    agent: str
    what: str
    reason: str
    why: str


@dataclass(slots=True)
class Refusals:
    """What was refused in many runs."""

    tally: Tally[tuple[str, str]] = field(default_factory=Tally[tuple[str, str]])
    rows: Listing[Refused] = field(default_factory=Listing[Refused])

    def add(self, refused: Iterable[Refused]) -> None:
        for each in refused:
            self.tally.add((each.what, each.reason), each.run)
            self.rows.add(each)

    def list(self) -> Listing[RefusedTimes]:
        return self.tally.list(lambda key, times, run: RefusedTimes(*key, times, run))


def read_refused(run: str, facts: Iterable[Fact], find_start: FindStart) -> Iterator[Refused]:
    """Yield what a run refused."""
    waiting: dict[str, str] = {}
    for fact in facts:
        agent = shorten(fact.run.name) if fact.run is not None and fact.run.is_agent else ""
        for what, reason, why in _read_refusal(fact, find_start, waiting):
            yield Refused(run, f"{fact.strand}:{fact.n}", agent, *map(shorten, (what, reason, why)))


def _read_refusal(fact: Fact, find_start: FindStart, waiting: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield what a record refused, the reason, and why."""
    match fact:
        case Decided():
            if fact.refused is not None:
                yield "plan", "plan", fact.refused["message"]
            yield from _read_calls(fact, find_start)
        case Waiting(tool=str(tool)):
            waiting[fact.strand] = tool
        case Resolved(decision="deny"):
            yield waiting.get(fact.strand, ""), "denied", fact.message or f"{fact.by} denied it"
        case Answered(answer=ModelReply(refusal=str(refusal), model=model)) if refusal:
            yield model, "model", refusal
        case _:
            pass


def _read_calls(decided: Decided, find_start: FindStart) -> Iterator[tuple[str, str, str]]:
    refused = [call for call in decided.calls if decided.limit or call["verdict"] == "refuse"]
    if not refused or decided.run is None:
        return
    started = find_start(decided.run.path)
    for call in refused:
        if call["verdict"] == "refuse":
            yield call["tool"], str(call.get("reason")), explain_verdict(call, started)
        elif decided.limit:
            yield call["tool"], decided.limit, explain_limit(decided.limit, started)
