"""Replays of the runs of a store, and a table of their outcomes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from agent_core.journal.record import Tape
from engine_shim.cli import output
from engine_shim.runs.trial import try_replay
from engine_shim.store.entries import RunFilter
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.run_store import DatabaseRunStore

_FINE: Final = {"identical", "unfinished", "inapplicable", "erased"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """The replay of one run: `outcome` is identical, diverged, unfinished, damaged, unreadable or erased.

    Under another policy it may also be changed, outlived (the run would have gone on where its tape ends), or
    inapplicable: the policy allows a tool that the run did not have.
    `at` is "strand:n" of the first difference or damage; `changed` counts the decisions that come out differently,
    counterfactual ones included.
    """

    run_id: str
    workflow: str
    outcome: str
    at: str | None = None
    steps: int = 0
    changed: int = 0
    why: str | None = None


def write_table(found: Sequence[Replayed], *, as_json: bool) -> int:
    """Write the outcomes, and how many there are of each; returns the exit code."""
    if as_json:
        output.document({"runs": [asdict(each) for each in found], "outcomes": Counter(e.outcome for e in found)})
    else:
        for line in _table(found):
            output.line(line)
    return output.OK if all(each.outcome in _FINE for each in found) else output.AUDIT


def _table(found: Sequence[Replayed]) -> list[str]:
    """Return a line for each run, and how many have each outcome."""
    cells = [("run", "workflow", "outcome", "steps", "changed decisions"), *map(_cells, found)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    counts = Counter(each.outcome for each in found)
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in counts.most_common())
    total = output.count(len(found), "run")
    return [*(lines if found else []), f"{total}: {outcomes}" if outcomes else total]


def _cells(each: Replayed) -> tuple[str, ...]:
    outcome = f"{each.outcome} at {each.at}" if each.at else each.outcome
    return each.run_id, each.workflow, outcome, str(each.steps), str(each.changed)


def runs_since(store: DatabaseRunStore, since: datetime | None) -> list[tuple[str, str]]:
    """Run and workflow of those that began then or later, newest first."""
    return [(entry.run, entry.workflow) for entry in list_runs(store, RunFilter(since=since))]


def try_run(
    run: str,
    workflow: str,
    load: Callable[[str], Tape],
    policy: Mapping[str, Any] | None,
    strand: str | None = None,
) -> Replayed:
    """Replay one run, whatever is wrong with it; with a `strand`, under the policy in that agent alone."""
    found = try_replay(run, load, policy, strand)
    at = f"{found.place['strand']}:{found.place['n']}" if found.place else None
    steps, decisions = (found.replay.steps, found.replay.decisions) if found.replay else (0, ())
    changed = sum(decision["recorded"] != decision["now"] for decision in decisions)
    return Replayed(run, workflow, found.outcome, at, steps, changed, found.why)
