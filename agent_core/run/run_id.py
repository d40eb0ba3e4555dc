"""Ids of runs: made here, or chosen by a caller."""

import re
from datetime import UTC, datetime
from secrets import token_hex

from agent_core.errors import DefinitionError


def new_run_id() -> str:
    """Return a run's id: sorts by time, and two never meet."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{token_hex(4)}"


def check_run_id(run_id: str) -> str:
    """Return the id that a caller chose; DefinitionError for one that cannot name a run."""
    if not isinstance(run_id, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}", run_id):
        message = "1 to 128 letters, digits, or any of _ . - after the first"
        raise DefinitionError(message, where="run_id", value=run_id)
    return run_id
