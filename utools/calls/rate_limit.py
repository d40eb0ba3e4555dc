"""Rate limits: how often all callers on a host together may call a tool. Pure."""

from dataclasses import dataclass

from utools.errors import DefinitionError
from utools.lazy_pattern import lazy_compile
from utools.words.catalogue import Words

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
RATE = lazy_compile(r"([1-9][0-9]{0,5})/(s|min|h)")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `count` calls in any span of time: a sliding window, not calendar minutes."""

    count: int
    unit: str

    @classmethod
    def from_text(cls, text: str, *, where: str = "rate_limit") -> "RateLimit":
        """Read `10/min`; DefinitionError for anything else."""
        found = RATE.fullmatch(text)
        if found is None:
            raise DefinitionError("write a count and a span, such as 10/min, 2/s or 500/h", where=where, value=text)
        return cls(int(found[1]), found[2])

    @property
    def seconds(self) -> float:
        return SECONDS[self.unit]

    def describe(self, words: Words) -> str:
        """Return the limit in the words of a language."""
        text = words.one_call if self.count == 1 else words.several_calls
        return text.format(count=self.count, span=words.spans[self.unit])
