"""How long things may take on Temporal."""

from datetime import timedelta
from typing import Final

WORKFLOW: Final = "agent_run"
QUEUE: Final = "agent-core"
ADDRESS: Final = "127.0.0.1:7233"
BEAT_S: Final = 0.5
"""How often an act tells Temporal that it lives."""
SILENCE: Final = timedelta(seconds=2.5)
"""After how long without a word of it an act counts as dead."""
SHORT: Final = timedelta(seconds=15)
"""How long anything but an act may take, a wait for a busy store included."""
LONGEST: Final = timedelta(days=1)
"""How long an act without a deadline of its own may take."""
STICKY: Final = timedelta(seconds=1)
TASK: Final = timedelta(seconds=2)
"""How long Temporal waits for the worker that knows a run, and for one that is given its next step."""
FINAL: Final = (
    *("Lost", "Damaged", "Divergence", "DecisionError", "DecisionTaken"),
    *("DefinitionError", "DefinitionErrors", "RunNotFound"),
)
"""What no second attempt mends."""
MAX_DRIVES: Final = 10
"""How often a run that lost a race is driven again from the tape."""


def workflow_id(queue: str, run: str) -> str:
    """Return the id of a run's workflow; a queue belongs to one store."""
    return f"{queue}/{run}"
