"""Commands that look at recorded runs: runs, show, verify, replay."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_core.errors import JournalError
from agent_core.journal.replay import Replay
from agent_core.journal.replay import replay as replay_run
from agent_core.journal.source import load
from agent_core.journal.verify import verify as verify_run
from engine_shim.cli import output
from engine_shim.cli.run import AsJson, Store
from engine_shim.runs.runner import LOOPS, default_store
from engine_shim.runs.store import SqliteRunStore

Run = Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run's id in the store, or a journal file.")]


def runs(store: Store = None, as_json: AsJson = False) -> int:
    """List the runs of the store, newest first."""
    path = store or default_store()
    entries = SqliteRunStore(path).entries() if path.exists() else []
    if as_json:
        told = ("run", "workflow", "version", "status", "started_at")
        output.document([{name: getattr(entry, name) for name in told} for entry in entries])
        return output.OK
    for entry in entries:
        output.line(f"{entry.run}  {entry.status:<10} {entry.started_at}  {entry.workflow} {entry.version}")
    return output.OK


def show(run: Run, store: Store = None, as_json: AsJson = False) -> int:
    """Show a run, record by record."""
    run_id, tape = load(*_source(run, store))
    records = [{"strand": path, "n": row.n, **row.record()} for path in sorted(tape) for row in tape[path]]
    if as_json:
        output.document({"run_id": run_id, "records": records})
        return output.OK
    output.line(f"run {run_id}")
    strand = None
    for record in records:
        if record["strand"] != strand:
            strand = record["strand"]
            output.line(strand)
        output.line(f"  {record['n']:>3} {told(record)}")
    return output.OK


def verify(
    run: Run,
    strand: Annotated[str | None, typer.Option(help="This strand and those below it.")] = None,
    head: Annotated[str | None, typer.Option(help="The head that the run or node emitted.")] = None,
    count: Annotated[int | None, typer.Option(help="How many records stood under that head.")] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Check that a run's journal is whole and as it was written."""
    source, run_id = _source(run, store)
    found = verify_run(source, run_id=run_id, strand=strand, head=head, count=count)
    told_all = {name: getattr(found, name) for name in found.__slots__}
    if as_json:
        output.document(told_all)
    elif found.ok:
        output.line(f"ok: {found.count} records, head {found.head}")
    else:
        bad = found.first_bad
        place = f" at {bad['strand']}:{bad['n']}" + (f", line {bad['line']}" if bad["line"] else "") if bad else ""
        output.line(f"NOT ok{place}: {found.why}")
    return output.OK if found.ok else output.AUDIT


def replay(run: Run, store: Store = None, as_json: AsJson = False) -> int:
    """Run the recorded run through the loop again, offline, and compare every decision."""
    source, run_id = _source(run, store)
    found = replay_run(source, run_id=run_id, loops=LOOPS)
    if as_json:
        told_all = {"identical": found.identical, "divergence": found.divergence, "tape_ended": found.tape_ended}
        output.document({**told_all, "steps": found.steps})
    else:
        output.line(replayed(found))
    return output.OK if found.identical else output.AUDIT


def replayed(found: Replay) -> str:
    """What a replay found, in a sentence."""
    if found.identical:
        return f"identical: {found.steps} steps replayed, every decision and the output came out the same"
    if found.divergence:
        return f"DIVERGED at {found.divergence['strand']}:{found.divergence['n']}: {found.divergence['now']}"
    return f"the run is unfinished: its tape ends in {found.tape_ended}"


def told(record: dict[str, Any]) -> str:
    """One record in a line."""
    kind = record["kind"]
    match record:
        case {"kind": "asked", "ask": "model"}:
            text = f"step {record['step']}: {record['messages']} messages to {record['model']}"
        case {"kind": "asked", "ask": "tool"}:
            text = f"{record['tool']} {record['args']}"
        case {"kind": "answered", "reply": "said"}:
            text = record["content"]
        case {"kind": "answered", "reply": "did"}:
            text = str(record["output"] if record["success"] else record["error"])
        case {"kind": "decided"}:
            text = str({key: value for key, value in record.items() if key not in ("kind", "strand", "n", "step")})
        case {"kind": "run_finished"}:
            text = str(record.get("finish_reason") or record.get("status"))
        case _:
            text = str(
                {key: value for key, value in record.items() if key in ("reason", "decision", "tool", "loop", "at")}
            )
    flat = " ".join(text.split())
    return f"{kind:<12} {flat if len(flat) <= 160 else f'{flat[:159]}…'}"


def _source(run: str, store: Path | None) -> tuple[Path, str | None]:
    """Where a run is: a journal file of that name, or the store."""
    if Path(run).is_file():
        return Path(run), None
    path = store or default_store()
    if not path.exists():
        raise JournalError(f"there is no file {run!r}, and no run store yet")
    return path, run
