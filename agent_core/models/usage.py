"""What a reply has used: the vendor's count, or an estimate that says so. Pure."""

import math
from typing import Any

from agent_core.effects import Json
from agent_core.models.client import Completion
from agent_core.protocol.tokens import estimate

MAX_TOKENS = 2**40
BYTES_PER_TOKEN = 4


def count_usage(completion: Completion, sent: int) -> Json:
    """The tokens and the cost in USD of one reply; `sent` is how many bytes the question had."""
    inputs, outputs = _plausible(completion.input_tokens), _plausible(completion.output_tokens)
    estimated = inputs is None or outputs is None
    if inputs is None:
        inputs = sent // BYTES_PER_TOKEN
    if outputs is None:
        outputs = sum([estimate(text) for text in (completion.content, *(c["arguments"] for c in completion.calls))])
    return {"input_tokens": inputs, "output_tokens": outputs, "cost": completion.cost, "estimated": estimated}


def read_usage(given: Any) -> Json | None:
    """What a tool says that it spent on models; None where it says nothing that can be counted."""
    if not isinstance(given, dict):
        return None
    counts = {name: given.get(name) for name in ("requests", "input_tokens", "output_tokens")}
    if any(type(count) is not int or _plausible(count) is None for count in counts.values()):
        return None
    cost = given.get("cost")
    if not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        cost = None
    return {**counts, "tool_calls": 0, "cost": cost, "estimated": bool(given.get("estimated"))}


def _plausible(tokens: int | None) -> int | None:
    """A vendor's count, if sums of such counts fit into a journal."""
    return tokens if tokens is None or 0 <= tokens < MAX_TOKENS else None
