"""The conversation of a run: what is sent to the model, and what the next turn gets of it. Pure."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import overload

import orjson

from agent_core.outputs import Json
from agent_core.protocol.clip import clip
from agent_core.protocol.dialect import Entry
from agent_core.protocol.strict_json import compact
from agent_core.protocol.tokens import estimate
from agent_core.rules import CURRENT
from agent_core.words.catalogue import ENGLISH, Words

Write = Callable[[], Sequence[Entry]]
"""Writes entries when they are needed."""
SHORTENED = 80
"""Characters of an observation that was shortened to make room."""
KEPT_PERCENT = 45
"""Of the tokens that a question may have, those that it has at most after a cut."""
PER_MESSAGE = 4
"""Tokens of each message in addition to its content."""


class Transcript:
    """Grows at its end only, so that vendors' prefix caches hit, until `max_tokens` forces a cut.

    `neutral` are the messages for the next turn: no system message, no unreadable reply, no repair. `extra` is what
    each question has in addition to the messages; it takes room too. `rules` is the version of the rules for cuts (see
    agent_core/rules.py). The digest is chained over neutral messages: each covers the last and what is new.
    """

    def __init__(
        self,
        sent: Sequence[Entry],
        neutral: Sequence[Json],
        max_tokens: int | None,
        *,
        extra: object = None,
        rules: int = CURRENT["cuts"],
        words: Words = ENGLISH,
    ) -> None:
        self.neutral: list[Json] = list(neutral)
        self._opening = len(self.neutral)
        self._rules, self._words = rules, words
        numbered = [entry._replace(observation=False) for entry in sent] if rules == 1 else sent
        self._wire = _Wire(_number_turns(numbered))
        self.digest = sha256(orjson.dumps([entry.to_wire() for entry in sent])).hexdigest()
        self._max_tokens = max_tokens
        self._extra = extra
        self._tokens = self._count() if max_tokens else 0

    def _count(self) -> int:
        fixed = estimate(orjson.dumps(self._extra).decode()) if self._extra else 0
        return fixed + sum(map(_count_tokens, self.entries))

    def append(self, entries: Sequence[Entry], neutral: Sequence[Json], *, step: int) -> None:
        """Send these of a step from now on; `neutral` are the neutral messages for them, which the digest covers."""
        self.append_later(len(entries), lambda: entries, (neutral,), step=step)

    def append_later(self, count: int, write: Write, neutral: Sequence[Sequence[Json]], *, step: int) -> None:
        """Send so many entries of a step from now on, which are written when they are first read: a replay sends none.

        `neutral` has the messages for each part of the step, one after the other.
        """
        self._wire.add(count, write, step)
        if self._max_tokens:
            self._tokens += sum(map(_count_tokens, self.entries[len(self.entries) - count :]))
        for part in neutral:
            self.digest = sha256(self.digest.encode() + orjson.dumps(part)).hexdigest()

    @property
    def entries(self) -> list[Entry]:
        """What is sent now."""
        return self._wire.entries

    def record(self, *messages: Json) -> None:
        """Add to the conversation for the next turn."""
        self.neutral.extend(messages)

    @property
    def added(self) -> list[Json]:
        """The messages for the next turn that the run did not begin with."""
        return self.neutral[self._opening :]

    def messages(self) -> Sequence[bytes]:
        """Return all messages in the shape of the wire."""
        return Messages(self._wire, self._wire.count)

    def narrow(self, room: int | None, counted: int | None) -> bool:
        """Keep to what a model can take, from the next cut on; whether a cut can help.

        `room` are the tokens of a question that it takes, `counted` those of the last one, both as its vendor counts:
        the ratio of the two holds for our estimate as well. Without `counted` the question is made a quarter shorter
        at least, without either by half.
        """
        self._tokens = self._count()
        if room is None:
            limit = self._tokens // 2
        elif counted:
            limit = self._tokens * room // counted * 95 // 100
        else:
            limit = min(room * 9 // 10, self._tokens * 3 // 4)
        self._max_tokens = max(1, min(limit, self._max_tokens or limit))
        last = self.entries[-1].step
        return any(
            entry.turn is not None
            or entry.step not in (None, last)
            or (entry.observation and len(entry.content) > SHORTENED)
            for entry in self.entries
        )

    def fit(self) -> Json | None:
        """Cut until the next question fits.

        First the oldest observations are shortened, then the oldest whole turns dropped, then the oldest whole steps of
        the run, all until there is room for some questions more: their beginning then stays the same, and in vendors'
        caches. The last step is shortened only when that is not enough for this question. Returns what was cut,
        {"shortened": observations, "dropped": messages}, with "steps" when steps were dropped; None when nothing was.
        """
        if self._max_tokens is None or self._tokens <= self._max_tokens:
            return None
        asked, self._wire = self._wire, _Wire(self._wire.entries)  # questions that were asked keep theirs
        last = None if self._rules < 3 else self.entries[-1].step
        goal = self._max_tokens if self._rules < 5 else self._max_tokens * KEPT_PERCENT // 100
        shortened, dropped, steps = self._shorten(goal, but=last), self._drop(goal), 0
        if self._rules >= 3:
            steps = self._drop_steps(goal, last)
            shortened += self._shorten(self._max_tokens)
        if not shortened and not dropped and not steps:
            self._wire = asked
            return None
        by_content = self._rules == 1
        covered = [[entry.role, entry.content] if by_content else entry.to_wire() for entry in self.entries]
        self.digest = sha256(orjson.dumps(covered)).hexdigest()
        cut: Json = {"shortened": shortened, "dropped": dropped}
        return {**cut, "steps": steps} if steps else cut

    def _shorten(self, goal: int, but: int | None = None) -> int:
        """Shorten the oldest observations, except those of one step; how many."""
        count = 0
        for index, entry in enumerate(self.entries):
            if self._tokens <= goal:
                break
            if but is not None and entry.step == but:
                continue
            if entry.observation and len(entry.content) > SHORTENED:
                shorter = entry._replace(content=clip(entry.content, SHORTENED, self._words))
                self.entries[index] = shorter
                self._tokens += _count_tokens(shorter) - _count_tokens(entry)
                count += 1
        return count

    def _drop(self, goal: int) -> int:
        """Drop the oldest turns before the run; how many messages."""
        before = len(self.entries)
        for turn in sorted({entry.turn for entry in self.entries if entry.turn is not None}):
            if self._tokens <= goal:
                break
            self._remove([entry for entry in self.entries if entry.turn == turn])
        return before - len(self.entries)

    def _drop_steps(self, goal: int, last: int | None) -> int:
        """Drop the oldest steps of the run, each whole, but not the last; how many."""
        count = 0
        for step in sorted({entry.step for entry in self.entries if entry.step not in (None, last)}):
            if self._tokens <= goal:
                break
            self._remove([entry for entry in self.entries if entry.step == step])
            count += 1
        return count

    def _remove(self, entries: Sequence[Entry]) -> None:
        gone = set(map(id, entries))
        self._tokens -= sum(map(_count_tokens, entries))
        self._wire = _Wire([entry for entry in self.entries if id(entry) not in gone])


class _Wire:
    """A conversation that grows: its entries, the last of which may still have to be written, and its messages as JSON
    texts, each written when it is first read."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.count = len(entries)
        self._written, self._unwritten = [*entries], list[tuple[Write, int]]()
        self._texts: list[bytes] = []

    def add(self, count: int, write: Write, step: int) -> None:
        """Add so many entries of a step."""
        self._unwritten.append((write, step))
        self.count += count

    @property
    def entries(self) -> list[Entry]:
        """All entries, written."""
        if self._unwritten:
            unwritten, self._unwritten = self._unwritten, []
            for write, step in unwritten:
                self._written += _of_step(write(), step)
            assert len(self._written) == self.count
        return self._written

    def first(self, count: int) -> list[bytes]:
        """Return the first messages."""
        self._texts += [_to_bytes(entry) for entry in self.entries[len(self._texts) : count]]
        return self._texts[:count]


class Messages(Sequence[bytes]):
    """The messages of one question, oldest first; a replay, which sends none, never writes them."""

    def __init__(self, wire: _Wire, count: int) -> None:
        self._wire, self._count = wire, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self._wire.first(self._count)[index]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._wire.first(self._count))


def _of_step(entries: Sequence[Entry], step: int) -> list[Entry]:
    return [Entry(*entry[:-1], step) for entry in entries]


def _to_bytes(entry: Entry) -> bytes:
    return compact(orjson.dumps(entry.to_wire()))


def _count_tokens(entry: Entry) -> int:
    """Return an estimate that includes native calls."""
    more = estimate(orjson.dumps(entry.more).decode()) if entry.more else 0
    return estimate(entry.content) + more + PER_MESSAGE


def _number_turns(sent: Sequence[Entry]) -> list[Entry]:
    """Return the opening conversation with its turns numbered, except the last, which is the question itself."""
    starts = [index for index, entry in enumerate(sent) if entry.role == "user"]
    last = starts[-1] if starts else len(sent)
    entries, turn = list[Entry](), -1
    for index, entry in enumerate(sent):
        turn += entry.role == "user"
        droppable = entry.role != "system" and index < last
        entries.append(entry._replace(turn=max(turn, 0) if droppable else None))
    return entries
