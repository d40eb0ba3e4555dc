"""A recorded run in a few numbers. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_core.effects import Json
from agent_core.journal.path import is_below, parent_of
from agent_core.journal.record import Record, Tape


@dataclass(frozen=True, slots=True)
class RunStats:
    """`finish_reason` is a workflow's status where there is one, and waiting or unfinished before the end.

    `steps` are model replies, `tool_calls` those of agents, `answers` the final answers by strand, of the outermost
    agents only.
    """

    run: str
    finish_reason: str
    steps: int
    tool_calls: int
    tokens: int
    answers: dict[str, Any]


def count_run(run: str, tape: Tape) -> RunStats:
    """Count a run's own strands."""
    strands = {path: [row.record() for row in rows] for path, rows in tape.items()}
    steps = sum(record.get("reply") == "said" for records in strands.values() for record in records)
    calls = sum(_calls(records) for path, records in strands.items() if not _is_visit(strands, path))
    tokens = sum(
        usage["input_tokens"] + usage["output_tokens"] for records in strands.values() for usage in _spent(records)
    )
    return RunStats(run, _finish(strands), steps, calls, tokens, _answers(strands))


def _finish(strands: dict[str, list[Record]]) -> str:
    """How the root strand ended."""
    last = next((records[-1] for path, records in strands.items() if "/" not in path), {"kind": ""})
    if last["kind"] == "run_finished":
        return str(last.get("finish_reason") or last.get("status"))
    return "waiting" if any(records[-1]["kind"] == "waiting" for records in strands.values()) else "unfinished"


def _spent(records: list[Record]) -> Iterator[Json]:
    """What a strand's models have used; a nested run's replies are in strands of their own."""
    asked: Record = {}
    for record in records:
        match record:
            case {"kind": "asked"}:
                asked = record
            case {"reply": "said", "usage": usage}:
                yield usage
            case {"reply": "did", "usage": dict(usage)} if asked["effect"] != "nested":
                yield usage


def _calls(records: list[Record]) -> int:
    """The tool calls of a strand; a call that was repeated by a person's decision counts once."""
    before = [{}, *records]
    return sum(
        record["kind"] == "asked" and record["ask"] == "tool" and last.get("decision") != "retry"
        for last, record in zip(before, records, strict=False)
    )


def _is_visit(strands: dict[str, list[Record]], path: str) -> bool:
    """Whether a strand is a visit of a workflow's plain tool."""
    above = strands.get(parent_of(path))
    return above is not None and above[0].get("loop") == "flow" and strands[path][0]["kind"] != "run_started"


def _answers(strands: dict[str, list[Record]]) -> dict[str, Any]:
    agents = sorted(path for path, records in strands.items() if records[0].get("loop") == "agent")
    outer = [path for path in agents if not any(is_below(path, other) for other in agents)]
    ends = {path: strands[path][-1] for path in outer}
    return {path: end["final_answer"] for path, end in ends.items() if end.get("final_answer") is not None}
