"""Error text that may be shown: without absolute host paths and without environment values. Pure."""

import re
from collections.abc import Mapping

from utools.guards.redaction import Redactor

SEPARATOR = re.compile(r"[/\\]")
QUOTED = re.compile(r"""(['"])(?:file://)?(?:[A-Za-z]:[\\/]|/)[^'"\n]*\1""")
BARE = re.compile(r"""(?<![\w.~/:\-…])(?:file://)?(?:[A-Za-z]:\\|/)[^\s'"<>|:;,()\[\]]+""")


def scrubbed(text: str, environment: Mapping[str, str]) -> str:
    """`text` with each absolute path cut down to its last part, and each environment value by its name."""
    text = QUOTED.sub(lambda found: f"{found[1]}{_last(found[0].strip(found[1]))}{found[1]}", text)
    text = BARE.sub(lambda found: _last(found[0]), text)
    return Redactor(environment).text(text)


def _last(path: str) -> str:
    last = SEPARATOR.split(path.rstrip("/"))[-1]
    return f"…/{last}"
