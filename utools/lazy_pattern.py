"""lazy_compile: a regular expression that is compiled when it is first used. Pure.

A command loads two hundred and uses a few dozen; compiling them all took an eighteenth of its time.
"""

import re
from typing import TYPE_CHECKING, Any


class _LazyPattern:
    """Has whatever the compiled pattern has."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    lazy_compile = re.compile
else:
    lazy_compile = _LazyPattern
