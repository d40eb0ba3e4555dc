"""What the journal of a run says of its nodes: their visits, and the calls that their agents have made."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from agent_core.audit.order import Order
from agent_core.journal.path import nesting_depth, parse_segment, segments
from agent_core.journal.record import Record, Tape
from engine_shim.builder.state import ExecutionStatus, NodeRecord, ToolCallRecord
from engine_shim.runs.prepare import ROOT

Visits = dict[tuple[str, int], list[list[Record]]]
"""The records of each visit (node, n), those of each attempt by itself."""
ENDINGS = {
    "final": ExecutionStatus.COMPLETED,
    "cancelled": ExecutionStatus.CANCELLED,
    "completed": ExecutionStatus.COMPLETED,
}


def node_records(tape: Tape, nodes: Sequence[str]) -> list[NodeRecord]:
    """The visits of these nodes, in the order in which they began."""
    records = [_node_record(key, attempts) for (key, _), attempts in _visits(tape, nodes).items()]
    return sorted(records, key=lambda each: each.start)


def tool_calls(tape: Tape, nodes: Sequence[str]) -> list[ToolCallRecord]:
    """The calls that the agents of these nodes have made, in order; not those of agents that are their tools."""
    order, found = Order(tape, {}), []
    for path, rows in tape.items():
        key = _visited(path)
        if key is None or key[0] not in nodes:
            continue
        records = [row.record() for row in rows]
        for n, record in enumerate(records):
            if record["kind"] == "asked" and record["ask"] == "tool":
                found.append((order.key(path, n), _tool_call(key[0], record, _answer(records[n + 1 :]))))
    return [call for _, call in sorted(found, key=lambda each: each[0])]


def _visits(tape: Tape, nodes: Sequence[str]) -> Visits:
    found: Visits = {}
    for path in sorted(tape, key=_attempt_of):
        key = _visited(path)
        if key is not None and key[0] in nodes and len(segments(path)) == 1:
            found.setdefault(key, []).append([row.record() for row in tape[path]])
    return found


def _visited(path: str) -> tuple[str, int] | None:
    """The visit that a strand belongs to; None for another strand, and for runs nested below a visit."""
    if not path.startswith(f"{ROOT}/") or nesting_depth(path) != 1:
        return None
    name, n, _ = parse_segment(segments(path)[0])
    return None if name is None else (name, n)


def _attempt_of(path: str) -> int:
    return parse_segment(segments(path)[0]).item if "/" in path else 0


def _node_record(key: str, attempts: Sequence[Sequence[Record]]) -> NodeRecord:
    last = attempts[-1][-1]
    start = next(_times(attempts[0]))
    return NodeRecord(key, start, next(_times([last])) if _has_ended(last) else None, _status(last))


def _has_ended(last: Record) -> bool:
    return last["kind"] in ("run_finished", "answered", "cancelled") and "at" in last


def _status(last: Record) -> ExecutionStatus:
    match last:
        case {"kind": "run_finished", "finish_reason": reason}:
            return ENDINGS.get(reason, ExecutionStatus.ERROR)
        case {"kind": "cancelled"}:
            return ExecutionStatus.CANCELLED
        case {"kind": "waiting"}:
            return ExecutionStatus.WAITING
    return ExecutionStatus.RUNNING


def _times(records: Sequence[Record]) -> Iterator[datetime]:
    return (datetime.fromisoformat(record["at"]) for record in records if "at" in record)


def _answer(rest: Sequence[Record]) -> Record | None:
    return next((record for record in rest if record["kind"] == "answered"), None)


def _tool_call(node: str, asked: Record, answer: Record | None) -> ToolCallRecord:
    success: bool | None = None
    output: Any = None
    error: str | None = None
    if answer is not None and answer["reply"] == "did":
        success, output, error = answer["success"], answer["output"], answer["error"]
    elif answer is not None:
        success, error = False, answer["message"]
    return ToolCallRecord(node, asked["id"], asked["tool"], asked["args"], success, output, error)
