"""last_words(): what a program wrote to its standard error about its end. Pure.

The last line alone is seldom it: Node.js ends with its version, npm with the place of its log, a usage text with where
to read more.
"""

from collections.abc import Callable
from typing import Final

from utools.lazy_pattern import lazy_compile

SHOWN: Final = 300
"""Characters that are shown."""
END_SHOWN: Final = 100
"""Those of them that a longer text ends with."""
COLOUR: Final = lazy_compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ERROR: Final = lazy_compile(r"(?=\S)(?:.{0,60}\W)?\w*?(?:[Ee]rror|ERROR|Exception|[Ff]atal|FATAL|panic(?:ked)?)\b")
"""A line with an error at its beginning, or after `npm`, a time and the like. Lines of code in a trace are indented."""
TRACE: Final = lazy_compile(
    r"\s*(?:at .*|[\]})]+|Node\.js v\S+|npm \S+ A complete log of this run .*|goroutine \d+ .*|[Ss]tack backtrace:"
    r"|note: run with .*)$"
)
"""A line that says where, and not why."""


def last_words(stderr: str, hide: Callable[[str], str] = str) -> str:
    """Return the last error with what follows it up to a trace; else the last line. `hide` takes secrets out of a text
    before it is cut: half of one would be found no more."""
    lines = [line for line in COLOUR.sub("", stderr).splitlines() if line.strip()]
    errors = [number for number, line in enumerate(lines) if ERROR.match(line) and not TRACE.match(line)]
    if not errors:
        told = [line for line in lines if not TRACE.match(line)] or lines
        return _cut(hide(" ".join(told[-1:])))
    begin = end = errors[-1]
    while begin - 1 in errors:
        begin -= 1
    while end < len(lines) and not TRACE.match(lines[end]):
        end += 1
    return _cut(hide(" ".join(line.strip() for line in lines[begin:end])))


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN else f"{text[: SHOWN - END_SHOWN]} … {text[-END_SHOWN:]}"
