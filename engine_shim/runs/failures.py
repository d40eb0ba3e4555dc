"""Where a failed run may be taken up again: the questions and reads that failed because their world did."""

from collections.abc import Iterator
from typing import Any, Final

from agent_core.audit.repeats import Place
from agent_core.errors import DecisionError, Divergence
from agent_core.journal.chain import is_finished
from agent_core.journal.operations import Operation, Spec, walk
from agent_core.journal.path import attempt, child, last_segment, parent_of, parse_segment
from agent_core.journal.record import Record, Tape
from agent_core.journal.recorder import Ended, record_run
from agent_core.journal.strand import Run
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.runs.loops import LOOPS

ROOT: Final = "flow"
RETRIABLE: Final = ("model_error", "tool_error")
DONE: Final = ("final", "completed")


def find_failures(run: str, tape: Tape) -> list[Place]:
    """The records (strand, n) of a failed run that have to be made anew for it to come out otherwise.

    DecisionError when the run has not failed, or failed by what would be the same again, or over a write.
    """
    if not is_finished(tape, ROOT) or tape[ROOT][-1].record()["status"] != "failed":
        raise DecisionError(f"run {run!r} has not failed, so there is nothing to try again")
    places = list(_Failures(run, tape).of_strand(ROOT))
    if not places:
        raise DecisionError(f"run {run!r} failed over none of its calls, so that there is nothing to try again")
    return places


class _Failures:
    """The failed records below the strands of one run."""

    def __init__(self, run: str, tape: Tape) -> None:
        self.run, self.tape = run, tape

    def of_strand(self, path: str) -> Iterator[Place]:
        if path not in self.tape:
            raise self._refuse(path, "its call was never made")
        match self.tape[path][0].record():
            case {"kind": "run_started", "loop": "flow"}:
                for node, n in self._outcome_of(path).failed:
                    yield from self.of_strand(self._last_attempt(child(path, node, n)))
            case {"kind": "run_started"}:
                yield from self._of_agent(path)
            case {"kind": "answered"}:  # a nested run that could not begin
                yield path, 0
            case _:
                yield from self._of_call(path, len(self.tape[path]) - 1)

    def _outcome_of(self, path: str) -> FlowOutcome:
        ended = walk(record_run(Run(self.run, self.tape, LOOPS), path, Spec("", {})), _perform_nothing)
        assert isinstance(ended, Ended)
        assert isinstance(ended.outcome, FlowOutcome)
        return ended.outcome

    def _last_attempt(self, path: str) -> str:
        k = 0
        while attempt(path, k + 1) in self.tape:
            k += 1
        return attempt(path, k)

    def _of_agent(self, path: str) -> Iterator[Place]:
        records = [row.record() for row in self.tape[path]]
        reason = records[-1].get("finish_reason")
        if reason == "model_error":
            yield path, _first_failed_question(records)
        elif reason == "tool_error":
            failed = [n for n, record in enumerate(records) if _is_failed_call(record)]
            yield from self._of_call(path, failed[-1] if failed else len(records) - 1)
        else:
            raise self._refuse(path, f"it ended by {reason}, which a second try does not change")

    def _of_call(self, path: str, n: int) -> Iterator[Place]:
        """The failed records of the call, or of the batch of calls, whose answer is record n."""
        asked, answered = self.tape[path][n - 1].record(), self.tape[path][n].record()
        if asked["kind"] != "asked" or answered["kind"] != "answered":
            raise self._refuse(path, "a person ended it there")
        if not _is_failed_call(answered):
            raise self._refuse(path, "its call succeeded, and the run failed over what followed from it")
        if asked["ask"] == "batch":
            yield from self._of_items(path, n - 1)
        elif (nested := child(path, asked["tool"], n - 1)) in self.tape:
            yield from self.of_strand(nested)
        elif asked["effect"] == "write":
            raise self._refuse(path, f"the write {asked['tool']} failed, and may have been made in part")
        else:
            yield path, n

    def _of_items(self, path: str, number: int) -> Iterator[Place]:
        """The failed records of the batch that record `number` asked for; not all of its items need have begun."""
        items = [each for each in self.tape if parent_of(each) == path]
        for each in sorted(items, key=lambda each: parse_segment(last_segment(each))):
            last = self.tape[each][-1].record()
            if parse_segment(last_segment(each)).number != number:
                continue
            if _is_failed_call(last):
                yield from self._of_call(each, len(self.tape[each]) - 1)
            elif last["kind"] == "run_finished" and (last.get("finish_reason") or last["status"]) not in DONE:
                yield from self.of_strand(each)

    def _refuse(self, path: str, why: str) -> DecisionError:
        advice = "`agent-core fork` goes on from a record of your choice"
        return DecisionError(f"run {self.run!r} cannot be tried again at {path}: {why}; {advice}")


def _first_failed_question(records: list[Record]) -> int:
    """The first of the failed answers that the run ended with: fallback models were asked after it."""
    n = len(records) - 2
    while n > 3 and _is_failed_question(records[n - 2]) and records[n - 1]["kind"] == "asked":
        n -= 2
    return n


def _is_failed_question(record: Record) -> bool:
    return bool(record["kind"] == "answered" and record["reply"] == "failed")


def _is_failed_call(record: Record) -> bool:
    if record["kind"] != "answered" or record["reply"] == "said":
        return False
    return record["reply"] in ("failed", "batch") or not record["success"]


def _perform_nothing(operation: Operation) -> Any:
    raise Divergence(ROOT, 0, "the end of the run", type(operation).__name__)
