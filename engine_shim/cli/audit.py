"""Commands that look at recorded runs: runs, show, verify, replay."""

import json
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_core.audit.replay import Replay
from agent_core.audit.replay import replay as replay_run
from agent_core.audit.verify import verify as verify_run
from agent_core.audit.whatif import VARIABLE_KEYS
from agent_core.config import read_config
from agent_core.errors import DefinitionError
from agent_core.journal.chain import check_chains
from agent_core.journal.source import load_run
from agent_core.run.secrets import signing_keys
from engine_shim.cli import output
from engine_shim.cli.replays import replay_all
from engine_shim.cli.run import AsJson, Store
from engine_shim.cli.timespec import moment
from engine_shim.errors import RunNotFound
from engine_shim.runs.loops import LOOPS
from engine_shim.runs.store import RunEntry, SqliteRunStore, default_store
from utools.document import read_document

Run = Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run's id in the store, or a journal file.")]

LONGEST = 160
UNDER_WAY = ("pending", "running")


def runs(store: Store = None, as_json: AsJson = False) -> int:
    """List the runs of the store, newest first."""
    held = SqliteRunStore(store or default_store())
    entries = held.entries()
    driven = {entry.run: held.leases.holder(entry.run) for entry in entries if entry.status in UNDER_WAY}
    if as_json:
        output.document([{**as_data(entry), "driver": driven.get(entry.run)} for entry in entries])
        return output.OK
    for entry in entries:
        left = entry.run in driven and driven[entry.run] is None
        output.line(as_line(entry) + ("  its process died; `agent-core resume` goes on" if left else ""))
    return output.OK


def as_data(entry: RunEntry) -> dict[str, str]:
    """A run of the store as a document tells it."""
    return {name: getattr(entry, name) for name in ("run", "workflow", "version", "status", "started_at")}


def as_line(entry: RunEntry) -> str:
    """A run of the store as a list tells it."""
    at = entry.started_at[:19].replace("T", " ")
    return f"{entry.run}  {entry.status:<9}  {at}  {entry.workflow} {entry.version}"


def show(run: Run, store: Store = None, as_json: AsJson = False) -> int:
    """Show a run, record by record."""
    run_id, tape = load_run(*source_of(run, store))
    check_chains(run_id, tape)
    records = [{"strand": path, "n": row.n, **row.record()} for path in sorted(tape) for row in tape[path]]
    if as_json:
        output.document({"run_id": run_id, "records": records})
        return output.OK
    for strand, group in groupby(records, key=itemgetter("strand")):
        output.line(strand)
        for record in group:
            output.line(f"  {record['n']:>3}  {told(record)}")
    return output.OK


def verify(
    run: Run,
    strand: Annotated[str | None, typer.Option(help="This strand and those below it.")] = None,
    head: Annotated[str | None, typer.Option(help="The head that the run or node emitted.")] = None,
    count: Annotated[int | None, typer.Option(help="How many records stood under that head.")] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Check that a run's journal is whole and as it was written; sealed, too, when this host has a key."""
    source, run_id = source_of(run, store)
    found = verify_run(source, run_id=run_id, strand=strand, head=head, count=count, keys=signing_keys())
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


def replay(
    run: Annotated[str | None, typer.Argument(metavar="RUN|FILE", help="A run's id, or a journal file.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every run of the store, and a table of them.")] = False,
    since: Annotated[str | None, typer.Option(help="With --all: begun since a date, or in the last 7d.")] = None,
    policy: Annotated[Path | None, typer.Option(help="A policy to judge the run by instead, JSON or YAML.")] = None,
    change: Annotated[list[str] | None, typer.Option("--set", help="One key of that policy, key=value.")] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Run the recorded run through the loop again, offline, and compare every decision."""
    other = _policy(policy, change or [])
    if every and run is None:
        began = moment("--since", since, datetime.now(UTC)) if since is not None else None
        return replay_all(store or default_store(), began, other, as_json=as_json)
    if every or run is None or since is not None:
        raise typer.BadParameter("replay takes one run, or --all, which --since goes with")
    source, run_id = source_of(run, store)
    found = replay_run(source, run_id=run_id, policy=other, loops=LOOPS)
    if as_json:
        told_all = {"identical": found.identical, "divergence": found.divergence, "tape_ended": found.tape_ended}
        output.document({**told_all, "steps": found.steps, "decisions": list(found.decisions)})
    else:
        output.line(replayed(found) if other is None else judged(found))
    return output.OK if found.identical else output.AUDIT


def _policy(file: Path | None, changes: list[str]) -> dict[str, Any] | None:
    """The policy of --policy and --set; None when neither was given. A value is JSON, else it is text."""
    if file is None and not changes:
        return None
    policy = read_document(file, "policy").data if file is not None else {}
    if not isinstance(policy, dict):
        raise typer.BadParameter('a policy is an object, such as {"max_steps": 3}')
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set {change!r}: write key=value")
        try:
            policy[key] = json.loads(value)
        except ValueError:
            policy[key] = value
    if unknown := sorted(set(policy) - VARIABLE_KEYS):
        raise typer.BadParameter(f"a policy may not vary {unknown[0]!r}, only {', '.join(sorted(VARIABLE_KEYS))}")
    try:
        read_config({"model": "any", "max_steps": 1, "allowed_tools": [], "prompt": "any", **policy}, where="policy")
    except DefinitionError as error:
        raise typer.BadParameter(str(error)) from None
    return policy


def judged(found: Replay) -> str:
    """What another policy would have changed: a line for each call, then what came of it."""
    lines = [
        f"{entry['strand']}:{entry['n']}  {entry['tool']}  {entry['recorded']}"
        + ("" if entry["now"] == entry["recorded"] else f" → {entry['now']}")
        + ("  (counterfactual)" if entry["counterfactual"] else "")
        for entry in found.decisions
    ]
    if found.identical:
        end = "no decision changes"
    elif found.tape_ended:
        end = f"the run would have gone on where its tape ends, in {found.tape_ended}"
    else:
        place = found.divergence or {}
        end = f"the first change is at {place['strand']}:{place['n']}"
    return "\n".join([*lines, end])


def replayed(found: Replay) -> str:
    """What a replay found, in a sentence."""
    if found.identical:
        return f"identical: {found.steps} steps replayed, every decision and the output came out the same"
    if found.divergence:
        return f"DIVERGED at {found.divergence['strand']}:{found.divergence['n']}: {found.divergence['now']}"
    return f"the run is unfinished: its tape ends in {found.tape_ended}"


def told(record: dict[str, Any]) -> str:
    """One record in a line."""
    flat = " ".join(_said(record).split())
    return f"{record['kind']:<12}  {flat if len(flat) <= LONGEST else f'{flat[: LONGEST - 1]}…'}".rstrip()


def _said(record: dict[str, Any]) -> str:
    match record:
        case {"kind": "run_started", "loop": loop}:
            return f"{loop}, {record['at']}"
        case {"kind": "asked", "ask": "model"}:
            return f"step {record['step']}: {output.counted(record['messages'], 'message')} to {record['model']}"
        case {"kind": "asked" | "waiting", "tool": tool}:
            return " ".join([*([record["reason"]] if "reason" in record else []), tool, output.as_text(record["args"])])
        case {"kind": "answered", "reply": "said"}:
            calls = [f"{call['name']} {call['arguments']}" for call in record.get("calls", ())]
            return " ".join([record["content"], *calls])
        case {"kind": "answered", "reply": "did"}:
            return output.as_text(record["output"]) if record["success"] else f"failed: {record['error']}"
        case {"kind": "answered", "reply": "failed"}:
            return f"failed: {record['reason']}: {record['message']}"
        case {"kind": "decided"}:
            return _verdicts(record)
        case {"kind": "run_finished"}:
            error = record.get("error")
            reason = str(record.get("finish_reason") or record.get("status"))
            return f"{reason}: {error['message']}" if error else reason
        case _:
            aside = ("kind", "strand", "n", "closes", "ask", "reply")
            return output.as_text({key: value for key, value in record.items() if key not in aside})


def _verdicts(record: dict[str, Any]) -> str:
    """What judge made of a reply: each call with its verdict, else whatever else it came to."""
    words = ("verdict", "tool", "reason", "message")
    calls = [" ".join(call[word] for word in words if call.get(word)) for call in record.get("calls", ())]
    aside = ("kind", "strand", "n", "step", "calls", "thought")
    rest = {key: value for key, value in record.items() if key not in aside}
    return ", ".join([*calls, *(output.as_text({key: value}) for key, value in rest.items())])


def source_of(run: str, store: Path | None) -> tuple[Path, str | None]:
    """Where a run is: a journal file of that name, or the store."""
    if Path(run).is_file():
        return Path(run), None
    path = store or default_store()
    if not path.exists() or not SqliteRunStore(path).journal.load(run):
        raise RunNotFound(run)
    return path, run
