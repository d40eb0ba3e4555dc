"""The conversation as a run sees it: what is sent to the model, and what is kept for the next turn. Pure."""

from collections.abc import Sequence
from hashlib import sha256

import orjson

from agent_core.effects import Json
from agent_core.protocol.clip import clip
from agent_core.protocol.dialect import Entry
from agent_core.protocol.strict_json import snug
from agent_core.protocol.tokens import estimate

SHORTENED = 80
PER_MESSAGE = 4
CUTS = 2
"""How a conversation is cut, since a run is replayed as it was: by the first rules, no earlier turn's observations were
shortened, and the digest after a cut left native calls out."""


class Transcript:
    """Grows at its end only, so that vendors' prefix caches hit, until `max_tokens` forces a cut.

    `kept` are the neutral messages for the next turn: no system message, no unreadable reply, no repair. What goes
    `beside` the messages in each question takes room too. `rules` are the ones by which the run began to be cut.
    The digest is chained over neutral messages: each covers the last and what is new.
    """

    def __init__(
        self,
        sent: Sequence[Entry],
        kept: Sequence[Json],
        max_tokens: int | None,
        *,
        beside: object = None,
        rules: int = CUTS,
    ) -> None:
        self.kept: list[Json] = list(kept)
        self._rules = rules
        self.entries = _numbered([entry._replace(observation=False) for entry in sent] if rules == 1 else sent)
        self.digest = sha256(orjson.dumps([entry.wire() for entry in sent])).hexdigest()
        self._wire = [_bytes(entry) for entry in self.entries]
        self._max_tokens = max_tokens
        fixed = estimate(orjson.dumps(beside).decode()) if beside else 0
        self._tokens = fixed + sum(map(_tokens, self.entries)) if max_tokens else 0

    def add(self, entries: Sequence[Entry], neutral: Sequence[Json]) -> None:
        """Send these from now on; `neutral` is what they stand for."""
        self.entries += entries
        self._wire += [_bytes(entry) for entry in entries]
        if self._max_tokens:
            self._tokens += sum(map(_tokens, entries))
        self.digest = sha256(self.digest.encode() + orjson.dumps(neutral)).hexdigest()

    def keep(self, *messages: Json) -> None:
        self.kept.extend(messages)

    def wire(self) -> tuple[bytes, ...]:
        return tuple(self._wire)

    def fit(self) -> Json | None:
        """Cut until the next question fits: the oldest observations first, then the oldest whole turns.

        Says what was cut, {"shortened": observations, "dropped": messages}, or None when nothing had to be.
        """
        if not self._max_tokens or self._tokens <= self._max_tokens:
            return None
        shortened, dropped = self._shorten(), self._drop()
        if not shortened and not dropped:
            return None
        self._wire = [_bytes(entry) for entry in self.entries]
        first = self._rules == 1
        told = [[entry.role, entry.content] if first else entry.wire() for entry in self.entries]
        self.digest = sha256(orjson.dumps(told)).hexdigest()
        return {"shortened": shortened, "dropped": dropped}

    def _over(self) -> bool:
        return self._max_tokens is not None and self._tokens > self._max_tokens

    def _shorten(self) -> int:
        count = 0
        for index, entry in enumerate(self.entries):
            if not self._over():
                break
            if entry.observation and len(entry.content) > SHORTENED:
                shorter = entry._replace(content=clip(entry.content, SHORTENED))
                self.entries[index] = shorter
                self._tokens += _tokens(shorter) - _tokens(entry)
                count += 1
        return count

    def _drop(self) -> int:
        before = len(self.entries)
        for turn in sorted({entry.turn for entry in self.entries if entry.turn is not None}):
            if not self._over():
                break
            self._tokens -= sum(_tokens(entry) for entry in self.entries if entry.turn == turn)
            self.entries = [entry for entry in self.entries if entry.turn != turn]
        return before - len(self.entries)


def _bytes(entry: Entry) -> bytes:
    return snug(orjson.dumps(entry.wire()))


def _tokens(entry: Entry) -> int:
    """An estimate, of native calls too."""
    more = estimate(orjson.dumps(entry.more).decode()) if entry.more else 0
    return estimate(entry.content) + more + PER_MESSAGE


def _numbered(sent: Sequence[Entry]) -> list[Entry]:
    """The opening conversation: its turns are numbered, all but the last, which is the question itself."""
    starts = [index for index, entry in enumerate(sent) if entry.role == "user"]
    last = starts[-1] if starts else len(sent)
    entries, turn = [], -1
    for index, entry in enumerate(sent):
        turn += entry.role == "user"
        droppable = entry.role != "system" and index < last
        entries.append(entry._replace(turn=max(turn, 0) if droppable else None))
    return entries
