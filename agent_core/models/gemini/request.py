"""The request to an endpoint of the Gemini API. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from agent_core.models.client import Question
from agent_core.models.endpoint.asking import Written, merge_extra
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.endpoint.conversation import read_conversation
from agent_core.models.gemini.contents import API, NATIVE, write_conversation, write_name
from agent_core.models.gemini.schema import has_open_object, to_dialect
from agent_core.models.gemini.thinking import BUDGET, CONFIG, LEVEL, choose_thinking
from agent_core.outputs import Json

SAMPLING = {"temperature": "temperature", "top_p": "topP", "seed": "seed", "stop": "stopSequences"}
"""Our options for sampling, in Gemini's words."""
MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
PARAMETERS, RESPONSE_SCHEMA = "parametersJsonSchema", "responseJsonSchema"
"""Words in `left_out`: JSON Schemas of functions, and of the reply; then they are written in Gemini's dialect."""


def write_request(model: str, question: Question, capabilities: EndpointCapabilities) -> Written:
    """Return the request's JSON."""
    left_out = capabilities.left_out
    conversation = read_conversation(question.messages, API, keeps_parts=NATIVE not in left_out)
    body = {**write_conversation(conversation, left_out), **write_options(model, question.options, capabilities)}
    if extra := question.options.get("extra"):
        body = merge_extra(body, extra)
    return Written(orjson.dumps(body), conversation.dropped)


def write_options(model: str, options: Mapping[str, Any], capabilities: EndpointCapabilities) -> Json:
    """Return the part of a request that is not the conversation, without what the endpoint refuses."""
    left_out = capabilities.left_out
    config: Json = {
        SAMPLING[name]: options[name]
        for name in SAMPLING
        if name not in left_out and options.get(name) not in (None, [], "")
    }
    if isinstance(stop := config.get("stopSequences"), str):
        config["stopSequences"] = [stop]
    if limit := options.get("max_output_tokens"):
        config["maxOutputTokens"] = limit
    config |= _write_format(options, capabilities)
    if thinking := find_thinking(model, options, capabilities):
        config[CONFIG] = thinking
    tier = {"serviceTier": options["service_tier"]} if "service_tier" in options else {}
    return {**_write_tools(options, capabilities), **({"generationConfig": config} if config else {}), **tier}


def find_thinking(model: str, options: Mapping[str, Any], capabilities: EndpointCapabilities) -> Json | None:
    """Return the thinking config that is sent, unless the author's own parameters say how much the model thinks."""
    own = (options.get("extra") or {}).get("generationConfig", {})
    own = own.get(CONFIG) if isinstance(own, dict) else None
    if isinstance(own, dict) and (LEVEL in own or BUDGET in own):
        return None
    return choose_thinking(model, options.get("reasoning"), capabilities.left_out)


def choose_format(options: Mapping[str, Any], capabilities: EndpointCapabilities) -> str:
    """Return the response format to ask for.

    Of itself it is a schema only where each of its objects names its properties; with tools there is none.
    """
    if options.get("tools"):
        return "text"
    asked: str = options.get("response_format", "text")
    schema = options.get("step_schema")
    form = capabilities.format if asked == "auto" else asked
    if form == "json_schema" and (schema is None or (asked == "auto" and has_open_object(schema))):
        return "json_object"
    return form


def _write_format(options: Mapping[str, Any], capabilities: EndpointCapabilities) -> Json:
    form = choose_format(options, capabilities)
    if form not in ("json_object", "json_schema"):
        return {}
    config: Json = {"responseMimeType": "application/json"}
    if form == "json_schema":
        is_refused, schema = RESPONSE_SCHEMA in capabilities.left_out, options["step_schema"]
        config |= {"responseSchema": to_dialect(schema)} if is_refused else {RESPONSE_SCHEMA: schema}
    return config


def _write_tools(options: Mapping[str, Any], capabilities: EndpointCapabilities) -> Json:
    if not (tools := options.get("tools")):
        return {}
    is_refused = PARAMETERS in capabilities.left_out
    functions = [_declare(tool["function"], in_dialect=is_refused) for tool in tools]
    sent: Json = {"tools": [{"functionDeclarations": functions}]}
    choice = options.get("tool_choice")
    if choice in MODES and choice not in capabilities.choices:
        sent["toolConfig"] = {"functionCallingConfig": {"mode": MODES[choice]}}
    return sent


def _declare(function: Json, *, in_dialect: bool) -> Json:
    """Return a function's declaration. In the dialect, one without parameters has no schema: an object there is not
    empty."""
    schema = function.get("parameters")
    declared = {"name": write_name(function["name"])}
    declared |= {"description": function["description"]} if function.get("description") else {}
    if not in_dialect:
        return {**declared, PARAMETERS: schema} if schema else declared
    parameters = to_dialect(schema)
    return {**declared, "parameters": parameters} if parameters.get("properties") else declared
