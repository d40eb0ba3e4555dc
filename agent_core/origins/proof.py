"""What the verdict on a run's calls rests on, by the rules of comparison that the run follows. Pure."""

from collections.abc import Mapping
from typing import Any

from agent_core.origins.earlier import TrustedTexts
from agent_core.origins.sources import Proof, Sources
from agent_core.rules import rules_of


def proof_of(started: Mapping[str, Any]) -> Proof:
    """Return what a run has read before its first step, from its `run_started` record."""
    comparison = rules_of(started)["comparison"]
    if comparison == 1:
        return TrustedTexts(started["trusted"])
    return Sources(started["sources"], started["messages"], comparison=comparison)
