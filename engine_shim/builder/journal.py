"""What the journal of a run says of its nodes: their visits, and the calls that their agents have made."""

from collections.abc import Sequence
from datetime import datetime

from agent_core.audit.order import Order
from agent_core.effects import ToolReply
from agent_core.journal.facts import Answered, Call, Cancelled, Fact, RunFinished, Waiting
from agent_core.journal.path import nesting_depth, parse_segment, segments
from agent_core.journal.reader import read_strands, time_of
from agent_core.journal.record import Tape
from engine_shim.builder.state import ExecutionStatus, NodeRecord, ToolCallRecord
from engine_shim.definition.model import ROOT

Visits = dict[tuple[str, int], list[list[Fact]]]
"""What the records say of each visit (node, n), those of each attempt by itself."""
ENDINGS = {
    "final": ExecutionStatus.COMPLETED,
    "cancelled": ExecutionStatus.CANCELLED,
    "completed": ExecutionStatus.COMPLETED,
}


def node_records(tape: Tape, nodes: Sequence[str]) -> list[NodeRecord]:
    """Return the visits of these nodes, in the order in which they began."""
    records = [_node_record(key, attempts) for (key, _), attempts in _visits(tape, nodes).items()]
    return sorted(records, key=lambda each: each.start)


def tool_calls(tape: Tape, nodes: Sequence[str]) -> list[ToolCallRecord]:
    """Return the calls that the agents of these nodes have made, in order; not those of agents that are their tools."""
    order, found = Order(tape, {}), []
    for path, facts in read_strands(tape).items():
        key = _visited(path)
        if key is None or key[0] not in nodes:
            continue
        for n, fact in enumerate(facts):
            if isinstance(fact, Call):
                answer = next((each for each in facts[n + 1 :] if isinstance(each, Answered)), None)
                found.append((order.key(path, n), _tool_call(key[0], fact, answer)))
    return [call for _, call in sorted(found, key=lambda each: each[0])]


def _visits(tape: Tape, nodes: Sequence[str]) -> Visits:
    found, strands = Visits(), read_strands(tape)
    for path in sorted(strands, key=_attempt_of):
        key = _visited(path)
        if key is not None and key[0] in nodes and len(segments(path)) == 1:
            found.setdefault(key, []).append(strands[path])
    return found


def _visited(path: str) -> tuple[str, int] | None:
    """Return the visit that a strand belongs to; None for another strand, and for runs nested below a visit."""
    if not path.startswith(f"{ROOT}/") or nesting_depth(path) != 1:
        return None
    name, n, _ = parse_segment(segments(path)[0])
    return None if name is None else (name, n)


def _attempt_of(path: str) -> int:
    return parse_segment(segments(path)[0]).item if "/" in path else 0


def _node_record(key: str, attempts: Sequence[Sequence[Fact]]) -> NodeRecord:
    last = attempts[-1][-1]
    start = next(filter(None, map(time_of, attempts[0])))
    end = time_of(last) if isinstance(last, RunFinished | Answered | Cancelled) else None
    return NodeRecord(
        key, datetime.fromisoformat(start), None if end is None else datetime.fromisoformat(end), _status(last)
    )


def _status(last: Fact) -> ExecutionStatus:
    match last:
        case RunFinished(reason=reason, is_agent=True):
            return ENDINGS.get(reason, ExecutionStatus.ERROR)
        case Cancelled():
            return ExecutionStatus.CANCELLED
        case Waiting():
            return ExecutionStatus.WAITING
        case _:
            return ExecutionStatus.RUNNING


def _tool_call(node: str, call: Call, answered: Answered | None) -> ToolCallRecord:
    if answered is None:
        return ToolCallRecord(node, call.id, call.tool, call.args, None, None, None)
    output = answered.answer.output if isinstance(answered.answer, ToolReply) else None
    return ToolCallRecord(node, call.id, call.tool, call.args, answered.succeeded, output, answered.error)
