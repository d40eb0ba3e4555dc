"""Policies that changed, and what the newest one would have changed in the earlier runs. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple

import orjson

from agent_core.audit.report.listing import Listing, shorten
from agent_core.audit.whatif import VARIABLE_KEYS
from agent_core.config import AgentConfig
from agent_core.journal.facts import Fact, RecordedRun, RunStarted
from agent_core.outputs import Json, PolicyDecision

MOST_AGENTS: Final = 200
MOST_POLICIES: Final = 20
"""Policies of one agent that are told apart."""
MOST_JUDGED: Final = 500
"""Runs of one agent that are judged by its newest policy, those that began last."""
FEW: Final = 5
"""Runs that are named among those that would have gone otherwise."""
CHANGED: Final = ("changed", "outlived")


class Judged(NamedTuple):
    """What came of one run under another policy: the outcome of a replay, and what is decided about its calls."""

    outcome: str
    decisions: Sequence[PolicyDecision] = ()


Judge = Callable[[Json, str], Judged]
"""Judges a run by a policy, of the agent in one strand alone."""


@dataclass(frozen=True, slots=True)
class PolicySeen:
    """A policy of an agent, by its digest; `run` is the first that had it. `changes` are those to the policy that was
    first seen before it, key by key."""

    workflow: str
    agent: str
    policy: str
    first_seen: str
    last_seen: str
    run: str
    runs: int
    changes: list[str]


@dataclass(frozen=True, slots=True)
class PolicyEffect:
    """What the newest policy of an agent would have changed in its earlier runs under others.

    `runs` were judged, of which `changed` had a decision that comes out otherwise, or would have gone on; of those that
    were `not_judged`, `reasons` says why. `verdicts` count the `calls` that are decided otherwise by "was → now".
    Calls of `unknown_tools` cannot be judged: the earlier runs did not have them.
    """

    workflow: str
    agent: str
    policy: str
    runs: int
    changed: int
    not_judged: int
    reasons: dict[str, int]
    calls: int
    verdicts: dict[str, int]
    unknown_tools: int


@dataclass(frozen=True, slots=True)
class ChangedRun:
    """A run that would have gone otherwise under `settings`, which differ from what the agent in `strand` had."""

    run: str
    strand: str
    outcome: str
    calls: int
    why: str
    settings: dict[str, Any]


@dataclass(slots=True)
class _Agent:
    """The policies of one agent, the newest first, and what came of judging its earlier runs by that."""

    seen: list[tuple[Json, PolicySeen]] = field(default_factory=list[tuple[Json, PolicySeen]])
    runs: int = 0
    changed: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    verdicts: Counter[str] = field(default_factory=Counter[str])
    unknown_tools: int = 0
    named: int = 0


@dataclass(slots=True)
class Policies:
    """The policies in many runs, which come newest first: each is judged when it is read, and not kept."""

    agents: dict[tuple[str, str], _Agent] = field(default_factory=dict[tuple[str, str], _Agent])
    runs: Listing[ChangedRun] = field(default_factory=Listing[ChangedRun])
    agents_left_out: int = 0
    policies_left_out: int = 0

    def add(self, run: str, at: str, agents: Iterable[tuple[RecordedRun, Json]], judge: Judge) -> None:
        """Note the policy of each agent of a run, and judge the run where its agent has a newer one."""
        noted: set[tuple[str, str]] = set()
        for begun, policy in agents:
            key = shorten(begun.workflow), shorten(begun.name)
            if key not in self.agents and len(self.agents) == MOST_AGENTS:
                self.agents_left_out += 1
                continue
            agent = self.agents.setdefault(key, _Agent())
            if key not in noted:
                noted.add(key)
                self._note(agent, key, policy, run, at)
            if settings := changes_between(policy, agent.seen[0][0]):
                self._judge(agent, run, begun, settings, judge)

    def list_seen(self) -> Listing[PolicySeen]:
        """Return the policies of agents that had more than one, in the order of time."""
        listing = Listing[PolicySeen](left_out=self.policies_left_out)
        for agent in self._changed():
            first, *later = sorted(agent.seen, key=lambda each: each[1].first_seen)
            listing.add(first[1])
            for (before, _), (after, seen) in pairwise([first, *later]):
                listing.add(replace(seen, changes=describe_changes(before, after)))
        return listing

    def list_effects(self) -> Listing[PolicyEffect]:
        listing = Listing[PolicyEffect](left_out=self.agents_left_out)
        for agent in self._changed():
            newest, counts = agent.seen[0][1], agent.verdicts
            about = (newest.workflow, newest.agent, newest.policy, agent.runs, agent.changed)
            left = (agent.reasons.total(), dict(agent.reasons))
            listing.add(PolicyEffect(*about, *left, counts.total(), dict(counts), agent.unknown_tools))
        return listing

    def _changed(self) -> list[_Agent]:
        return [self.agents[key] for key in sorted(self.agents) if len(self.agents[key].seen) > 1]

    def _note(self, agent: _Agent, key: tuple[str, str], policy: Json, run: str, at: str) -> None:
        for index, (known, seen) in enumerate(agent.seen):
            if not changes_between(policy, known):
                agent.seen[index] = known, replace(seen, first_seen=at, run=run, runs=seen.runs + 1)
                return
        if len(agent.seen) == MOST_POLICIES:
            self.policies_left_out += 1
        else:
            agent.seen.append((policy, PolicySeen(*key, digest_of(policy), at, at, run, 1, [])))

    def _judge(self, agent: _Agent, run: str, begun: RecordedRun, settings: Json, judge: Judge) -> None:
        if agent.runs + agent.reasons.total() >= MOST_JUDGED:
            agent.reasons["left out"] += 1
            return
        settings = narrow(settings, begun.tools)
        found = judge(settings, begun.path) if settings else Judged("identical")
        if not found.decisions and found.outcome not in ("identical", "unfinished", *CHANGED):
            agent.reasons[found.outcome] += 1
            return
        agent.runs += 1
        own = [each for each in found.decisions if each["strand"] == begun.path]
        agent.unknown_tools += sum(each["tool"] not in begun.tools for each in own)
        changed = [each for each in found.decisions if each["recorded"] != each["now"]]
        agent.verdicts.update(f"{each['recorded']} → {each['now']}" for each in changed)
        if changed or found.outcome in CHANGED:
            agent.changed += 1
            agent.named += 1
            if agent.named <= FEW:
                why = next((each["why"] or "" for each in changed), "the run would have gone on")
                self.runs.add(ChangedRun(run, begun.path, found.outcome, len(changed), shorten(why), settings))


def read_agents(facts: Iterable[Fact]) -> Iterator[tuple[RecordedRun, Json]]:
    """Yield the runs of agents among the facts of a run, each with its policy."""
    for fact in facts:
        if isinstance(fact, RunStarted) and fact.begun.is_agent:
            yield fact.begun, policy_of(fact.begun)


def policy_of(agent: RecordedRun) -> Json:
    """Return what a policy may vary of an agent, but for what its caller set otherwise for this turn."""
    own = VARIABLE_KEYS.difference(agent.note["overrides"] if agent.note else ())
    known = {**_defaults(), **agent.config}
    values = {key: known[key] for key in sorted(own) if key in known}
    if "allowed_tools" in values:
        values["allowed_tools"] = [_leave_defaults(each) for each in values["allowed_tools"]]
    return values


@cache
def _defaults() -> Json:
    """Return what older releases, which did not know the keys, would have recorded."""
    fields = {key: AgentConfig.model_fields[key] for key in sorted(VARIABLE_KEYS)}
    return {key: each.get_default(call_default_factory=True) for key, each in fields.items() if not each.is_required()}


def _leave_defaults(entry: str | Json) -> str | Json:
    """Return an entry of a whitelist without what it leaves to the host."""
    if isinstance(entry, str):
        return entry
    named = {key: value for key, value in entry.items() if value is not None and value is not False and value != {}}
    return {"tool": str(entry["tool"]), **named}


def digest_of(policy: Json) -> str:
    """Return by what a person tells one policy from another."""
    return sha256(orjson.dumps(policy, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


def changes_between(before: Json, after: Json) -> Json:
    """Return what a policy has otherwise than the one before, of the keys that both have."""
    return {key: value for key, value in after.items() if key in before and before[key] != value}


def describe_changes(before: Json, after: Json) -> list[str]:
    """Return the keys of a policy that differ from the one before, with both values."""
    changes = changes_between(before, after)
    return [f"{key}: {shorten(before[key])} → {shorten(value)}" for key, value in changes.items()]


def narrow(settings: Json, tools: Mapping[str, Any]) -> Json:
    """Return settings without the tools that a run did not have: a replay has no schema to judge their calls by."""
    if "allowed_tools" not in settings:
        return settings
    entries = [each for each in settings["allowed_tools"] if _names_one(each, tools)]
    return {**settings, "allowed_tools": entries}


def _names_one(entry: str | Json, tools: Mapping[str, Any]) -> bool:
    name = entry if isinstance(entry, str) else str(entry["tool"])
    return any(fnmatchcase(code, name) for code in tools)
