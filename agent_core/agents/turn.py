"""A turn with an agent as a workflow: prepare, agent, persist. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_core.config import AgentConfig
from agent_core.outputs import Json
from agent_core.records import TURN_TOOL, AgentNote

NODE: Final = "agent_core"
"""The node whose output is the agent's."""
_BRACES: Final = "{{"
_WRITTEN_BRACES: Final = "{{'{{'}}"
_CONVERSATION: Final = "{{external.conversation_id}}"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How a turn differs from the agent's own policy: limits that only narrow, unless they are None or 0, and a
    temperature. `max_conversation_tokens` is what all turns of the conversation may cost. A turn that is not stored
    answers a history that its caller keeps."""

    max_tool_calls: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    max_conversation_tokens: int | None = None
    is_stored: bool = True


def define_turn(name: str, of_agent: tuple[Json, AgentNote], options: TurnOptions) -> Json:
    """Return the definition of a turn with an agent, by its config and note.

    Its inputs are {message, conversation_id}, or {message, history} if the turn is not stored.
    """
    own, note = of_agent
    overrides = narrow_limits(own, options.max_tool_calls, options.max_tokens)
    limit = overrides.get("total_token_budget", own.get("total_token_budget", 0))
    if options.temperature is not None:
        overrides["temperature"] = options.temperature
    if options.is_stored and options.max_conversation_tokens is not None:
        overrides["total_token_budget"] = "{{nodes.prepare.max_tokens}}"
    told = {**escape_braces(note), "overrides": sorted(overrides)}
    if options.is_stored:
        told["conversation"] = _CONVERSATION
    history = "{{nodes.prepare.messages_json}}" if options.is_stored else "{{external.history}}"
    task = {"prompt": "{{external.message}}", "messages_json": history, "agent": told}
    config = {**escape_braces(own), **overrides, **task}
    agent = {"id": NODE, "tool": "agent_core", "on_error": "fail_at_end", "config": config}
    identity = re.sub("[^A-Za-z0-9_-]", "_", name)
    if not options.is_stored:
        return {"id": identity, "nodes": [agent]}
    prepare: Json = {"op": "prepare", "conversation_id": _CONVERSATION}
    if options.max_conversation_tokens is not None:
        prepare |= {"max_tokens": limit, "max_conversation_tokens": options.max_conversation_tokens}
    persist = {
        "op": "persist",
        "conversation_id": _CONVERSATION,
        "message": "{{external.message}}",
        "answers": "{{run.messages}}",
        "tokens": f"{{{{nodes.{NODE}.usage.total_tokens?}}}}",
    }
    before, after = ({"id": each["op"], "tool": TURN_TOOL, "config": each} for each in (prepare, persist))
    return {"id": identity, "nodes": [before, agent, after]}


def narrow_limits(config: Mapping[str, Any], max_tool_calls: int | None, max_tokens: int | None) -> Json:
    """Return the limits of an agent's config that are narrowed by those of a turn, unless these are None or 0."""
    narrowed: Json = {}
    for key, limit in (("max_tool_calls", max_tool_calls), ("total_token_budget", max_tokens)):
        own = config.get(key, AgentConfig.model_fields[key].default)
        if limit and not (own and own <= limit):
            narrowed[key] = limit
    return narrowed


def escape_braces(value: Any) -> Any:
    """Return a value in whose texts a workflow finds no placeholders."""
    match value:
        case str():
            return value.replace(_BRACES, _WRITTEN_BRACES)
        case dict():
            return {key: escape_braces(each) for key, each in value.items()}
        case list() | tuple():
            return [escape_braces(each) for each in value]
        case _:
            return value
