"""A recorded run in a few numbers. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agent_core.effects import ModelReply, ToolReply
from agent_core.journal.facts import Answered, Call, Fact, Resolved, RunFinished, RunStarted, Waiting
from agent_core.journal.path import parent_of
from agent_core.journal.reader import find_agents, leave_nested, read_strands
from agent_core.journal.record import Tape
from agent_core.outputs import Json

Strands = Mapping[str, Sequence[Fact]]


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
    strands = read_strands(tape)
    facts = [fact for path in tape for fact in strands[path]]
    replies = [fact.answer for fact in facts if isinstance(fact, Answered) and isinstance(fact.answer, ModelReply)]
    calls = sum(_calls(strands[path]) for path in tape if not _is_visit(strands, path))
    tokens = sum(usage["input_tokens"] + usage["output_tokens"] for usage in _spent(facts))
    return RunStats(run, _reason(strands), len(replies), calls, tokens, _answers(strands))


def _reason(strands: Strands) -> str:
    """Return how the root strand ended."""
    last = next((facts[-1] for path, facts in strands.items() if "/" not in path), None)
    if isinstance(last, RunFinished):
        return last.reason
    return "waiting" if any(isinstance(facts[-1], Waiting) for facts in strands.values()) else "unfinished"


def _spent(facts: Iterable[Fact]) -> Iterator[Json]:
    """Yield what models have used; a nested run's replies are in strands of their own."""
    for fact in facts:
        match fact:
            case Answered(answer=ModelReply(usage=usage)):
                yield usage
            case Answered(asked=Call(effect=effect), answer=ToolReply(usage=dict(usage))) if effect != "nested":
                yield usage


def _calls(facts: Sequence[Fact]) -> int:
    """Return the tool calls of a strand; a call that was repeated by a person's decision counts once."""
    again = sum(
        isinstance(before, Resolved) and before.decision == "retry" and isinstance(fact, Call)
        for before, fact in pairwise(facts)
    )
    return sum(isinstance(fact, Call) for fact in facts) - again


def _is_visit(strands: Strands, path: str) -> bool:
    """Return whether a strand is a visit of a workflow's plain tool."""
    above = strands.get(parent_of(path), ())
    is_flow = bool(above) and isinstance(above[0], RunStarted) and not above[0].begun.is_agent
    return is_flow and not isinstance(strands[path][0], RunStarted)


def _answers(strands: Strands) -> dict[str, Any]:
    ends = {path: strands[path][-1] for path in leave_nested(find_agents(strands))}
    return {path: end.answer for path, end in ends.items() if isinstance(end, RunFinished) and end.answer is not None}
