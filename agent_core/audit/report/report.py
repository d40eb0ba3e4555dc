"""RunReport: what many runs did, one after another, newest first, without any of them in memory. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

from agent_core.audit.report.incidents import Incidents, read_incidents
from agent_core.audit.report.people import People, read_acts, read_waiting_now
from agent_core.audit.report.policies import Judged, Policies, read_agents
from agent_core.audit.report.refused import Refusals, read_refused
from agent_core.audit.report.versions import Versions, read_versions
from agent_core.audit.report.written import check_written
from agent_core.audit.taken_over import leave_taken_over
from agent_core.audit.totals import Totals
from agent_core.journal.facts import Fact
from agent_core.journal.path import CONTROL, SEAL
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Tape
from agent_core.journal.started import read_started
from agent_core.outputs import Json
from agent_core.records import AgentStarted, Kind
from agent_core.statuses import ListedStatus

READ: frozenset[Kind] = frozenset(
    {
        *("run_started", "asked", "answered", "decided", "waiting", "resolved"),
        *("message", "signal", "run_finished"),
    }
)
"""The records that the report tells of."""
JudgeTape = Callable[[str, Tape, Json, str], Judged]
"""Judges a run, by its id and tape, by a policy of the agent in one strand."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """What a list says of a run: `submitter` is who handed it to a server."""

    run: str
    workflow: str
    status: ListedStatus
    started_at: str
    submitter: str | None = None


@dataclass(slots=True)
class RunReport:
    """The facts of many runs so far."""

    runs: int = 0
    first: str = ""
    last: str = ""
    totals: Totals = field(default_factory=Totals)
    people: People = field(default_factory=People)
    refusals: Refusals = field(default_factory=Refusals)
    versions: Versions = field(default_factory=Versions)
    policies: Policies = field(default_factory=Policies)
    incidents: Incidents = field(default_factory=Incidents)

    def note(self, listed: ListedRun) -> None:
        """Note a run that is listed, whether or not it can be read."""
        self.runs += 1
        self.first, self.last = listed.started_at, self.last or listed.started_at

    def count(self, listed: ListedRun, tape: Tape) -> None:
        """Count what the records of a damaged run say, as far as they can be read, and tell nothing else of it."""
        self._count(listed, read_tape(_leave_seal(tape), READ))

    def add(self, listed: ListedRun, tape: Tape, judge: JudgeTape) -> None:
        """Add what the records of a run say. What records raise that no release wrote is raised before anything is
        added."""
        run, tape = listed.run, _leave_seal(tape)
        facts = read_tape(tape, READ)
        own = leave_taken_over(facts)
        acts, waiting = list(read_acts(run, own)), list(read_waiting_now(run, tape))
        refused = list(read_refused(run, own, lambda strand: _read_start(tape, strand)))
        incidents, agents = list(read_incidents(run, own)), list(read_agents(facts))
        versions = list(read_versions(facts, _read_first(tape)))
        self._count(listed, facts)
        self.people.add(run, acts, waiting, listed.submitter)
        self.refusals.add(refused)
        self.incidents.add(incidents)
        self.versions.add(run, listed.started_at, versions)
        self.policies.add(run, listed.started_at, agents, lambda policy, strand: judge(run, tape, policy, strand))

    def _count(self, listed: ListedRun, facts: Iterable[Fact]) -> None:
        own = [each for each in facts if each.strand != CONTROL]
        check_written(own)
        self.totals.add_facts(listed.workflow, listed.status, own)


def _leave_seal(tape: Tape) -> Tape:
    return {path: rows for path, rows in tape.items() if path != SEAL}


def _read_start(tape: Tape, strand: str) -> AgentStarted:
    """Return how the agent in a strand began."""
    return cast(AgentStarted, read_started(tape[strand][0]))


def _read_first(tape: Tape) -> Json:
    """Return the first record of the run itself."""
    root = next((path for path in tape if "/" not in path and path != CONTROL), None)
    return {} if root is None else read_started(tape[root][0])
