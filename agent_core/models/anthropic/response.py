"""A message of the Messages API, read: a completion, or a refusal that says why not. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from agent_core.models.anthropic.request import API
from agent_core.models.client import Completion
from agent_core.models.endpoint.answer import (
    MAX_CALLS,
    MAX_MESSAGE,
    HttpAnswer,
    Refusal,
    check_encodable,
    read_success,
    show_body,
    write_arguments,
)
from agent_core.models.endpoint.answer import find_error as find_named_error
from agent_core.models.endpoint.conversation import own_parts
from agent_core.models.finish_reasons import DONE, FILTERED, MAX_WORD, find_reason
from agent_core.models.usage import MAX_TOKENS
from agent_core.outputs import Json

PAUSED = "pause_turn"
CACHED, CACHE_WRITES = "cache_read_input_tokens", "cache_creation_input_tokens"
COUNTED = ("input_tokens", CACHED, CACHE_WRITES, "output_tokens")


def read_reply(reply: Any, answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return the completion in the JSON value of an answer with a status of success."""
    return read_success(reply, answer, now, find_error(reply), _read_message)


def find_error(reply: Any) -> Any:
    """Return the error in a reply or in an event of a stream."""
    if isinstance(reply, dict) and reply.get("type") == "error":
        return reply.get("error") or reply
    return find_named_error(reply, "type", "content")


def read_text(content: Any) -> str:
    """Return the text of a message's blocks, without its thoughts."""
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in _blocks(content) if block.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _read_message(reply: Any, status: int) -> Completion | Refusal:
    if not isinstance(reply, dict) or not isinstance(reply.get("content", ...), list | str | None):
        return Refusal(f"answered with no message: {show_body(orjson.dumps(reply))}", status)
    content, reason = reply["content"], _read_stop_reason(reply)
    why = _explain_refusal(reply.get("stop_details")) if find_reason(reason) == FILTERED else ""
    calls = [block for block in _blocks(content) if block.get("type") == "tool_use"]
    if len(calls) > MAX_CALLS:
        return Refusal(f"answered with {len(calls)} calls, and at most {MAX_CALLS} are read", status)
    if not all(isinstance(call.get("name"), str) for call in calls):
        return Refusal(f"answered with a call without a name: {show_body(orjson.dumps(reply))}", status)
    echo = _read_echo(content) if calls or reason == PAUSED else None
    check_encodable(echo)
    return replace(
        _read_usage(reply.get("usage")),
        content=read_text(content),
        finish_reason=reason,
        calls=tuple(map(_read_call, calls)),
        echo=echo,
        refusal=f"the model refused to answer: {why}" if why else "",
    )


def _blocks(content: Any) -> list[Json]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _read_stop_reason(reply: Mapping[str, Any]) -> str:
    """Return the vendor's word, which the caller reads."""
    given = reply.get("stop_reason")
    return " ".join(given.split())[:MAX_WORD] or DONE if isinstance(given, str) else DONE


def _explain_refusal(details: Any) -> str:
    """Return why the model refused to answer, as far as the vendor says it."""
    fields = details if isinstance(details, Mapping) else {}
    words = [fields.get(name) for name in ("explanation", "category")]
    return next((word.strip()[:MAX_MESSAGE] for word in words if isinstance(word, str) and word.strip()), "")


def _read_call(block: Json) -> Json:
    return {"name": block["name"], "arguments": write_arguments(block.get("input"))}


def _read_echo(content: Any) -> Json | None:
    """Return the blocks to go back as they came; None where the API would not take them back."""
    inputs = [block.get("input") for block in _blocks(content) if block.get("type") == "tool_use"]
    if not isinstance(content, list) or not content or not all(isinstance(given, dict) for given in inputs):
        return None
    return own_parts(API, content)


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def _read_usage(usage: Any) -> Completion:
    """Return an empty completion with the vendor's count: its input tokens are those that no cache has to do with.

    No question has 0 tokens, and no count is larger than what contains it.
    """
    fresh, cached, written, outputs = _sum_iterations(usage) or (_read_count(usage, name) for name in COUNTED)
    details = usage.get("output_tokens_details") if isinstance(usage, Mapping) else None
    thought = _read_count(details, "thinking_tokens") or 0
    inputs = None if fresh is None else _sum([fresh, cached or 0, written or 0])
    is_counted = inputs is not None
    return Completion(
        "",
        input_tokens=inputs,
        output_tokens=outputs,
        cached_tokens=cached or 0 if is_counted else 0,
        cache_write_tokens=written or 0 if is_counted else 0,
        reasoning_tokens=min(thought, outputs or 0),
        estimated=outputs is not None and thought > outputs,
    )


def _sum_iterations(usage: Any) -> list[int] | None:
    """Return the counts of all that a reply took; None where only its sums are given.

    The sums leave out what the vendor did on the way: the summary of a conversation that it compacted, the model that
    gave advice.
    """
    iterations = usage.get("iterations") if isinstance(usage, Mapping) else None
    if not isinstance(iterations, list) or not iterations:
        return None
    counts = [[_read_count(each, name) for name in COUNTED] for each in iterations]
    if any(fresh is None or outputs is None for fresh, _, _, outputs in counts):
        return None
    return [sum(each or 0 for each in column) for column in zip(*counts, strict=True)]


def _sum(counts: Sequence[int]) -> int | None:
    total = sum(counts)
    return total if 0 < total < MAX_TOKENS else None


def _read_count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if type(value) is int and 0 <= value < MAX_TOKENS else None
