"""What must hold of a run in a store, whatever has happened to it."""

import re
from collections import Counter
from typing import Any

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.journal.chain import check_chains
from agent_core.journal.control import waiting_calls
from agent_core.journal.record import Tape
from engine_shim import RunResult
from engine_shim.runs.loops import LOOPS
from engine_shim.store.run_store import RunStore
from support.state.workflows import CALLS, STEPS

ENDED = ("completed", "failed", "cancelled")


def status_of(tape: Tape) -> str | None:
    """How a run ended; None when it has not."""
    last = tape["flow"][-1].record() if "flow" in tape else {}
    return last["status"] if last.get("kind") == "run_finished" else None


def check_grown(run: str, before: Tape, now: Tape) -> None:
    """Chains hold, and rows only ever were appended."""
    check_chains(run, now)
    for path, rows in before.items():
        assert now.get(path, [])[: len(rows)] == rows, f"rows of {run}/{path} were changed"


def check_tape(run: str, tape: Tape, store: RunStore) -> None:
    """Whatever was left half done, the run decides the same again as far as it went, within its limits."""
    records = {path: [row.record() for row in rows] for path, rows in tape.items()}
    said: Counter[str] = Counter()
    for path, told in records.items():
        if told[0].get("loop") == "agent":
            said[re.sub(r"~\d+$", "", path)] += sum(record.get("reply") == "said" for record in told)
    assert all(count <= STEPS for count in said.values()), said
    for agent in said:
        inside = re.compile(re.escape(agent) + r"(~\d+)?(/|$)")
        ids = {
            (path, record["id"])
            for path, told in records.items()
            if inside.match(path)
            for record in told
            if record["kind"] == "asked" and record["ask"] == "tool"
        }
        assert len(ids) <= CALLS, ids
    if "flow" in tape:
        divergence = replay(store.journal, run_id=run, loops=LOOPS).divergence
        assert divergence is None, divergence


def check_result(result: RunResult, tape: Tape, *, alone: bool) -> None:
    """What holds of every result and the tape then; `alone` when nobody else can have gone further meanwhile."""
    rows = [row for each in tape.values() for row in each]
    places = {(entry["strand"], entry["n"]) for entry in result.waiting}
    if result.status in ENDED:
        assert status_of(tape) == result.status
        assert verify(rows, run_id=result.run_id, **result.journal).ok
        assert replay(rows, run_id=result.run_id, loops=LOOPS).identical
    elif alone:
        assert status_of(tape) is None
        assert verify(rows, run_id=result.run_id, **result.journal).ok
        assert places == {(entry["strand"], entry["n"]) for entry in waiting_calls(tape)}
    assert bool(places) <= (result.status in ("waiting", "paused", "failed", "cancelled"))


def check_status(run: str, store: RunStore, *, was_let_go: bool = False) -> None:
    """What a list of runs says of one that nobody drives agrees with its journal."""
    tape, entry = store.journal.load(run), store.entry(run)
    assert (entry is None) == (not tape), f"{run}: {entry} and {list(tape)}"
    if entry is None:
        return
    ended: Any = status_of(tape)
    assert entry.status == ended if ended or entry.status in ENDED else True, f"{entry} ended as {ended}"
    if not ended:
        is_answered_late = any(row.record().get("decision") == "late" for rows in tape.values() for row in rows)
        is_due = entry.status == "pending" and (is_answered_late or was_let_go)
        assert is_due or entry.status in ("waiting", "paused"), entry
        assert (entry.status == "waiting") <= bool(waiting_calls(tape)), f"{entry}, and nothing waits"


def check_ended(run: str, store: RunStore) -> None:
    """A run that has come to its end is proven."""
    told = verify(store.journal, run_id=run)
    assert told.ok, told
    assert replay(store.journal, run_id=run, loops=LOOPS).identical
    entry = store.entry(run)
    assert entry is not None
    assert entry.status == status_of(store.journal.load(run))
