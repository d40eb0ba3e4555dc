"""What a journal says of the calls of a run: which wrote, and what the tools answered. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agent_core.effects import ToolReply
from agent_core.journal.facts import Answered, Batch, Call, Cancelled, Decided, Fact, Resolved
from agent_core.journal.path import item
from agent_core.outputs import Json, TraceAction, TraceStep
from agent_core.protocol.clip import clip_args
from agent_core.records import JudgedCall
from utools.tool import Effect


class RecordedCall(NamedTuple):
    """A call that was made, and its answer; None where there is none, or a person gave it."""

    tool: str
    args: dict[str, Any]
    effect: Effect
    answer: Answered | None

    @property
    def succeeded(self) -> bool:
        return self.answer is not None and self.answer.succeeded

    @property
    def output(self) -> Any:
        """What the tool gave; None for a failure."""
        answer = None if self.answer is None else self.answer.answer
        return answer.output if isinstance(answer, ToolReply) else None


def with_whole_args(trace: Iterable[TraceStep], facts: Iterable[Fact], strand: str, longest: int | None) -> list[Json]:
    """Return the trace with the arguments of its calls as they were sent: it shows those that are long shortened, as
    are observations beyond `longest`."""
    sent: dict[int, list[JudgedCall]] = {}
    for fact in facts:
        if isinstance(fact, Decided) and fact.strand == strand:
            sent.setdefault(fact.step, []).extend(fact.calls)
    return [_with_whole_args({**step}, sent.get(step["step"], []), longest) for step in trace]


def _with_whole_args(step: Json, sent: list[JudgedCall], longest: int | None) -> Json:
    action: TraceAction | None = step["action"]
    if action is None:
        return step
    for call in sent:
        if call["tool"] == action["tool"] and clip_args(call["args"], longest) == action["args"]:
            return {**step, "action": {**action, "args": call["args"]}}
    return step


def find_writes(facts: Iterable[Fact]) -> list[str]:
    """Return the tools of the calls that wrote, or may have."""
    return [fact.tool for fact in facts if isinstance(fact, Call) and fact.effect == "write"]


def find_calls(strands: Mapping[str, Sequence[Fact]], strand: str) -> Iterator[RecordedCall]:
    """Yield the calls of one agent that were made, in its order."""
    facts = strands.get(strand, ())
    for n, fact in enumerate(facts):
        if isinstance(fact, Call):
            later = (each for each in facts[n + 1 :] if isinstance(each, Answered | Resolved | Cancelled))
            answer = next(later, None)
            yield RecordedCall(fact.tool, fact.args, fact.effect, answer if isinstance(answer, Answered) else None)
        elif isinstance(fact, Batch):
            for index in range(len(fact.tools)):
                yield from find_calls(strands, item(strand, n, index))
