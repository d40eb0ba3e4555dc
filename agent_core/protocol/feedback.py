"""What a model is told in its user's turn: observations, errors, and that it must answer now. Pure."""

from dataclasses import dataclass
from functools import lru_cache
from string import Template
from typing import Any

from agent_core.effects import Json
from agent_core.loop.budget import Budget

QUOTE = 20
"""From this many characters on, an answer that the repair text starts or ends with is a quote of it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The error text last sent. `tool_failed` when it carries a tool's own words, which an answer may well repeat."""

    text: str
    tool_failed: bool


@dataclass(frozen=True, slots=True)
class Feedback:
    """The run's templates, as its journal holds them."""

    texts: Json

    def error(self, message: str) -> str:
        """An unreadable reply, or a call that was refused."""
        return _filled(self.texts["error"], {"error": message})

    def tool_error(self, tool: str, error: str) -> str:
        return _filled(self.texts["tool_error"], {"tool": tool, "error": error})

    def told(self, how: str, tool: str, text: str) -> str:
        """What came of a call: it was `seen`, the tool `failed`, or the call was `refused`."""
        match how:
            case "seen":
                return self.observation(tool, text)
            case "failed":
                return self.tool_error(tool, text)
        return self.error(text)

    def observation(self, tool: str, text: str) -> str:
        return _filled(self.texts["observation"], {"tool": tool, "observation": text})

    def notice(self, budget: Budget) -> str | None:
        """That the next reply must be the answer, when it must."""
        if budget.limits.steps is not None and budget.steps + 1 >= budget.limits.steps:
            return str(self.texts["last_step"])
        return str(self.texts["last_call"]) if budget.no_calls_left() else None

    def is_quoted(self, repair: Repair | None, answer: Any) -> bool:
        """Whether an answer only gives the repair text back, as small models do."""
        if repair is None or not isinstance(answer, str):
            return False
        said, text = _squeezed(answer), _squeezed(repair.text)
        closing = _squeezed(self.texts["error"].rpartition("$error")[2])
        if said == text or (len(closing) >= QUOTE and closing in said):
            return True
        at_an_end = text.startswith(said) or text.endswith(said)
        return not repair.tool_failed and len(said) >= QUOTE and at_an_end


def _filled(template: str, values: dict[str, str]) -> str:
    return _as_format(template, tuple(values)) % values


@lru_cache(maxsize=64)
def _as_format(template: str, names: tuple[str, ...]) -> str:
    """A `string.Template` with these names as a text for `%`, which fills it in a fraction of the time."""
    return Template(template.replace("%", "%%")).substitute({name: f"%({name})s" for name in names})


def _squeezed(text: str) -> str:
    return " ".join(text.split())
