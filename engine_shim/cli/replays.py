"""Replays of the runs of a store, and a table of their outcomes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from agent_core.audit.replay import Replay, replay_tape
from agent_core.audit.signature import split_own_strands
from agent_core.errors import Damaged, DefinitionError
from agent_core.journal.chain import is_finished
from agent_core.journal.record import Tape
from engine_shim.cli import output
from engine_shim.runs.loops import LOOPS
from engine_shim.runs.run_list import list_runs
from engine_shim.runs.store import RunFilter, SqliteRunStore

_FINE: Final = {"identical", "unfinished", "inapplicable"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """The replay of one run: `outcome` is identical, diverged, unfinished, damaged or unreadable.

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
    """A line for each run, and how many have each outcome."""
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


def runs_since(store: SqliteRunStore, since: datetime | None) -> list[tuple[str, str]]:
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
    try:
        tape = load(run)
        found = replay_tape(run, tape, policy=policy, strand=strand, loops=LOOPS)
        outcome, at = _outcome(found, split_own_strands(tape)[0], policy is not None)
    except Damaged as error:
        return Replayed(run, workflow, "damaged", f"{error.path}:{error.n}", why=str(error))
    except Exception as error:  # a sound chain over nonsense may break a loop in any way: the other runs go on
        if isinstance(error, DefinitionError) and error.where.startswith("policy"):
            if not _lacks_tool(error):
                raise
            return Replayed(run, workflow, "inapplicable", why=str(error))
        return Replayed(run, workflow, "unreadable", why=str(error) or type(error).__name__)
    changed = sum(decision["recorded"] != decision["now"] for decision in found.decisions)
    return Replayed(run, workflow, outcome, at, found.steps, changed, found.why)


def _lacks_tool(error: DefinitionError) -> bool:
    """Whether the policy allows a tool that this one run does not have."""
    return error.where.startswith("policy/allowed_tools/")


def _outcome(found: Replay, own: Tape, varied: bool) -> tuple[str, str | None]:
    """The outcome of a replay, and where it differs."""
    if found.identical:
        return "identical", None
    if found.divergence is not None:
        at = f"{found.divergence['strand']}:{found.divergence['n']}"
        return ("changed" if varied else "diverged"), at
    return ("outlived" if varied and is_finished(own, _root(own)) else "unfinished"), None


def _root(own: Tape) -> str:
    return next((path for path in own if "/" not in path), "")
