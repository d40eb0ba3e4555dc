"""Where a failed run may be taken up again: the questions and reads that failed because their backend did."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from agent_core.audit.repeats import Place
from agent_core.effects import Failed
from agent_core.errors import DecisionError, Divergence
from agent_core.journal.facts import Answered, Batch, BatchAnswer, Call, Fact, Question, RunFinished, RunStarted
from agent_core.journal.operations import Operation, walk
from agent_core.journal.path import child, last_attempt, last_segment, parent_of, parse_segment
from agent_core.journal.reader import read_strands
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended, continue_run
from agent_core.journal.strand import Run
from engine_shim.definition.model import ROOT
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.runs.loops import LOOPS

RETRIABLE: Final = ("model_error", "tool_error")


def find_failures(run: str, tape: Tape) -> list[Place]:
    """Return the records (strand, n) of a failed run that have to be made anew for it to come out otherwise.

    DecisionError when the run has not failed, or failed by what would be the same again, or over a write.
    """
    failures = _Failures(run, tape)
    match failures.facts.get(ROOT, ()):
        case [*_, RunFinished(reason="failed")]:
            places = list(failures.of_strand(ROOT))
        case _:
            raise DecisionError(f"run {run!r} has not failed, so there is nothing to try again")
    if not places:
        raise DecisionError(f"run {run!r} failed, but not because of a call, so there is nothing to try again")
    return places


class _Failures:
    """The failed records below the strands of one run."""

    def __init__(self, run: str, tape: Tape) -> None:
        self.run, self.tape, self.facts = run, tape, read_strands(tape)

    def of_strand(self, path: str) -> Iterator[Place]:
        if path not in self.facts:
            raise self._refuse(path, "its call was never made")
        match self.facts[path][0]:
            case RunStarted(begun=begun) if begun.definition:
                for node, n in self._outcome_of(path).failed:
                    yield from self.of_strand(last_attempt(child(path, node, n), self.tape))
            case RunStarted():
                yield from self._of_agent(path)
            case Answered():  # a nested run that could not begin
                yield path, 0
            case _:
                yield from self._of_call(path, len(self.facts[path]) - 1)

    def _outcome_of(self, path: str) -> FlowOutcome:
        ended = walk(continue_run(Run(self.run, self.tape, LOOPS), path), _perform_nothing)
        assert isinstance(ended, Ended)
        assert isinstance(ended.outcome, FlowOutcome)
        return ended.outcome

    def _of_agent(self, path: str) -> Iterator[Place]:
        facts = self.facts[path]
        reason = facts[-1].reason if isinstance(facts[-1], RunFinished) else None
        if reason == "model_error":
            yield path, _first_failed_question(facts)
        elif reason == "tool_error":
            failed = [fact.n for fact in facts if _is_failed_call(fact)]
            yield from self._of_call(path, failed[-1] if failed else len(facts) - 1)
        else:
            raise self._refuse(path, f"it ended by {reason}, which a second try does not change")

    def _of_call(self, path: str, n: int) -> Iterator[Place]:
        """Yield the failed records of the call, or of the batch of calls, whose answer is record n."""
        asked, answered = self.facts[path][n - 1], self.facts[path][n]
        if not isinstance(asked, Question | Call | Batch) or not isinstance(answered, Answered):
            raise self._refuse(path, "a person ended it there")
        if not _is_failed_call(answered):
            raise self._refuse(path, "its call succeeded, and the run failed later")
        match asked:
            case Batch():
                yield from self._of_items(path, n - 1)
            case Call(nested=nested) if nested in self.tape:
                yield from self.of_strand(nested)
            case Call(effect="write", tool=tool):
                raise self._refuse(path, f"the write {tool} failed, and may have been made in part")
            case _:
                yield path, n

    def _of_items(self, path: str, number: int) -> Iterator[Place]:
        """Yield the failed records of the batch that record `number` asked for; not all of its items need have
        begun."""
        items = [each for each in self.tape if parent_of(each) == path]
        for each in sorted(items, key=lambda each: parse_segment(last_segment(each))):
            last = self.facts[each][-1]
            if parse_segment(last_segment(each)).number != number:
                continue
            if _is_failed_call(last):
                yield from self._of_call(each, len(self.facts[each]) - 1)
            elif isinstance(last, RunFinished) and not last.succeeded:
                yield from self.of_strand(each)

    def _refuse(self, path: str, why: str) -> DecisionError:
        advice = "`agent-core fork` continues from a record of your choice"
        return DecisionError(f"run {self.run!r} cannot be tried again at {path}: {why}; {advice}")


def _first_failed_question(facts: Sequence[Fact]) -> int:
    """Return the first of the failed answers that the run ended with: fallback models were asked after it."""
    n = len(facts) - 2
    while n > 3 and _is_failed(facts[n - 2]) and isinstance(facts[n - 1], Question):
        n -= 2
    return n


def _is_failed(fact: Fact) -> bool:
    return isinstance(fact, Answered) and isinstance(fact.answer, Failed)


def _is_failed_call(fact: Fact) -> bool:
    """Return whether a call failed; of a batch that is not known yet."""
    return isinstance(fact, Answered) and (not fact.succeeded or isinstance(fact.answer, BatchAnswer))


def _perform_nothing(operation: Operation) -> Any:
    raise Divergence(ROOT, 0, "the end of the run", type(operation).__name__)
