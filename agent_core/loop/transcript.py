"""The conversation as a run sees it: what is sent to the model, and what is kept for the next turn. Pure."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import orjson

from agent_core.loop.clip import clip
from agent_core.loop.effects import Json
from agent_core.loop.json_text import snug
from agent_core.loop.tokens import estimate

SHORTENED = 80
PER_MESSAGE = 4


class Entry(NamedTuple):
    """One message as it is sent. `observation` may be shortened, `turn` numbers the turns that may be dropped."""

    role: str
    content: str
    observation: bool = False
    turn: int | None = None

    def wire(self) -> bytes:
        return snug(orjson.dumps({"role": self.role, "content": self.content}))

    def tokens(self) -> int:
        return estimate(self.content) + PER_MESSAGE


class Transcript:
    """Grows at its end only, so that vendors' prefix caches hit, until `max_tokens` forces a cut.

    `kept` are the neutral messages for the next turn: no system message, no unreadable reply, no repair.
    The digest is chained over neutral messages: each covers the last and what is new.
    """

    def __init__(self, sent: Sequence[Json], kept: Sequence[Json], max_tokens: int | None) -> None:
        self.kept: list[Json] = list(kept)
        self.entries = _numbered(sent)
        self.digest = sha256(orjson.dumps(list(sent))).hexdigest()
        self._wire = [entry.wire() for entry in self.entries]
        self._max_tokens = max_tokens
        self._tokens = sum(entry.tokens() for entry in self.entries) if max_tokens else 0

    def add(self, role: str, content: str, neutral: Sequence[Json], *, observation: bool = False) -> None:
        """Send `content` from now on; `neutral` is what it stands for."""
        entry = Entry(role, content, observation)
        self.entries.append(entry)
        self._wire.append(entry.wire())
        if self._max_tokens:
            self._tokens += entry.tokens()
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
        self._wire = [entry.wire() for entry in self.entries]
        self.digest = sha256(orjson.dumps([[entry.role, entry.content] for entry in self.entries])).hexdigest()
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
                self._tokens += shorter.tokens() - entry.tokens()
                count += 1
        return count

    def _drop(self) -> int:
        before = len(self.entries)
        for turn in sorted({entry.turn for entry in self.entries if entry.turn is not None}):
            if not self._over():
                break
            self._tokens -= sum(entry.tokens() for entry in self.entries if entry.turn == turn)
            self.entries = [entry for entry in self.entries if entry.turn != turn]
        return before - len(self.entries)


def _numbered(sent: Sequence[Json]) -> list[Entry]:
    """The opening conversation: its turns are numbered, all but the last, which is the question itself."""
    starts = [index for index, message in enumerate(sent) if message["role"] == "user"]
    last = starts[-1] if starts else len(sent)
    entries, turn = [], -1
    for index, message in enumerate(sent):
        turn += message["role"] == "user"
        droppable = message["role"] != "system" and index < last
        number = max(turn, 0) if droppable else None
        entries.append(Entry(message["role"], message["content"], turn=number))
    return entries
