"""The request to an endpoint of the Responses API. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agent_core.models.client import Question
from agent_core.models.endpoint.asking import Written, merge_extra
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.conversation import read_conversation
from agent_core.models.endpoint.refused_parts import choose_format, is_set
from agent_core.models.openai.responses.items import API, write_items
from agent_core.models.openai.responses.reasoning import choose_effort, find_family, returns_thoughts, takes_sampling
from agent_core.models.openai.responses.strict import qualifies
from agent_core.outputs import Json

NATIVE, IDS, INCLUDE, STRICT = "native", "ids", "include", "strict"
"""What `left_out` calls own parts, their ids, encrypted thoughts, and strict functions."""
SAMPLING = ("temperature", "top_p")
ABOUT = {"service_tier": "service_tier", "user_id": "safety_identifier"}
MIN_OUTPUT_TOKENS = 16
"""The API refuses a smaller limit."""


def write_request(model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming) -> Written:
    """Return the body of a request.

    Nothing is stored at the vendor, so every request brings the whole conversation.
    """
    refused = capabilities.left_out
    conversation = read_conversation(question.messages, API, keeps_parts=NATIVE not in refused)
    role = "system" if find_family(model) in (None, "plain") else "developer"  # what other vendors' servers know
    items, passed_over = write_items(conversation, role, with_ids=IDS not in refused)
    options = _encode_options(model, question.options, capabilities)
    body = merge_extra({"model": model, "input": items, "store": False, **options}, question.options.get("extra") or {})
    if streaming != "not":
        body["stream"] = True
    dropped = (*conversation.dropped, API) if passed_over else conversation.dropped
    return Written(orjson.dumps(body), tuple(dict.fromkeys(dropped)))


def _encode_options(model: str, options: Mapping[str, Any], capabilities: EndpointCapabilities) -> Json:
    """Return the options in the API's words, without those that the endpoint does not support."""
    refused, sent = capabilities.left_out, dict[str, Any]()
    effort = choose_effort(model, options.get("reasoning"), refused)
    if effort is not None:
        sent["reasoning"] = {"effort": effort}
    if returns_thoughts(model, effort) and INCLUDE not in refused:
        sent["include"] = ["reasoning.encrypted_content"]
    if takes_sampling(model, effort):
        names = [name for name in SAMPLING if name not in refused and is_set(options.get(name))]
        sent |= {name: options[name] for name in names}
    sent |= {theirs: options[ours] for ours, theirs in ABOUT.items() if ours in options}
    if (limit := options.get("max_output_tokens")) and "max_output_tokens" not in refused:
        sent["max_output_tokens"] = max(limit, MIN_OUTPUT_TOKENS)
    if tools := options.get("tools"):
        sent["tools"] = _write_tools(tools, may_be_strict=STRICT not in refused)
        choice = options.get("tool_choice")
        return {**sent, "tool_choice": choice} if choice and choice not in capabilities.choices else sent
    match choose_format(dict(options), capabilities):
        case "json_object":
            sent["text"] = {"format": {"type": "json_object"}}
        case "json_schema":
            schema = options["step_schema"]
            sent["text"] = {"format": {"type": "json_schema", "name": "step", "schema": schema, "strict": False}}
        case _:
            pass
    return sent


def _write_tools(tools: Sequence[Json], *, may_be_strict: bool) -> list[Json]:
    """Return the functions. `strict` is always said: without it the API takes it for true, and changes the schema."""
    written: list[Json] = []
    for tool in tools:
        function = tool["function"]
        parameters = function.get("parameters") or {"type": "object", "properties": {}}
        strict = may_be_strict and qualifies(parameters)
        more = {"description": function["description"]} if function.get("description") else {}
        written.append(
            {"type": "function", "name": function["name"], **more, "parameters": parameters, "strict": strict}
        )
    return written
