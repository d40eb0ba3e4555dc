"""What the verdict on a run's calls rests on, by the rules of comparison that the run follows. Pure."""

from collections.abc import Mapping
from typing import Any

from agent_core.effects import Json
from agent_core.origins.earlier import TrustedTexts
from agent_core.origins.sources import Proof, Sources
from agent_core.rules import CURRENT, rules_of


def proof_of(started: Mapping[str, Any]) -> Proof:
    """What a run has read before its first step, from its `run_started` record."""
    comparison = rules_of(started)["comparison"]
    if comparison == 1:
        return TrustedTexts(started["trusted"])
    return Sources(started["sources"], started["messages"], comparison=comparison)


def with_sources(started: Json) -> Json:
    """A `run_started` record under today's comparison, which alone knows all that a new policy may ask for."""
    if rules_of(started)["comparison"] != 1:
        return started
    sources = [{"kind": "vouched", "label": "trusted text", "value": text} for text in started["trusted"]]
    return {**started, "sources": sources, "rules": {**rules_of(started), "comparison": CURRENT["comparison"]}}
