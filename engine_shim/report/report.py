"""Report: the auditor's report of a store, as JSON. Each table has the command that shows the same."""

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict

from agent_core.audit.report.incidents import Incident, IncidentTimes
from agent_core.audit.report.listing import Listing
from agent_core.audit.report.people import PersonAct, PersonActs, WaitingNow
from agent_core.audit.report.policies import PolicyEffect, PolicySeen
from agent_core.audit.report.refused import Refused, RefusedTimes
from agent_core.audit.report.versions import VersionSeen
from engine_shim.report.erasures import Deletion, Erasure

Row = TypeVar("Row")
Verdict = Literal["complete", "whole so far", "erased", "encrypted", "newer", "not ok"]


def _untitled(schema: dict[str, Any]) -> None:
    del schema["title"]


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows of facts; `left_out` says how many more there are. `command` shows the same; or `each` shows that of one
    row, with the row's run in the place of RUN."""

    __pydantic_config__: ClassVar = ConfigDict(json_schema_extra=lambda schema, _: _untitled(schema))
    """Its title would be the same for rows of each kind, and clients would be made with one class for all."""
    rows: list[Row]
    left_out: int
    command: str | None = None
    each: str | None = None


def table(listing: Listing[Row], *, command: str | None = None, each: str | None = None) -> Table[Row]:
    """Return a listing with the command that shows it."""
    return Table(listing.rows, listing.left_out, command, each)


@dataclass(frozen=True, slots=True)
class WorkflowRuns:
    """The runs of a workflow by status, and the failed ones by the kind of their error."""

    workflow: str
    runs: int
    statuses: dict[str, int]
    errors: dict[str, int]


@dataclass(frozen=True, slots=True)
class AgentRuns:
    """The runs of an agent by why they ended."""

    agent: str
    runs: int
    finish_reasons: dict[str, int]
    steps: int
    tool_calls: int


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The calls of a tool."""

    tool: str
    calls: int
    failed: int


@dataclass(frozen=True, slots=True)
class ModelReplies:
    """The replies of a model; `cost` is in USD, null where no price is known."""

    model: str
    replies: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class ChangedRun:
    """A run that would have gone otherwise under the newest policy of the agent in `strand`; `command` shows it."""

    run: str
    strand: str
    calls: int
    why: str
    command: str


@dataclass(frozen=True, slots=True)
class VerifiedRuns:
    """How many runs were verified to be `complete`, `whole so far` without an end, `erased`, `encrypted` by a key that
    is not here, of a `newer` version, or `not ok`, and what was checked of their seals; `run` is one of them."""

    verdict: Verdict
    seal: str
    runs: int
    run: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a run, or, without a run, with the ledger."""

    run: str
    why: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of the whole store: its head and count, and how many runs it says have ended, wait, or were deleted;
    how many are `older` than it, and of `others` than this program."""

    head: str
    count: int
    ended: int
    rested: int
    deleted: int
    older: int
    others: int


@dataclass(frozen=True, slots=True)
class Report:
    """What the runs of a store say that began at `since` or later, null for all; of one `workflow`, null for all.

    `runs` are those that were looked at; `runs_left_out` are older ones of the period that were not. `first` and `last`
    are when the first and the last of them began. What `damaged` runs say is counted among workflows, agents, tools and
    models, as `stats` does, unless they are `unreadable`; no other table tells of it.
    """

    format: Literal["agent-core/report/1"]
    made_at: str
    version: str
    store: str | None
    tenant: str | None
    since: str | None
    workflow: str | None
    runs: int
    runs_left_out: int
    damaged: int
    unreadable: int
    first: str
    last: str
    workflows: Table[WorkflowRuns]
    agents: Table[AgentRuns]
    tools: Table[ToolCalls]
    people: Table[PersonActs]
    acts: Table[PersonAct]
    waiting: Table[WaitingNow]
    refused: Table[RefusedTimes]
    refusals: Table[Refused]
    models: Table[ModelReplies]
    versions: Table[VersionSeen]
    policies: Table[PolicySeen]
    effects: Table[PolicyEffect]
    changed_runs: Table[ChangedRun]
    incident_kinds: Table[IncidentTimes]
    incidents: Table[Incident]
    erased: Table[Erasure]
    deleted: Table[Deletion]
    verified: Table[VerifiedRuns]
    faults: Table[Fault]
    ledger: Table[Ledger]
    ledger_faults: Table[Fault]
