"""Error text that may be shown: no stack trace, no absolute host path, no environment value. Pure."""

import re
from collections.abc import Mapping

from utools.lazy_pattern import lazy_compile
from utools.secrets.redaction import Redactor

SEPARATOR = lazy_compile(r"[/\\]")
TRACE = lazy_compile(r"(?:\+ Exception Group )?Traceback \(most recent call last\)")
LINE = lazy_compile(r"\n|\\n")  # a trace may be in a repr
QUOTED = lazy_compile(r"""(['"])(?:file://)?(?:[A-Za-z]:[\\/]|/)[^'"\n]*\1""")
BARE = lazy_compile(
    r"""(?<![A-Za-z0-9_.~/\-…])(?:file://)?(?:[A-Za-z]:\\|/(?!/))[^\s'"<>|:;,()\[\]，。；：！？、（）《》「」“”]+"""
)
SYSTEM_ERROR = lazy_compile(r"\[(?:Errno|WinError) ")
ON_DISK = lazy_compile(
    r"file:|[A-Za-z]:[\\/]|/(?:Applications|Library|System|Users|Volumes|app|bin|boot|dev|etc|home|lib|lib64|media|mnt|nix"
    r"|opt|private|proc|root|run|sbin|snap|srv|sys|tmp|usr|var|work|workspaces?)/|/.*/[^/]*\.\w{1,5}$"
)


def scrub(text: str, environment: Mapping[str, str]) -> str:
    """`text` with each absolute path reduced to its last part, and each environment value replaced by its name."""
    return _without(text, environment, re.compile(""))


def scrub_words(text: str, environment: Mapping[str, str]) -> str:
    """Return the same for a text that was written for the model: what may be a JSON pointer or a route stays
    (`/items/0`).

    A path is recognised by its beginning (`/home/…`), by an extension, or by being part of a system error.
    """
    return _without(text, environment, re.compile("") if SYSTEM_ERROR.search(text) else ON_DISK)


def _without(text: str, environment: Mapping[str, str], is_path: re.Pattern[str]) -> str:
    def shorten(path: str) -> str:
        return f"…/{SEPARATOR.split(path.rstrip('/'))[-1]}" if is_path.match(path) else path

    text = QUOTED.sub(lambda found: f"{found[1]}{shorten(found[0].strip(found[1]))}{found[1]}", _without_trace(text))
    text = BARE.sub(lambda found: shorten(found[0]), text)
    return Redactor(environment).text(text)


def _without_trace(text: str) -> str:
    """Return the text before a stack trace, and its last line, which names the exception."""
    trace = TRACE.search(text)
    if trace is None:
        return text
    lines = [line.strip() for line in LINE.split(text[trace.end() :]) if line.strip()]
    last = lines[-1] if len(lines) > 1 and not text.endswith("…") else ""  # else it was cut off in the middle
    return f"{text[: trace.start()].rstrip()} {last}".strip()
