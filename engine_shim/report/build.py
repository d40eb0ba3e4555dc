"""build_report(): the report of a store, in one walk through its runs, newest first, one run in memory at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from agent_core.audit.report.incidents import Incident
from agent_core.audit.report.listing import Listing, Row, Tally, shorten
from agent_core.audit.report.policies import Judged
from agent_core.audit.report.report import ListedRun, RunReport
from agent_core.errors import DefinitionError, JournalError
from agent_core.journal.identity import read_identity
from agent_core.journal.record import Tape
from agent_core.journal.signature import Keys
from agent_core.outputs import Json
from engine_shim.report.checked_runs import CheckedRun, check_run
from engine_shim.report.commands import Commands
from engine_shim.report.erasures import read_erasures
from engine_shim.report.report import (
    AgentRuns,
    ChangedRun,
    Fault,
    Ledger,
    ModelReplies,
    Report,
    ToolCalls,
    Verdict,
    VerifiedRuns,
    WorkflowRuns,
    table,
)
from engine_shim.runs.trial import try_replay
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.journal_runs import walk_runs
from engine_shim.store.ledger_proof import LedgerProof, prove_store
from engine_shim.store.run_store import DatabaseRunStore

RUN: Final = "RUN"


@dataclass(slots=True)
class _Checks:
    """What was verified of the runs so far."""

    tally: Tally[tuple[Verdict, str]] = field(default_factory=Tally[tuple[Verdict, str]])
    faults: Listing[Fault] = field(default_factory=Listing[Fault])

    def add(self, run: str, checked: CheckedRun) -> None:
        verdict = _find_verdict(checked)
        seal = checked.seal.partition(", there by ")  # each time is another text
        self.tally.add((verdict, f"{seal[0]}, timestamped" if seal[1] else seal[0]), run)
        if checked.fault is not None:
            self.faults.add(Fault(run, shorten(checked.fault)))

    def list(self) -> Listing[VerifiedRuns]:
        return self.tally.list(lambda key, runs, run: VerifiedRuns(*key, runs, run))


def _find_verdict(checked: CheckedRun) -> Verdict:
    if checked.found is not None and checked.found.contents == "newer":
        return "newer"
    if checked.fault is not None or checked.found is None:
        return "not ok"
    if checked.found.contents != "read":
        return checked.found.contents
    return "complete" if checked.found.complete else "whole so far"


@dataclass(slots=True)
class _Walked:
    """The runs of a store that were walked through."""

    report: RunReport = field(default_factory=RunReport)
    checks: _Checks = field(default_factory=_Checks)
    left_out: int = 0
    damaged: int = 0
    unreadable: int = 0


def build_report(
    store: DatabaseRunStore,
    wanted: RunFilter,
    *,
    keys: Keys | None = None,
    commands: Commands | None = None,
    most: int | None = None,
) -> Report:
    """Return the report of the runs that a filter admits by workflow, time and host, of at most the `most` newest ones.

    Each run is verified, with `keys` its seal as well, and the ledger of the whole store, with `keys` its erasures.
    """
    commands, made_at = commands or Commands(), datetime.now(UTC).isoformat()
    walked, proof = _walk(store, wanted, keys, most), prove_store(store.database)
    if keys is not None:
        from engine_shim.store.erase import find_erasure_faults  # loads what erases; most hosts sign nothing

        proof.faults += find_erasure_faults(store.database, keys)
    return _write(store, wanted, walked, proof, commands, made_at)


def _walk(store: DatabaseRunStore, wanted: RunFilter, keys: Keys | None, most: int | None) -> _Walked:
    walked, identity = _Walked(), read_identity(store.database.rows)
    for entry in walk_runs(store, wanted):
        if most is not None and walked.report.runs >= most:
            walked.left_out += 1
        elif (checked := check_run(store, identity, entry, keys)) is not None:
            _add(walked, entry, checked)
    return walked


def _add(walked: _Walked, entry: RunEntry, checked: CheckedRun) -> None:
    run = entry.run
    listed = ListedRun(run, entry.workflow, entry.status, entry.started_at, entry.submitter)
    walked.report.note(listed)
    walked.checks.add(run, checked)
    is_damaged = checked.found is None or checked.found.first_bad is not None
    walked.damaged += is_damaged
    if is_damaged:
        walked.report.incidents.add([Incident("damaged", run, _place_of(checked), shorten(checked.fault))])
    cannot_be_read = checked.found is not None and checked.found.contents != "read"
    try:
        if cannot_be_read:  # it was erased, its key is not here, or a newer version wrote it
            walked.report.count(listed, {})
        elif is_damaged:
            walked.report.count(listed, checked.tape)
        else:
            walked.report.add(listed, checked.tape, _judge)
    except (JournalError, AttributeError, LookupError, TypeError, ValueError) as error:
        walked.unreadable += 1
        if not is_damaged:
            walked.report.incidents.add([Incident("unreadable", run, "", shorten(f"{type(error).__name__}: {error}"))])


def _place_of(checked: CheckedRun) -> str:
    """Return the first record that is not what was written; empty where it is unknown."""
    bad = None if checked.found is None else checked.found.first_bad
    return "" if bad is None or bad["strand"] is None else f"{bad['strand']}:{bad['n']}"


def _judge(run: str, tape: Tape, policy: Json, strand: str) -> Judged:
    try:
        found = try_replay(run, lambda _: tape, policy, strand)
    except DefinitionError:  # a policy that this release would not take
        return Judged("inapplicable")
    return Judged(found.outcome, found.replay.decisions if found.replay else ())


def _write(
    store: DatabaseRunStore, wanted: RunFilter, walked: _Walked, proof: LedgerProof, commands: Commands, made_at: str
) -> Report:
    """Return all of it as tables."""
    facts, checks, identity = walked.report, walked.checks, read_identity(store.database.rows)
    erased, deleted = read_erasures(store.database, wanted.since)
    stats, show = commands.of_period("stats"), commands.of_run("show", RUN)
    verify, verify_all = commands.verify(RUN), commands.verify("--all")
    ledger = (proof.head, proof.count, proof.ended, proof.rested, proof.deleted, proof.older, proof.others)
    ledger_faults = (Fault(shorten(fault.get("run", "")), shorten(fault["why"])) for fault in proof.faults)
    return Report(
        format="agent-core/report/1",
        made_at=made_at,
        version=version("agent-core"),
        store=identity.store or None,
        tenant=identity.tenant,
        since=None if wanted.since is None else wanted.since.isoformat(),
        workflow=wanted.workflow,
        runs=facts.runs,
        runs_left_out=walked.left_out,
        damaged=walked.damaged,
        unreadable=walked.unreadable,
        first=facts.first,
        last=facts.last,
        workflows=table(_list(_list_workflows(facts)), command=stats),
        agents=table(_list(_list_agents(facts)), command=stats),
        tools=table(_list(_list_tools(facts)), command=stats),
        people=table(facts.people.list(), each=show),
        acts=table(facts.people.acts, each=show),
        waiting=table(facts.people.waiting, each=show),
        refused=table(facts.refusals.list(), each=show),
        refusals=table(facts.refusals.rows, each=show),
        models=table(_list(_list_models(facts)), command=stats),
        versions=table(facts.versions.list(), each=f"{show} --json"),
        policies=table(facts.policies.list_seen(), each=f"{show} --json"),
        effects=table(facts.policies.list_effects()),
        changed_runs=table(_list_changed(facts, commands)),
        incident_kinds=table(facts.incidents.list(), each=show),
        incidents=table(facts.incidents.rows, each=show),
        erased=table(erased, command=verify_all),
        deleted=table(deleted, command=verify_all),
        verified=table(checks.list(), each=verify),
        faults=table(checks.faults, each=verify),
        ledger=table(Listing([Ledger(*ledger)]), command=verify_all),
        ledger_faults=table(_list(ledger_faults), command=verify_all),
    )


def _list(rows: Iterator[Row]) -> Listing[Row]:
    """Return the first rows, and how many more there are."""
    listing = Listing[Row]()
    for row in rows:
        listing.add(row)
    return listing


def _ordered(totals: Mapping[str, Any], count: str) -> list[tuple[str, Any]]:
    """Return totals by name, those with the most first."""
    return sorted(totals.items(), key=lambda item: (-getattr(item[1], count), item[0]))


def _list_workflows(facts: RunReport) -> Iterator[WorkflowRuns]:
    for name, each in _ordered(facts.totals.workflows, "runs"):
        yield WorkflowRuns(shorten(name), each.runs, dict(each.statuses), dict(each.errors))


def _list_agents(facts: RunReport) -> Iterator[AgentRuns]:
    for name, each in _ordered(facts.totals.agents, "runs"):
        yield AgentRuns(shorten(name), each.runs, dict(each.reasons), each.models.replies, each.tool_calls)


def _list_tools(facts: RunReport) -> Iterator[ToolCalls]:
    for name, each in _ordered(facts.totals.tools, "calls"):
        yield ToolCalls(shorten(name), each.calls, each.failed)


def _list_models(facts: RunReport) -> Iterator[ModelReplies]:
    for name, each in _ordered(facts.totals.by_model, "replies"):
        cost = each.cost if each.priced else None
        yield ModelReplies(shorten(name), each.replies, each.input_tokens, each.output_tokens, cost)


def _list_changed(facts: RunReport, commands: Commands) -> Listing[ChangedRun]:
    found = facts.policies.runs
    rows = [
        ChangedRun(each.run, each.strand, each.calls, each.why, commands.replay(each.run, each.strand, each.settings))
        for each in found.rows
    ]
    return Listing(rows, found.left_out)
