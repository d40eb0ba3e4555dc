"""Planning: which questions of an agent in plan mode ask for a plan, and when it is settled. Pure."""

from dataclasses import dataclass

from agent_core.journal.facts import Decided
from engine_shim.telemetry.operations import Operation


@dataclass(slots=True)
class Planning:
    """An agent in plan mode. `operation` is the planning that is under way.

    `last` is how the last step of the plan in force went, None where none has begun; `replans`: after a failure another
    plan is asked for.
    """

    replans: bool
    operation: Operation | None = None
    last: str | None = None

    def asks_for_plan(self) -> bool:
        """Return whether the next question asks for a plan, not for the summary."""
        return self.last is None or (self.replans and self.last in ("failed", "skipped"))

    def is_settled_by(self, decided: Decided) -> bool:
        """Return whether the planning ends by a decision: a plan that may begin, or an answer in its place."""
        return (decided.plan is not None and decided.refused is None) or decided.is_final

    def follow(self, decided: Decided) -> None:
        """Follow a decision."""
        if decided.plan is not None:
            self.last = None
        elif decided.plan_step is not None:
            self.last = decided.plan_step["status"]
