"""A reply of the Gemini API, read: a completion, or a refusal that says why not. Pure."""

from collections.abc import Sequence
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
from agent_core.models.finish_reasons import DONE, FILTERED, MALFORMED, MAX_WORD, find_reason
from agent_core.models.gemini.contents import API, read_name
from agent_core.models.gemini.usage import read_counts
from agent_core.outputs import Json

HOLDING = ("candidates", "promptFeedback", "usageMetadata")
"""Keys of a reply that is no error."""
NO_SIGNATURE = "missing_thought_signature"
"""The code of a refusal, and the reason to end, where a call of the conversation lacks its signature."""
IN_PIECES = ("partialArgs", "willContinue")
"""Keys of a call whose arguments come in pieces, which we never ask for."""
HARMLESS = ("NEGLIGIBLE", "LOW", "HARM_PROBABILITY_UNSPECIFIED")


def find_error(reply: Any) -> Any:
    """Return the error in a reply, or in an event of a stream."""
    return find_named_error(reply, *HOLDING)


def read_reply(reply: Any, answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return the completion in the JSON value of an answer with a status of success."""
    return read_success(reply, answer, now, find_error(reply), _read_completion)


def find_candidate(reply: Any) -> Json | None:
    """Return the first candidate of a reply, or of a piece of one."""
    candidates = reply.get("candidates") if isinstance(reply, dict) else None
    for each in candidates if isinstance(candidates, list) else ():
        if isinstance(each, dict) and each.get("index") in (0, None):
            return each
    return None


def is_shown(part: Any) -> bool:
    """Return whether a part is a text of the reply, and no thought."""
    return isinstance(part, dict) and isinstance(part.get("text"), str) and not part.get("thought")


def _read_completion(reply: Any, status: int) -> Completion | Refusal:
    candidate = find_candidate(reply)
    if candidate is None:
        return _explain_absence(reply, status)
    parts = _read_parts(candidate)
    reason = _read_finish_reason(candidate)
    meaning, explanation = find_reason(reason), _explain_end(candidate)
    if reason.lower() == NO_SIGNATURE:
        return Refusal(f"answered: {reason}{explanation}", status, NO_SIGNATURE)
    given = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]
    if len(given) > MAX_CALLS:
        return Refusal(f"answered with {len(given)} calls, and at most {MAX_CALLS} are read", status)
    fault = _find_fault(given) if meaning != MALFORMED else ""
    calls = () if fault or meaning in (FILTERED, MALFORMED) else tuple(map(_read_call, given))
    echo = own_parts(API, [part for part in parts if not _is_empty(part)]) if calls else None
    check_encodable([calls, echo])
    counted, reasoning = read_counts(reply.get("usageMetadata"))
    return Completion(
        "".join(part["text"] for part in parts if is_shown(part)),
        MALFORMED if fault else reason,
        counted.inputs,
        counted.outputs,
        calls=calls,
        echo=echo,
        cached_tokens=counted.cached,
        refusal=fault or _explain_refusal(reason, explanation),
        estimated=counted.doubtful,
        reasoning_tokens=reasoning,
    )


def _explain_refusal(reason: str, explanation: str) -> str:
    """Return why the vendor did not pass on a reply, or its call; empty where it did, or does not say."""
    match find_reason(reason):
        case "malformed_call":
            return explanation.removeprefix(": ")
        case "content_filter" if explanation:
            return f"the reply was blocked: {reason}{explanation}"
        case _:
            return ""


def _read_parts(candidate: Json) -> list[Json]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _is_empty(part: Json) -> bool:
    """Return whether a part says nothing, and would be refused when it goes back."""
    return not part or (part.keys() <= {"text", "thought"} and not part.get("text"))


def _read_call(call: Json) -> Json:
    return {"name": read_name(call["name"]), "arguments": write_arguments(call.get("args"))}


def _find_fault(calls: Sequence[Json]) -> str:
    """Return why the calls cannot be read; empty where they can."""
    if any(not isinstance(call.get("name"), str) or not call["name"] for call in calls):
        return "a call has no name"
    return "the arguments of a call came in pieces" if any(call.keys() & IN_PIECES for call in calls) else ""


def _read_finish_reason(candidate: Json) -> str:
    """Return the vendor's word, which the caller reads; a reply without one is done."""
    given = candidate.get("finishReason")
    return given[:MAX_WORD] if isinstance(given, str) and given.strip() else DONE


def _explain_absence(reply: Any, status: int) -> Refusal:
    """Return why a reply has no candidate: the question was blocked, or it is none of Gemini's."""
    feedback = reply.get("promptFeedback") if isinstance(reply, dict) else None
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        why = _join_words(feedback.get("blockReason"), feedback.get("blockReasonMessage"), _read_ratings(feedback))
        return Refusal(f"answered: the question was blocked: {why}", status, FILTERED)
    if isinstance(reply, dict) and not reply.keys().isdisjoint(HOLDING):
        return Refusal("answered without a candidate", status)
    return Refusal(f"answered with no reply of the Gemini API: {show_body(orjson.dumps(reply))}", status)


def _explain_end(candidate: Json) -> str:
    """Return the vendor's words about the end of a reply, each after a colon."""
    words = _join_words(candidate.get("finishMessage"), _read_ratings(candidate))
    return f": {words}" if words else ""


def _join_words(*words: Any) -> str:
    return ": ".join(word for word in words if isinstance(word, str) and word)[:MAX_MESSAGE]


def _read_ratings(rated: Json) -> str:
    """Return the safety ratings that blocked something, or would: `harassment high, dangerous content medium`."""
    ratings = rated.get("safetyRatings")
    said = []
    for each in ratings if isinstance(ratings, list) else ():
        category, probability = (each.get("category"), each.get("probability")) if isinstance(each, dict) else (0, 0)
        if not isinstance(category, str) or not isinstance(probability, str):
            continue
        if each.get("blocked") or probability not in HARMLESS:
            said.append(f"{category.removeprefix('HARM_CATEGORY_')} {probability}".replace("_", " ").lower())
    return ", ".join(said)
