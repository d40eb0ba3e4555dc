"""Why a reply ended: every vendor's and gateway's word for it as one of four.

`stop` is a reply that is done, `length` one that was cut before its end, `content_filter` one that was stopped for what
it says, `malformed_call` one whose native call the vendor could not read. A word that the table does not know stays as
it is, in the journal and in the log, and the loop reads the reply with care.
"""

import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from utools.lazy_pattern import lazy_compile

log = logging.getLogger("agent_core")
DONE: Final = "stop"
CUT: Final = "length"
FILTERED: Final = "content_filter"
MALFORMED: Final = "malformed_call"
MAX_WORD: Final = 99
"""Characters of an unknown word that are kept."""
MAX_WORDS: Final = 64
"""Words that are kept as read: an endpoint has a few."""

_WORDS: Final[Mapping[str, str]] = {
    # done: the model stopped by itself, at a stop sequence, or to make calls
    DONE: """
        stop stopped stop_token stop_sequence stop_string stop_string_found stop_word end end_turn end_of_turn
        end_of_text end_of_sequence end_of_sequence_token endoftext eos eos_token eos_found eot word normal complete
        completed finish finished done success tool_call tool_calls tool_use function_call function_calls null
    """,
    # cut: by the output limit, the window, the vendor's time or capacity, or somebody who gave up
    CUT: """
        length max_length maximum_length max_tokens maximum_tokens max_tokens_reached max_new_tokens max_output_tokens
        max_completion_tokens max_output max_len max_context token_limit tokens_limit limit output_limit model_length
        context_length context_length_reached context_length_exceeded context_window_exceeded max_context_length
        model_context_window_exceeded max_predicted_tokens_reached error_limit time_limit timeout incomplete
        in_progress not_finished pause_turn abort aborted cancel cancelled canceled user_cancel user_cancelled
        user_stopped interrupted preempted insufficient_system_resource network_error error failed other load unload
        model_unloaded repetition continuation no_image image_other queued max_messages steered
    """,
    # filtered: by the vendor's filter, its guard rails, or a refusal of the model's own
    FILTERED: """
        content_filter content_filtered filter filtered safety image_safety recitation image_recitation refusal refused
        blocklist blocked prohibited_content image_prohibited_content spii sensitive sensitive_content language
        guardrail guardrails guardrail_intervened guardrails_intervened error_toxic toxic moderation
        content_policy_violation policy_violation responsible_ai_policy_violation data_inspection_failed model_armor
        content_risk escalation jailbreak pup_limited_disabled
    """,
    # malformed: a native call that could not be read, or was not asked for
    MALFORMED: """
        malformed_call malformed_function_call malformed_tool_call malformed_tool_use malformed_response
        malformed_model_output function_call_filter unexpected_tool_call unexpected_function_call invalid_tool_call
        invalid_function_call tool_use_failed tool_call_failed tool_call_error too_many_tool_calls
        missing_thought_signature
    """,
}
KNOWN: Final[Mapping[str, str]] = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
"""From each vendor's word, in lower case and with underscores, to ours."""
_PREFIXES: Final = lazy_compile(r"^(finish_reason_|stop_reason_|finishreason_|reason_)+")
_SEVEREST: Final = (MALFORMED, FILTERED, CUT, DONE)


def read_finish_reason(given: Any, native: Any = None) -> str:
    """Return the reason in our words, or the vendor's own where it is not known; a reply without one is done.

    `native` is the word of the vendor behind a gateway (OpenRouter): it counts where the gateway's says less.
    """
    word, behind = _read(given), _read(native) if native is not None else DONE
    if word in (DONE, CUT) and behind in (MALFORMED, FILTERED, CUT):
        return behind
    return behind if native is not None and not is_known(word) and is_known(behind) else word


def settle_finish_reason(model: str, given: str) -> str:
    """Return the reason of a model's reply in our words; one that is not known is logged."""
    reason = given if is_known(given) else read_finish_reason(given)
    if not is_known(reason):
        log.warning(
            "a reply of %s has the unknown finish reason %r: it counts as cut unless it is whole", model, reason
        )
    return reason


def is_known(word: str) -> bool:
    """Return whether a reason is one of our four words."""
    return word in _SEVEREST


@lru_cache(MAX_WORDS)
def find_reason(word: str) -> str | None:
    """Our word for a vendor's, also where it stands beside others: `content_filter: SAFETY`; None where unknown."""
    text = _to_snake_case(word)
    if text in KNOWN:
        return KNOWN[text]
    parts = [_PREFIXES.sub("", part.strip("_")) for part in re.split(r"[^a-z0-9_]+", text)]
    found = {KNOWN[part] for part in parts if part in KNOWN}
    return next((meaning for meaning in _SEVEREST if meaning in found), None)


def _read(given: Any) -> str:
    if isinstance(given, Mapping):  # SGLang: {"type": "length", "length": 16}
        given = given.get("type")
    if not isinstance(given, str) or not given.strip():
        return DONE
    return find_reason(given[:MAX_WORD]) or " ".join(given.split())[:MAX_WORD]


def _to_snake_case(word: str) -> str:
    """`MAX_TOKENS`, `max-tokens`, `maxTokens` and `max tokens` as `max_tokens`; other marks stay."""
    if not word.isupper():
        word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word)
    return re.sub(r"[\s-]+", "_", re.sub(r"\s*([^\w\s-])\s*", r"\1", word.strip())).lower()
