"""A reply of the Responses API, read: a completion, or a refusal that says why not. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

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
from agent_core.models.finish_reasons import FILTERED, MAX_WORD
from agent_core.models.openai.responses.items import API, find_calls, find_parts, read_text
from agent_core.models.usage import read_count, read_vendor_usage
from agent_core.outputs import Json

NOT_ENDED = ("in_progress", "queued", "cancelled", "incomplete")
COMMENTARY = "commentary"


def read_reply(reply: Any, answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return the completion in the JSON value of an answer with a status of success."""
    return read_success(reply, answer, now, find_error(reply), _read_response)


def find_error(reply: Any) -> Any:
    """Return the error in a reply, or in an event of a stream."""
    if isinstance(reply, dict) and reply.get("type") == "error":
        return reply.get("error") or reply
    return find_named_error(reply, "output", "status", "type")


def read_content(output: Sequence[Any]) -> str:
    """Return the text of the output items; a commentary on the way counts only where there is no other text."""
    messages = [item for item in output if isinstance(item, dict) and item.get("type") == "message"]
    said = "".join(read_text(item) for item in messages if item.get("phase") != COMMENTARY)
    return said or "".join(map(read_text, messages))


def _read_response(reply: Any, status: int) -> Completion | Refusal:
    fields = reply if isinstance(reply, dict) else {}
    ending, output = fields.get("status"), fields.get("output")
    if ending == "failed":
        return Refusal("answered that the response failed, without a reason", status, transient=True)
    if not isinstance(output, list):
        if ending not in NOT_ENDED:
            return Refusal(f"answered with no response: {show_body(orjson.dumps(reply))}", status)
        output = []
    if words := _read_refusal_of_model(output):
        refused = Completion("", FILTERED, refusal=f"the model refused to answer: {words[:MAX_MESSAGE]}")
        return _count(refused, fields.get("usage"))
    found = find_calls(output)
    if len(found) > MAX_CALLS:
        return Refusal(f"answered with {len(found)} calls, and at most {MAX_CALLS} are read", status)
    if not all(isinstance(call.get("name"), str) for call in found):
        return Refusal(f"answered with a call that has no name: {show_body(orjson.dumps(found))}", status)
    calls = tuple({"name": call["name"], "arguments": write_arguments(call.get("arguments"))} for call in found)
    echo = own_parts(API, output) if _goes_back(output, ending) else None
    check_encodable([calls, echo])
    return _count(
        Completion(read_content(output), _read_finish_reason(fields), calls=calls, echo=echo), fields.get("usage")
    )


def _read_refusal_of_model(output: Sequence[Any]) -> str:
    """Return the words with which the model refused to answer; empty where it did not."""
    messages = (item for item in output if isinstance(item, dict) and item.get("type") == "message")
    parts = (part for item in messages for part in find_parts(item.get("content")) if part.get("type") == "refusal")
    words = (part.get("refusal") for part in parts)
    return "".join(word for word in words if isinstance(word, str)).strip()


def _goes_back(output: Sequence[Any], ending: Any) -> bool:
    """Return whether the output items can go back as they are: they are whole, and each holds what it stands for.

    A thought with neither an encrypted nor an open content is a reference to what was not stored.
    """
    calls = find_calls(output)
    ids = {call["call_id"] for call in calls if isinstance(call.get("call_id"), str) and call["call_id"]}
    if not calls or len(ids) != len(calls) or ending in NOT_ENDED:
        return False
    return all(isinstance(item, dict) and _is_whole(item) for item in output)


def _is_whole(item: Mapping[str, Any]) -> bool:
    if item.get("status") in NOT_ENDED:
        return False
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _read_finish_reason(reply: Mapping[str, Any]) -> str:
    """Return the vendor's word: why the response is incomplete, else its status."""
    details = reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) and reply.get("status") != "completed" else None
    for word in (reason, reply.get("status")):
        if isinstance(word, str) and word.strip():
            return word[:MAX_WORD]
    return "stop"


def _count(completion: Completion, usage: Any) -> Completion:
    """Return the completion with its token counts, from a usage in this API's words."""
    given = usage if isinstance(usage, dict) else {}
    of_input, of_output = given.get("input_tokens_details"), given.get("output_tokens_details")
    in_words_of_chat: Json = {
        **given,
        "prompt_tokens": given.get("input_tokens"),
        "completion_tokens": given.get("output_tokens"),
        "prompt_tokens_details": of_input,
        "completion_tokens_details": of_output,
    }
    counted = read_vendor_usage(in_words_of_chat)
    written, thought = read_count(of_input, "cache_write_tokens") or 0, read_count(of_output, "reasoning_tokens") or 0
    doubtful = counted.inputs is not None and counted.cached + written > counted.inputs
    doubtful = doubtful or (counted.outputs is not None and thought > counted.outputs)
    return replace(
        completion,
        input_tokens=counted.inputs,
        output_tokens=counted.outputs,
        cost=counted.cost,
        cached_tokens=counted.cached,
        cache_write_tokens=written,
        reasoning_tokens=thought,
        estimated=counted.doubtful or doubtful,
    )
