"""What an endpoint for chat completions is sent, and what is given up when it refuses a part of that. Pure."""

from dataclasses import dataclass, replace
from typing import Any

import orjson

from agent_core.models.chat_reply import Refusal
from agent_core.models.client import Question

SAMPLING = ("temperature", "top_p", "seed", "stop")
MILDER = {"json_schema": "json_object", "json_object": "text"}
REFUSED_FORMAT = (400, 404, 422, 501)
NOT_THE_FORMAT = ("content_filter", "context_length_exceeded", "model_not_found")
UNSUPPORTED = ("unsupported_parameter", "unsupported_value")


@dataclass(frozen=True, slots=True)
class Habits:
    """What an endpoint takes, as far as it has told: `format` is the strictest response format."""

    format: str = "json_schema"
    tokens: str = "max_tokens"
    left_out: frozenset[str] = frozenset()


def request_body(model: str, question: Question, habits: Habits) -> bytes:
    """The request's JSON. The messages go as they came, so the prefix that a vendor caches stays the same bytes."""
    head = b'{"model":%b,"messages":[%b]' % (orjson.dumps(model), b",".join(question.messages))
    if sent := _options(question.options, habits):
        return head + b"," + orjson.dumps(sent)[1:]
    return head + b"}"


def toned_down(habits: Habits, question: Question, refusal: Refusal) -> Habits | None:
    """Habits under which the refused question may be taken after all; None when there is nothing to give up."""
    sent = _options(question.options, habits)
    if refusal.status == 400 and habits.tokens in sent and _wants_completion_tokens(habits, refusal):
        return replace(habits, tokens="max_completion_tokens")
    if refusal.status == 400 and refusal.code in UNSUPPORTED and refusal.param in SAMPLING and refusal.param in sent:
        return replace(habits, left_out=habits.left_out | {refusal.param})
    milder = MILDER.get(_format(question.options, habits))
    if not milder or question.options.get("response_format") != "auto" or refusal.code in NOT_THE_FORMAT:
        return None
    return replace(habits, format=milder) if refusal.status in REFUSED_FORMAT else None


def _wants_completion_tokens(habits: Habits, refusal: Refusal) -> bool:
    return habits.tokens == "max_tokens" and "max_completion_tokens" in refusal.message


def _options(options: dict[str, Any], habits: Habits) -> dict[str, Any]:
    """The options in the endpoint's words, without what it does not take."""
    sent = {name: options[name] for name in SAMPLING if name not in habits.left_out and _is_set(options.get(name))}
    if limit := options.get("max_output_tokens"):
        sent[habits.tokens] = limit
    match _format(options, habits):
        case "json_object":
            sent["response_format"] = {"type": "json_object"}
        case "json_schema":
            schema = {"name": "step", "schema": options["step_schema"]}
            sent["response_format"] = {"type": "json_schema", "json_schema": schema}
    return sent


def _is_set(value: Any) -> bool:
    return value is not None and value != []


def _format(options: dict[str, Any], habits: Habits) -> str:
    """The response format to ask for. Without a schema the strictest is any JSON object."""
    asked: str = options.get("response_format", "text")
    form = habits.format if asked == "auto" else asked
    return "json_object" if form == "json_schema" and "step_schema" not in options else form
