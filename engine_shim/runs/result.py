"""What a caller gets of a workflow run."""

from dataclasses import dataclass
from typing import Any

from agent_core.effects import Json


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to. `status` is completed, failed, cancelled, waiting or paused; `outputs` are by node id."""

    run_id: str
    status: str
    outputs: dict[str, Any]
    path: list[str]
    waiting: list[dict[str, Any]]
    journal: dict[str, Any]
    error: dict[str, Any] | None

    def as_json(self) -> Json:
        return {name: getattr(self, name) for name in self.__slots__}
