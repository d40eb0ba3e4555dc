"""The command show: a run, record by record."""

from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from agent_core.journal.chain import check_chains
from agent_core.journal.source import load_run
from engine_shim.cli import output
from engine_shim.cli.run_names import find_run
from engine_shim.errors import RunNotFound
from engine_shim.runs.store import SqliteRunStore, default_store

LONGEST = 160


def show_run(run: str, store: Path | None, *, as_json: bool) -> int:
    """Write all records of a run."""
    run_id, tape = load_run(*find_source(run, store))
    check_chains(run_id, tape)
    records = [{"strand": path, "n": row.n, **row.record()} for path in sorted(tape) for row in tape[path]]
    if as_json:
        output.document({"run_id": run_id, "records": records})
        return output.OK
    for strand, group in groupby(records, key=itemgetter("strand")):
        output.line(strand)
        for record in group:
            output.line(f"  {record['n']:>3}  {record_as_line(record)}")
    return output.OK


def find_source(run: str, store: Path | None) -> tuple[Path, str | None]:
    """Where a run is: a journal file of that name, or the store."""
    if Path(run).is_file():
        return Path(run), None
    path, found = store or default_store(), find_run(run, store)
    if not SqliteRunStore(path).journal.load(found):
        raise RunNotFound(found)
    return path, found


def record_as_line(record: dict[str, Any]) -> str:
    """One record in a line."""
    return f"{record['kind']:<12}  {output.flatten(_content(record), LONGEST)}".rstrip()


def _content(record: dict[str, Any]) -> str:
    match record:
        case {"kind": "run_started", "loop": loop, "forked": {"run": run, "strand": strand, "n": n}}:
            return f"{loop}, {record['at']}, forked from {run} at {strand}:{n}"
        case {"kind": "run_started", "loop": loop}:
            return f"{loop}, {record['at']}"
        case {"kind": "asked", "ask": "model"}:
            return f"step {record['step']}: {output.count(record['messages'], 'message')} to {record['model']}"
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
    """How a reply was judged: each call with its verdict, and the other fields of the record."""
    words = ("verdict", "tool", "reason", "message")
    calls = [" ".join(call[word] for word in words if call.get(word)) for call in record.get("calls", ())]
    aside = ("kind", "strand", "n", "step", "calls", "thought")
    rest = {key: value for key, value in record.items() if key not in aside}
    return ", ".join([*calls, *(output.as_text({key: value}) for key, value in rest.items())])
