"""Fork: a new run that has a recorded run's past up to one of its records, and a future of its own. Pure.

The past is walked again under the new run's id: each question that was asked in the same words has the answer that it
had then. What came after the record, and whatever followed from that, is left out; branches beside it are kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_core.audit.signature import parted
from agent_core.effects import Classify, InDoubt, Json, Suspended, answer_from
from agent_core.errors import DefinitionError, Divergence
from agent_core.journal.operations import Act, Append, Begin, Operation, Sleep, Slot, Spec, walked
from agent_core.journal.record import Row, Tape, by_path, within
from agent_core.journal.recorder import recorded
from agent_core.journal.strand import Loops, Run


def forked(run: str, tape: Tape, at: tuple[str, int], new: str, *, loops: Loops) -> list[Row]:
    """The rows of run `new`, which goes on from before record n of a strand of `run`, as if it had not been written.

    DefinitionError when there is no such record, or when the past cannot be walked under another run's id.
    """
    strand, n = at
    root = strand.partition("/")[0]
    if not 0 <= n < len(parted(tape)[0].get(strand, ())) or (strand == root and n == 0):
        raise DefinitionError("no run can be forked here; `show` lists its records", where=f"{strand}:{n}")
    source = {"run": run, "strand": strand, "n": n}
    try:
        causes = _Past(run, tape, loops, source).walked(root).causes
        past = _Past(new, dict(_kept(tape, causes, strand, n)), loops, source)
        past.walked(root)
    except Divergence as changed:
        told = f"the run cannot be forked: at {changed.strand}:{changed.n} it would now ask something else"
        raise DefinitionError(f"{told}; does it use its own run id?", where=f"{strand}:{n}") from None
    return [row for rows in past.tape.values() for row in rows]


@dataclass(slots=True)
class _Past:
    """A walk through what is kept of a recorded run, which writes it anew for the run `new`."""

    new: str
    kept: Tape
    loops: Loops
    source: Json
    tape: Tape = field(default_factory=dict)

    def walked(self, root: str) -> Run:
        """Walk as far as it goes; each time a person's word is all that is missing, it is taken from what is kept."""
        while True:
            walk = Run(self.new, self.tape, self.loops)
            walked(recorded(walk, root, Spec("", {})), self._perform)
            words = list(self._words())
            if not words:
                return walk
            for row in words:
                self._say(row, walk.causes)

    def _say(self, word: Row, causes: Mapping[str, tuple[str, ...]]) -> None:
        """Put a word where it is waited for; what had ended over that is walked again."""
        if word.n == len(self.tape.get(word.path, ())):
            self.tape = dict(_kept(self.tape, causes, word.path, word.n))
            self.tape[word.path].append(word)

    def _words(self) -> Iterator[Row]:
        for path, rows in self.tape.items():
            last, kept = rows[-1], self.kept.get(path, ())
            if last.record()["kind"] == "waiting" and len(kept) > len(rows):
                word = kept[len(rows)].record()
                if word["kind"] in ("resolved", "cancelled") and "closes" not in word:
                    yield Slot(path, len(rows), last.hash).row(word)

    def _perform(self, operation: Operation) -> Any:
        match operation:
            case Append(rows):
                self._write(rows)
            case Begin():
                return self._begun(operation)
            case Act():
                return self._answered(operation)
            case Classify(index, strand=strand, n=n):
                decided = self._record(strand, n)
                return decided["calls"][index]["effect"] if decided else "write"
            case Sleep():
                pass
        return None

    def _write(self, rows: tuple[Row, ...]) -> None:
        for path, added in by_path(rows).items():
            self.tape.setdefault(path, []).extend(added)

    def _begun(self, begin: Begin) -> Any:
        record = self._record(begin.path, 0)
        if record is None or record["kind"] == "cancelled":
            return _held(begin.path)
        if record["kind"] == "answered":
            return answer_from(record)
        body = {key: value for key, value in record.items() if key not in ("kind", "spent")}
        return {**body, "run": self.new, **({} if "/" in begin.path else {"forked": self.source})}

    def _answered(self, act: Act) -> Any:
        path, n = act.slot.path, act.slot.n
        asked, record = self._record(path, n - 1), self._record(path, n)
        now = {"kind": "asked", **act.effect.record()}
        if asked is not None and asked != now:
            raise Divergence(path, n - 1, asked, now)
        if record is None or record["kind"] not in ("answered", "waiting"):
            self._write(act.rows[:-1])
            return _held(path)
        self._write(act.rows)
        if record["kind"] == "waiting":
            return InDoubt(record["message"], "", record["seconds"])
        return answer_from(record)

    def _record(self, path: str, n: int) -> Json | None:
        rows = self.kept.get(path, ())
        return rows[n].record() if n < len(rows) else None


def _held(path: str) -> Suspended:
    return Suspended("paused", ({"strand": path, "n": 0, "tool": "", "args": {}, "reason": "paused"},))


def _kept(tape: Tape, causes: Mapping[str, tuple[str, ...]], strand: str, n: int) -> Iterator[tuple[str, list[Row]]]:
    """What of a tape does not come after record n of a strand."""
    ends, gone = _cut(tape, causes, strand, n)
    calls = {path: end for path, end in ends.items() if not _is_flow(tape, path)}
    for path, rows in tape.items():
        asked = [(_asking(path[len(up) + 1 :].split("/")[0]), calls[up]) for up in calls if path.startswith(f"{up}/")]
        if not any(within(path, other) for other in gone) and all(number < end for number, end in asked):
            yield path, rows[: ends.get(path, len(rows))]


def _cut(tape: Tape, causes: Mapping[str, tuple[str, ...]], strand: str, n: int) -> tuple[dict[str, int], set[str]]:
    """How many rows are kept of the strand and of each that it stands below; and the visits that followed from it."""
    ends, gone = {strand: n}, set[str]()
    while "/" in strand:
        above, _, segment = strand.rpartition("/")
        while above and above not in tape:
            above, _, segment = above.rpartition("/")
        if _is_flow(tape, above):
            ends[above] = 1
            gone |= _after(causes, strand)
        else:
            ends[above] = _asking(segment) + 1
        strand = above
    return ends, gone


def _is_flow(tape: Tape, path: str) -> bool:
    """Whether what stands below a strand are visits, not what its records asked for."""
    return tape[path][0].record().get("loop") == "flow"


def _after(causes: Mapping[str, tuple[str, ...]], visit: str) -> set[str]:
    found, queue = set[str](), [visit]
    while queue:
        earlier = queue.pop()
        for later, before in causes.items():
            if earlier in before and later not in found:
                found.add(later)
                queue.append(later)
    return found


def _asking(segment: str) -> int:
    """The number of the record that asked for a nested run, NAME.N, or for an item of a batch, N.I."""
    first, _, last = segment.partition(".")
    return int(first) if first.isdigit() else int(last.partition("~")[0])
