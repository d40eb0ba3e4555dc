"""What a fork would do once more: the writes that it leaves out, and where their approvals are asked again. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from agent_core.errors import DefinitionError
from agent_core.journal.facts import (
    Answered,
    Batch,
    Call,
    Cancelled,
    Decided,
    Fact,
    Question,
    Received,
    Resolved,
    RunFinished,
    Waiting,
)
from agent_core.journal.path import item, last_segment, parent_of, parse_segment
from agent_core.journal.reader import read_strands
from agent_core.journal.record import Tape
from agent_core.outputs import Json

Place = tuple[str, int]
"""A strand, and the number of a record in it."""


class MadeWrite(NamedTuple):
    """A write that was made, or may have been: the record that asked for it, and what was called."""

    strand: str
    n: int
    tool: str
    args: Json

    def __str__(self) -> str:
        return f"{self.strand}:{self.n} {self.tool}"


def find_repeats(source: Tape, forked: Tape) -> list[MadeWrite]:
    """Return the writes of a run that a fork of it does not have: the fork may make them again."""
    strands = read_strands(source)
    return [write for path in source for write in _made_writes(strands[path], len(forked.get(path, ())))]


def _made_writes(facts: Sequence[Fact], kept: int) -> Iterator[MadeWrite]:
    """Yield the writes of a strand whose answers are not among the first `kept` records."""
    last: MadeWrite | None = None
    for fact in facts:
        if _is_write(fact):
            last = MadeWrite(fact.strand, fact.n, fact.tool, fact.args)
        elif last is not None and isinstance(fact, Answered | Waiting | Cancelled):
            if fact.n >= kept:
                yield last
            last = None
    if last is not None:
        yield last


def _is_write(fact: Fact) -> TypeGuard[Call]:
    return isinstance(fact, Call) and fact.effect == "write"


def before_approval(tape: Tape, place: Place) -> list[Place]:
    """Return the place itself or, where a person had let through what is done there, that person's decisions.

    So whatever is done again is approved again; who approved a nested run approved what goes on in it. DefinitionError
    where calls were approved together and a write among them was answered before the place: nobody can be asked about
    the others without making it twice.
    """
    strand, n = place
    facts = _read_strand(tape, strand)
    if _is_item(strand) and isinstance(facts[0], Question | Call | Batch):  # what all items of the batch follow from
        n, strand = parse_segment(last_segment(strand)).number, parent_of(strand)
        facts = _read_strand(tape, strand)
    if not _is_within_call(facts, n):
        return [place]
    step = _facts_of_step(facts, n)
    decided = next((fact.n for fact in step if isinstance(fact, Resolved)), None)
    if decided is None:
        return [place]
    since = [fact for fact in step if fact.n > decided]
    if any(_is_write(asked) and isinstance(answered, Answered) for asked, answered in pairwise(since)):
        message = f"these calls were approved together, and a write among them was made; fork at {strand}:{decided}"
        raise DefinitionError(f"{message}, where all of them are decided again", where=f"{strand}:{n}")
    waiting = facts[decided - 1]
    together = waiting.tools if isinstance(waiting, Waiting) else ()
    return [(item(strand, decided - 1, index), 1) for index in range(len(together))] or [(strand, decided)]


def _read_strand(tape: Tape, strand: str) -> Sequence[Fact]:
    return read_strands({strand: tape[strand]})[strand]


def _is_item(strand: str) -> bool:
    return "/" in strand and parse_segment(last_segment(strand)).name is None


def _is_within_call(facts: Sequence[Fact], n: int) -> bool:
    """Return whether a call is made at this record, which a person may have let through.

    None is at a question and its answer, at what was judged of it, at an end, and at the decision itself.
    """
    fact = facts[n]
    if isinstance(fact, Answered | Cancelled) and n:
        fact = facts[n - 1]
    if isinstance(fact, Decided):
        return fact.is_edited
    return not isinstance(fact, Resolved | Received | RunFinished | Question)


def _facts_of_step(facts: Sequence[Fact], n: int) -> list[Fact]:
    """Return what the records before n say, from the judgement of the reply that they follow from."""
    step: list[Fact] = []
    for fact in reversed(facts[:n]):
        step.append(fact)
        if isinstance(fact, Decided) and not fact.is_edited:
            break
    return step[::-1]
