"""Fork: a new run that has a recorded run's past up to some of its records, and a future of its own. Pure.

The past is walked again: each question in the same words gets the answer that it had, and a run nested in it that had
ended keeps its output, with the ids in it. What came after the record, and whatever followed from that, is left out;
branches next to it stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.audit.repeats import Place, before_approval
from agent_core.effects import Classify, InDoubt, ReadMessage, Received, Suspended
from agent_core.encryption.record_cipher import Encrypt
from agent_core.errors import DefinitionError, Divergence
from agent_core.journal.chain import is_finished
from agent_core.journal.facts import Answered, Call, Cancelled, Decided, Fact, Question, Resolved, RunStarted, Waiting
from agent_core.journal.facts import Received as ReceivedFact
from agent_core.journal.operations import Act, Append, Begin, Listen, Operation, Slot, started_body, walk
from agent_core.journal.path import is_below, is_within, parent_of, parse_segment, root_of, segments
from agent_core.journal.reader import read_record
from agent_core.journal.record import Record, Row, Tape, by_path
from agent_core.journal.recorder import continue_run
from agent_core.journal.signature import head_and_count, split_own_strands
from agent_core.journal.started import loop_of
from agent_core.journal.strand import Loops, Run
from agent_core.outputs import Json
from agent_core.records import RunOrigin, encode_asked


def fork_rows(
    run: str,
    tape: Tape,
    places: Sequence[Place],
    new: str,
    *,
    loops: Loops,
    at: str,
    retry: bool = False,
    encrypt: Encrypt | None = None,
) -> list[Row]:
    """Return the rows of run `new`, made at this time, which goes on from before each of these records (strand, n) of a
    run.

    What a person had approved and is done again is approved again. DefinitionError when there is no such record, or
    when the past cannot be walked under another run's id.
    """
    for place in places:
        _check_place(split_own_strands(tape)[0], place)
    first = places[0]
    origin: RunOrigin = {"run": run, "strand": first[0], "n": first[1], "at": at}
    if retry:
        origin["retry"] = True
    root = root_of(first[0])
    try:
        causes = _Past(run, tape, loops, origin).walk(root).causes
        kept = tape
        for strand, n in [moved for place in places for moved in before_approval(tape, place)]:
            if n < len(kept.get(strand, ())):  # else it is left out already
                kept = dict(_rows_before(kept, causes, strand, n))
        past = _Past(new, kept, loops, origin, encrypt)
        past.walk(root)
    except Divergence as changed:
        message = f"the run cannot be forked: at {changed.strand}:{changed.n} it would now ask something else"
        raise DefinitionError(message, where=f"{first[0]}:{first[1]}") from None
    return [row for rows in past.tape.values() for row in rows]


def _check_place(tape: Tape, place: Place) -> None:
    """DefinitionError for a record that there is not, and for the first of all."""
    strand, n = place
    if strand not in tape:
        reason = f"there is no such strand; there are {', '.join(sorted(tape))}"
    elif not 0 <= n < len(tape[strand]):
        reason = f"the strand has the records 0 to {len(tape[strand]) - 1}"
    elif strand == root_of(strand) and n == 0:
        reason = "it is the run's first record; run the workflow again instead"
    else:
        return
    raise DefinitionError(f"no run can be forked here: {reason}", where=f"{strand}:{n}")


@dataclass(slots=True)
class _Past:
    """A walk through the `source` rows of a recorded run that writes them again, to `tape`, for the run `new`."""

    new: str
    source: Tape
    loops: Loops
    origin: RunOrigin
    encrypt: Encrypt | None = None
    tape: Tape = field(default_factory=dict)

    def walk(self, root: str) -> Run:
        """Walk as far as possible; where only a person's decision is missing, take it from the source."""
        while True:
            run = Run(self.new, self.tape, self.loops, encrypt=self.encrypt)
            walk(continue_run(run, root), self._perform)
            decisions = list(self._missing_decisions())
            if not decisions:
                return run
            for row in decisions:
                self._add_decision(row, run.causes)

    def _add_decision(self, row: Row, causes: Mapping[str, tuple[str, ...]]) -> None:
        """Add a decision where it is waited for; what had ended over the waiting is walked again."""
        if row.n == len(self.tape.get(row.path, ())):
            self.tape = dict(_rows_before(self.tape, causes, row.path, row.n))
            self.tape[row.path].append(row)

    def _missing_decisions(self) -> Iterator[Row]:
        for path, rows in self.tape.items():
            last, source = rows[-1], self.source.get(path, ())
            if last.kind == "waiting" and len(source) > len(rows):
                decision = self._source_fact(path, len(rows))
                if isinstance(decision, Resolved | Cancelled) and not decision.closes:
                    yield Slot(path, len(rows), last.hash, self.encrypt).row(
                        _without_sender(source[len(rows)].record())
                    )

    def _perform(self, operation: Operation) -> Any:
        match operation:
            case Append(rows) | Listen(rows=rows):
                self._append(rows)
            case Begin():
                return self._begin(operation)
            case Act():
                return self._answer(operation)
            case Classify(index, strand=strand, n=n):
                decided = self._source_fact(strand, n)
                return decided.calls[index]["effect"] if isinstance(decided, Decided) else "write"
            case _:
                pass
        return None

    def _append(self, rows: tuple[Row, ...]) -> None:
        for path, added in by_path(rows).items():
            self.tape.setdefault(path, []).extend(added)

    def _begin(self, begin: Begin) -> Any:
        begun = self._source_fact(begin.path, 0)
        if isinstance(begun, Answered):
            return begun.answer
        if not isinstance(begun, RunStarted):
            return _pause(begin.path)
        record = self.source[begin.path][0].record()
        body = {key: value for key, value in started_body(record).items() if key != "taken"}
        body |= self._taken_over(begin.path, record)
        return body if "/" in begin.path else {**body, "forked": self.origin}

    def _taken_over(self, path: str, started: Json) -> Json:
        """Whose run it is that begins so: the recorded one's, where it had ended, for what read its output read that.

        A run that continues is the new one's; of a workflow's, the visits that had begun stay in the run they began in.
        """
        if "/" in path and is_finished(self.source, path):
            journal = started.get("taken", {}).get("journal") or _journal_of(self.source, path)
            return {"taken": {**started.get("taken", {}), "journal": journal}}
        visits = self._visits_of_others(path, started) if started["loop"] == "flow" else {}
        return {"run": self.new, **({"taken": {"visits": visits}} if visits else {})}

    def _visits_of_others(self, path: str, started: Json) -> dict[str, list[tuple[str, int]]]:
        """Return the visits of a workflow that had begun, by the run in which they did, if that is not the new one."""
        earlier = started.get("taken", {}).get("visits", {})
        known: dict[tuple[str, int], str] = {(node, n): run for run, keys in earlier.items() for node, n in keys}
        found: dict[str, list[tuple[str, int]]] = {}
        below = (
            parse_segment(segments(other, path)[0])
            for other, rows in self.source.items()
            if is_below(other, path) and _has_begun(rows)
        )
        for node, n in sorted({(each.name, each.number) for each in below if each.name is not None}):
            run = known.get((node, n)) or str(started["run"])
            if run != self.new:
                found.setdefault(run, []).append((node, n))
        return found

    def _answer(self, act: Act) -> Any:
        path, n = act.slot.path, act.slot.n
        before, fact = self._source_fact(path, n - 1), self._source_fact(path, n)
        if isinstance(before, ReceivedFact):
            self._append(act.rows[:-1])
            return Received(tuple(map(_without_place, before.messages)))
        if not isinstance(fact, Answered | Waiting):  # it is asked anew
            self._append(act.rows[:-1])
            return _pause(path)
        asked, now = self.source[path][n - 1].record(), encode_asked(act.effect)
        if asked != now:
            raise Divergence(path, n - 1, asked, now)
        self._append(act.rows)
        return InDoubt(fact.message, "", fact.seconds or 0.0) if isinstance(fact, Waiting) else fact.answer

    def _source_fact(self, path: str, n: int) -> Fact | None:
        rows = self.source.get(path, ())
        return read_record(rows[n].record()) if n < len(rows) else None


def _has_begun(rows: Sequence[Row]) -> bool:
    """Return whether a strand keeps records in a fork: a call without its answer is asked anew."""
    return len(rows) > 1 or (len(rows) == 1 and not isinstance(read_record(rows[0].record()), Question | Call))


def _journal_of(tape: Tape, path: str) -> Json:
    """Return what a run that has ended told of its records: all but its last one."""
    within = {each: rows for each, rows in tape.items() if is_within(each, path)}
    head, count = head_and_count({**within, path: tape[path][:-1]})
    return {"strand": path, "head": head, "count": count}


def _without_place(message: ReadMessage) -> ReadMessage:
    """Return a message that was read, without its place in a strand that the new run does not have."""
    return {"role": message["role"], "content": message["content"], "by": message["by"]}


def _without_sender(decision: Record) -> Record:
    """Return a decision, or an event, without its place in a strand that the new run does not have."""
    return {key: value for key, value in decision.items() if key != "n"}


def _pause(path: str) -> Suspended:
    return Suspended("paused", ({"strand": path, "n": 0, "tool": "", "args": {}, "reason": "paused"},))


def _rows_before(
    tape: Tape, causes: Mapping[str, tuple[str, ...]], strand: str, n: int
) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of a tape that do not come after record n of a strand."""
    ends, dropped = _cut(tape, causes, strand, n)
    askers = {path: end for path, end in ends.items() if not _is_flow(tape, path)}
    for path, rows in tape.items():
        asked = [(parse_segment(segments(path, up)[0]).number, askers[up]) for up in askers if is_below(path, up)]
        if not any(is_within(path, other) for other in dropped) and all(number < end for number, end in asked):
            yield path, rows[: ends.get(path, len(rows))]


def _cut(tape: Tape, causes: Mapping[str, tuple[str, ...]], strand: str, n: int) -> tuple[dict[str, int], set[str]]:
    """Return how many rows of the strand and of each above it stay, and the visits that followed from it."""
    ends, dropped = {strand: n}, set[str]()
    while "/" in strand:
        above = parent_of(strand)
        while above and above not in tape:
            above = parent_of(above)
        if _is_flow(tape, above):
            ends[above] = 1
            dropped |= _visits_after(causes, strand)
        else:
            ends[above] = parse_segment(segments(strand, above)[0]).number + 1
        strand = above
    return ends, dropped


def _is_flow(tape: Tape, path: str) -> bool:
    """Return whether the strands below are visits, not what the strand's records asked for."""
    return loop_of(tape[path][0]) == "flow"


def _visits_after(causes: Mapping[str, tuple[str, ...]], visit: str) -> set[str]:
    found, queue = set[str](), [visit]
    while queue:
        earlier = queue.pop()
        for later, before in causes.items():
            if earlier in before and later not in found:
                found.add(later)
                queue.append(later)
    return found
