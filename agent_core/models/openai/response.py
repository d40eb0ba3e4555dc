"""A reply of OpenAI's chat completions, read: a completion, or a refusal that says why not. Pure."""

from collections.abc import Mapping
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
from agent_core.models.finish_reasons import CUT, DONE, FILTERED, MALFORMED, MAX_WORD, find_reason, read_finish_reason
from agent_core.models.usage import read_vendor_usage

OWN_CALL_KEYS = ("id", "type", "function", "index", "name", "arguments")
"""Keys of a call that we write again when it goes back; others, such as Gemini's extra_content, go back unchanged."""
ECHOED_KEYS = ("reasoning_content", "reasoning_details", "extra_content")
"""Keys of a message with calls that DeepSeek, OpenRouter and Gemini need in later questions."""
THOUGHT_KEYS = ("reasoning_content", "reasoning")
"""Keys of a message with what a model thinks, which is no answer."""
TEXT_PARTS = (None, "text", "output_text")
"""Types of the parts of a content that are text of the reply; some gateways leave the type out."""
TOKEN = "<|"
"""How the tokens of chat templates begin, and nothing in a name."""
CALLING = ("tool_calls", "function_call")
"""Reasons of a reply that is done, as its calls show by themselves."""


def read_reply(reply: Any, answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return the completion in the JSON value of an answer with a status of success."""
    return read_success(reply, answer, now, find_error(reply), _read_completion)


def _read_completion(reply: Any, status: int) -> Completion | Refusal:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list):
        return Refusal(f"answered with no chat completion: {show_body(orjson.dumps(reply))}", status)
    if not choices:
        return Refusal("answered with an empty list of choices", status)
    choice = choices[0] if isinstance(choices[0], dict) else {}
    finish_reason = _read_finish_reason(choice)
    stopped = find_reason(finish_reason) in (FILTERED, MALFORMED)
    absent: dict[str, Any] = {"content": None if stopped else ()}
    message: Mapping[str, Any] = found if isinstance(found := choice.get("message"), dict) else absent
    if len(choices) > 1:
        message = _join_split_message(message, choice, choices[1:])
    if isinstance(tool_calls := message.get("tool_calls"), list) and len(tool_calls) > MAX_CALLS:
        return Refusal(f"answered with {len(tool_calls)} calls, and at most {MAX_CALLS} are read", status)
    content, calls = read_text(message.get("content")), _read_calls(message)
    if content is None or calls is None:
        return Refusal(f"answered with a choice that holds no message: {show_body(orjson.dumps(choices[0]))}", status)
    refusal = (read_text(message.get("refusal")) or "").strip()
    if refusal:
        content, finish_reason, calls = "", FILTERED, ()
    usage = read_vendor_usage(reply.get("usage"))
    echo = _read_echo(message) if calls else None
    check_encodable([calls, echo])
    unread = 0
    if not calls and not content.strip() and find_reason(finish_reason) == DONE:
        unread = max(len(read_text(message.get(key)) or "") for key in THOUGHT_KEYS)
    return Completion(
        content,
        finish_reason,
        usage.inputs,
        usage.outputs,
        usage.cost,
        calls=calls,
        echo=echo,
        cached_tokens=usage.cached,
        refusal=f"the model refused to answer: {refusal[:MAX_MESSAGE]}" if refusal else "",
        estimated=usage.doubtful,
        cache_write_tokens=usage.written,
        reasoning_tokens=usage.reasoning,
        unread=unread,
    )


def _join_split_message(message: Mapping[str, Any], choice: Mapping[str, Any], others: list[Any]) -> Mapping[str, Any]:
    """Return the message with the calls of other choices, where these are no other replies: GitHub Copilot puts the
    text of Claude's reply into one choice, and each call into one more, without numbers."""
    own = message.get("tool_calls") or []
    is_without_calls = choice.get("finish_reason") in CALLING and not own
    parts = [each for each in others if isinstance(each, dict) and isinstance(each.get("message"), dict)]
    lists = [
        each["message"].get("tool_calls")
        for each in parts
        if is_without_calls or each.get("index") in (None, choice.get("index"))
    ]
    calls = [call for each in (own, *lists) if isinstance(each, list) for call in each]
    return {**message, "tool_calls": calls} if len(calls) > len(own) else message


def _read_calls(message: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    """Return the message's native calls, {name, arguments} and other keys of the vendor; None when one is not a call.

    The one call of the older field `function_call` counts where there are no others.
    """
    calls = []
    tool_calls = message.get("tool_calls")
    if not tool_calls and isinstance(older := message.get("function_call"), dict) and older.get("name"):
        tool_calls = [{"function": older}]
    if tool_calls and not isinstance(tool_calls, list):
        return None
    for call in tool_calls or ():
        if not isinstance(call, dict):
            return None
        function = found if isinstance(found := call.get("function"), dict) else call
        arguments = write_arguments(function.get("arguments"))
        more = {name: value for name, value in call.items() if name not in OWN_CALL_KEYS}
        calls.append({"name": _read_name(function.get("name")), "arguments": arguments, **more})
    return tuple(calls)


def _read_name(name: Any) -> str:
    """Return a function's name, without the tokens of a chat template that a server has left behind it; empty where a
    call has none, which its model is told."""
    return name.partition(TOKEN)[0] or name if isinstance(name, str) else ""


def _read_echo(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields that a vendor needs back with a message that makes calls."""
    return {name: message[name] for name in ECHOED_KEYS if message.get(name)} or None


def read_text(content: Any) -> str | None:
    """Return the text of a message's content: a text, null, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part.get("text") if _is_text_part(part) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _is_text_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in TEXT_PARTS


def _read_finish_reason(choice: Mapping[str, Any]) -> str:
    """Return the vendor's word, which the caller reads; ours where the vendor behind a gateway says more."""
    given = choice.get("finish_reason")
    reason = read_finish_reason(given, choice.get("native_finish_reason"))
    if isinstance(given, str) and given and given not in CALLING and reason == read_finish_reason(given):
        return given[:MAX_WORD]
    return reason


def find_error(reply: Any) -> Any:
    """Return the error in a reply, or that of its first choice, as OpenRouter reports one that comes after the head, or
    why Groq has stopped a stream."""
    if error := find_named_error(reply, "choices"):
        return error
    if not isinstance(reply, dict):
        return None
    of_groq = reply.get("x_groq")
    return (of_groq.get("error") if isinstance(of_groq, dict) else None) or _find_choice_error(reply.get("choices"))


def is_first_choice(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.get("index", 0) in (0, None)


def _find_choice_error(choices: Any) -> Any:
    """Return the error of the first choice, whatever text or calls are beside it."""
    for choice in choices if isinstance(choices, list) else ():
        if is_first_choice(choice) and (choice.get("error") or _is_error(choice)):
            return choice.get("error") or "the reply ended with the finish reason error"
    return None


def _is_error(choice: dict[str, Any]) -> bool:
    """Return whether a choice ended by an error, unless the vendor behind a gateway says it better."""
    reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
    is_error = isinstance(reason, str) and reason.lower() == "error"
    return is_error and read_finish_reason(None, native) in (DONE, CUT)
