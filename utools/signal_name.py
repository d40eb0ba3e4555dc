"""The names of signals, for which nodes of workflows wait. Pure."""

import re
from typing import Final

from utools.errors import DefinitionError

SIGNAL_NAME: Final = r"^[A-Za-z0-9_.:\-]{1,128}$"
"""A signal's name, which is part of the path that it is sent to."""


def check_signal(name: str) -> None:
    """DefinitionError for a name that no signal can have."""
    if not isinstance(name, str) or not re.fullmatch(SIGNAL_NAME, name):
        raise DefinitionError("is 1 to 128 letters, digits, or any of _ . : -", where="signal", value=name)
