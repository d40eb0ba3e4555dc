"""Names and bounds of runs on Temporal that no operator changes; the others are in `TemporalConfig`."""

from datetime import timedelta
from typing import Final

WORKFLOW: Final = "agent_run"
CHILD_WORKFLOW: Final = "agent_core_run"
"""The workflow of a run that another workflow begins."""
RUN_FAILED: Final = "AgentRunFailed"
"""The type of the error by which that ends whose run has failed."""
QUEUE: Final = "agent-core"
SHORT: Final = timedelta(seconds=15)
"""How long anything but an act may take, a wait for a busy store included."""
LONGEST: Final = timedelta(days=1)
"""How long an act without a deadline of its own may take."""
FINAL: Final = (
    *("Lost", "Damaged", "Divergence", "DecisionError", "DecisionTaken"),
    *("DefinitionError", "DefinitionErrors", "RunNotFound"),
)
"""What no second attempt mends."""
MAX_RESULT: Final = 1_500_000
"""How many bytes a result may have: Temporal takes no more than 2 MB."""
KEPT: Final = ("trace", "messages_json")
"""What the journal keeps of an agent's outputs, and Temporal's history does not need."""
MAX_DRIVES: Final = 10
"""How often a run that lost a race is driven again from the tape."""


def workflow_id(queue: str, run: str) -> str:
    """Return the id of a run's workflow; a queue belongs to one store."""
    return f"{queue}/{run}"
