"""What a model reads in the user's turn: observations, errors, and that it must answer now. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import Template
from typing import Any, Literal, assert_never

import orjson

from agent_core.outputs import Json
from agent_core.protocol.clip import clip
from agent_core.words.catalogue import ENGLISH, Words

MIN_QUOTE = 20
"""From this many characters on, an answer that the repair text starts or ends with is a quote of it."""

MAX_REQUEST = 300
"""Characters of a request that an observation repeats."""

Status = Literal["seen", "failed", "refused"]
"""What became of a call: it was made and `seen`, the tool `failed`, or judge `refused` it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The error text last sent. `tool_failed` when it has a tool's own words, which an answer may well repeat."""

    text: str
    tool_failed: bool


@dataclass(frozen=True, slots=True)
class Feedback:
    """The run's templates, as its journal holds them, the words of its language, and what the user asked for."""

    texts: Json
    words: Words = ENGLISH
    request: str = ""

    def error(self, message: str) -> str:
        """Return an unreadable reply, or a call that was refused."""
        return _fill(self.texts["error"], {"error": message})

    def tool_error(self, tool: str, error: str) -> str:
        return _fill(self.texts["tool_error"], {"tool": tool, "error": error, "request": self._asked(self.request)})

    def observation(self, tool: str, text: str, request: str | None = None) -> str:
        """Return a tool's answer; `request` is what was asked for where that is not what the run is asked for."""
        asked = self._asked(self.request if request is None else request)
        return _fill(self.texts["observation"], {"tool": tool, "observation": text, "request": asked})

    def result(self, status: Status, tool: str, text: str) -> str:
        """Return what became of a call."""
        match status:
            case "seen":
                return self.observation(tool, text)
            case "failed":
                return self.tool_error(tool, text)
            case "refused":
                return self.error(text)
            case _:
                assert_never(status)

    def reading(self, *, step: int, call: int, start: int, left: int) -> str:
        """Return how the model reads the `left` characters from `start` on of a step's observation."""
        which = {"step": step, "from": start} | ({"call": call} if call > 1 else {})
        return _fill(self.texts["reading"], {"left": str(left), "args": orjson.dumps(which).decode()})

    def report(self, template: str, steps: Sequence[str], request: str | None = None) -> str:
        """Return what became of a plan's steps: the template `summary` or `replan`; `request` as for an observation."""
        asked = self.request if request is None else request
        return _fill(self.texts[template], {"steps": "\n\n".join(steps), "user_message": asked})

    def echo(self, reply: str, limit: int) -> str:
        """Return an unreadable reply as the model sees it again."""
        return clip(reply, limit, self.words) or self.words.no_reply_text

    def notice(self, limit: Literal["max_steps", "max_tool_calls"]) -> str:
        """Return that the next reply must be the answer, because of this limit."""
        return str(self.texts["last_step" if limit == "max_steps" else "last_call"])

    def is_quoted(self, repair: Repair | None, answer: Any) -> bool:
        """Return whether an answer only repeats the repair text, as small models do."""
        if repair is None or not isinstance(answer, str):
            return False
        quote, text = _squeeze(answer), _squeeze(repair.text)
        closing = _squeeze(self.texts["error"].rpartition("$error")[2])
        if quote == text or (len(closing) >= MIN_QUOTE and closing in quote):
            return True
        at_an_end = text.startswith(quote) or text.endswith(quote)
        return not repair.tool_failed and len(quote) >= MIN_QUOTE and at_an_end

    def _asked(self, request: str) -> str:
        return clip(request, MAX_REQUEST, self.words)


def _fill(template: str, values: dict[str, str]) -> str:
    return _to_percent_format(template, tuple(values)) % values


@lru_cache(maxsize=64)
def _to_percent_format(template: str, names: tuple[str, ...]) -> str:
    """Return a `string.Template` with these names as a text for `%`, which fills it in a fraction of the time."""
    return Template(template.replace("%", "%%")).substitute({name: f"%({name})s" for name in names})


def _squeeze(text: str) -> str:
    return " ".join(text.split())
