"""The tokens of a reply, from Gemini's usage metadata. Pure."""

from typing import Any

from agent_core.models.usage import MAX_TOKENS, Counted, merge_usage, read_vendor_usage

INPUTS, OUTPUTS = ("promptTokenCount", "toolUsePromptTokenCount"), ("candidatesTokenCount", "thoughtsTokenCount")
TOTAL = "totalTokenCount"


def read_counts(usage: Any) -> tuple[Counted, int]:
    """Return the count of a reply, read with the same care as OpenAI's, and how many of its tokens were thoughts.

    What server-side tools gave to the model is input, and thoughts are output; Gemini counts both apart.
    """
    given = usage if isinstance(usage, dict) else {}
    counts = {
        "prompt_tokens": _add(given, *INPUTS),
        "completion_tokens": _add(given, *OUTPUTS),
        "total_tokens": given.get(TOTAL),
        "prompt_tokens_details": {"cached_tokens": given.get("cachedContentTokenCount")},
    }
    counted = read_vendor_usage(counts)
    return counted, min(_read(given, "thoughtsTokenCount") or 0, counted.outputs or 0)


def merge_counts(before: Any, after: Any) -> Any:
    """Return the usage of a stream after one more piece: counts grow, and one of 0, or none, does not erase an earlier
    one."""
    merged = merge_usage(before, after)
    is_later = isinstance(before, dict) and isinstance(after, dict)
    if is_later and any(before.get(name) and not after.get(name) for name in (*INPUTS, *OUTPUTS)):
        merged.pop(TOTAL, None)  # it is of one piece, and the parts are of several
    return merged


def _add(usage: dict[str, Any], first: str, second: str) -> int | None:
    """Return the sum of two counts; None where there is no valid one."""
    counts = [count for name in (first, second) if (count := _read(usage, name)) is not None]
    return sum(counts) if counts else None


def _read(usage: dict[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None
