"""What a reply has used: the vendor's count, or an estimate that says so. Pure."""

import math
from typing import Any, Final, NamedTuple

from agent_core.models.client import Completion
from agent_core.outputs import Json
from agent_core.protocol.tokens import estimate

MAX_TOKENS = 2**40
COUNTS = ("prompt_tokens", "completion_tokens")
PARTS: Final = ("cached_tokens", "cache_write_tokens", "reasoning_tokens")
"""Tokens counted apart: two parts of a reply's input, one of its output."""
_INPUTS: Final = "prompt_tokens_details"
CACHED: Final = ((_INPUTS, "cached_tokens"), (None, "prompt_cache_hit_tokens"), (None, "cached_tokens"))
"""Where vendors count the input tokens from their cache: OpenAI and most others, DeepSeek, Moonshot and Together."""
WRITTEN: Final = (
    (_INPUTS, "cache_write_tokens"),
    (_INPUTS, "cache_creation_input_tokens"),
    (_INPUTS, "cache_creation_tokens"),
)
"""Where vendors count the input tokens that they wrote to their cache: OpenRouter, Qwen, LiteLLM."""
THOUGHTS: Final = (("completion_tokens_details", "reasoning_tokens"), (None, "reasoning_tokens"))
"""Where vendors count the tokens of thoughts: OpenAI and most others, SGLang and Perplexity."""


class Counted(NamedTuple):
    """A vendor's count of one reply; None where it has none that can be true. `doubtful`: its parts disagree.

    `cached` and `written` tokens, from and to its cache, are among the inputs, `reasoning` ones among the outputs.
    """

    inputs: int | None
    outputs: int | None
    cached: int
    cost: float | None
    doubtful: bool
    written: int = 0
    reasoning: int = 0


def count_usage(completion: Completion, asked: int) -> Json:
    """Return the tokens and the cost in USD of one reply; `asked` is an estimate of the question's tokens."""
    texts = [completion.content, *(call["arguments"] for call in completion.calls)]
    has_text = bool(completion.content or completion.calls)
    inputs = _plausible(completion.input_tokens, is_needed=asked > 0)
    outputs = _plausible(completion.output_tokens, is_needed=has_text)
    estimated = completion.estimated or inputs is None or outputs is None
    if inputs is None:
        inputs = asked
    if outputs is None:
        outputs = sum(map(estimate, texts))
    usage = {"input_tokens": inputs, "output_tokens": outputs, "cost": completion.cost, "estimated": estimated}
    if completion.cached_tokens or completion.cache_write_tokens or completion.reasoning_tokens:
        return {**usage, **_count_parts(completion, inputs, outputs)}
    return usage


def _count_parts(completion: Completion, inputs: int, outputs: int) -> Json:
    """Return the tokens that are counted apart, those that there are: no part is larger than its whole."""
    cached = min(completion.cached_tokens, inputs)
    written, reasoning = min(completion.cache_write_tokens, inputs - cached), min(completion.reasoning_tokens, outputs)
    return {name: count for name, count in zip(PARTS, (cached, written, reasoning), strict=True) if count > 0}


def read_vendor_usage(usage: Any) -> Counted:
    """Return the count in a reply of OpenAI's shape.

    No question has 0 tokens. Where the parts do not make the total, the larger count is kept: what a model has thought
    is in the total alone at some vendors, and named beside it at others.
    """
    inputs, outputs = (read_count(usage, name) for name in COUNTS)
    total, cached, cost = read_count(usage, "total_tokens"), _read_first(usage, CACHED), _read_cost(usage)
    thought = _read_first(usage, THOUGHTS)
    written = _read_first(usage, WRITTEN)
    doubtful = cached > (inputs or cached)
    if total is not None and total != (inputs or 0) + (outputs or 0):
        doubtful = doubtful or not inputs or outputs is None or total != inputs + outputs + thought
        if not inputs:
            inputs = max(0, total - outputs) if outputs is not None else None
        else:
            outputs = max(outputs or 0, total - inputs)
    if not inputs:
        inputs, cost = None, cost or None  # it counted nothing, and so costs nothing
    elif doubtful and cached > inputs:
        inputs += cached
    return Counted(inputs, outputs, cached, cost, doubtful, written, thought)


def merge_usage(before: Any, after: Any) -> Any:
    """Return the usage of a stream after one more chunk: a count of 0, or none, does not erase an earlier one."""
    if not isinstance(after, dict) or not after:
        return before
    if not isinstance(before, dict):
        return after
    merged = {**before}
    for name, value in after.items():
        merged[name] = merge_usage(before.get(name), value) if isinstance(value, dict) else value or before.get(name)
    if any(before.get(name) and not after.get(name) for name in COUNTS):
        merged.pop("total_tokens", None)  # it is of one chunk, and the parts are of several
    return merged


def read_usage(given: Any) -> Json | None:
    """Return what a tool says that it spent on models; None where it says nothing that can be counted."""
    if not isinstance(given, dict):
        return None
    counts = {name: given.get(name) for name in ("requests", "input_tokens", "output_tokens")}
    if any(type(count) is not int or _plausible(count) is None for count in counts.values()):
        return None
    cost = given.get("cost")
    if not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        cost = None
    parts = {name: given[name] for name in PARTS if _plausible(given.get(name)) and given[name] > 0}
    return {**counts, **parts, "tool_calls": 0, "cost": cost, "estimated": bool(given.get("estimated"))}


def _plausible(tokens: int | None, *, is_needed: bool = False) -> int | None:
    """Return a vendor's count, if sums of such counts fit into a journal, and it is not 0 where some `is_needed`."""
    if type(tokens) is not int or not 0 <= tokens < MAX_TOKENS:
        return None
    return None if tokens == 0 and is_needed else tokens


def _part(usage: Any, name: str) -> Any:
    return usage.get(name) if isinstance(usage, dict) else None


def read_count(usage: Any, name: str) -> int | None:
    """Return a count that can be one; None for any other value."""
    value = _part(usage, name)
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


def _read_first(usage: Any, places: tuple[tuple[str | None, str], ...]) -> int:
    """Return the first count of these places that is more than 0."""
    counts = (read_count(usage if part is None else _part(usage, part), name) for part, name in places)
    return next(filter(None, counts), 0)


def _read_cost(usage: Any) -> float | None:
    """Return the reply's cost, where the vendor itself gives it (OpenRouter)."""
    cost = _part(usage, "cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MAX_TOKENS:
        return float(cost)
    return None
