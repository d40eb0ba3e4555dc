"""The call of a node, with the placeholders of its config filled. Pure."""

from collections.abc import Mapping
from typing import Any

from agent_core.effects import ToolCall
from agent_core.loop.judge import refuse_arguments, without_filled
from agent_core.outputs import Json
from agent_core.policy import effect_of
from engine_shim.definition.model import AGENT
from engine_shim.definition.template import Names
from engine_shim.errors import DefinitionError
from engine_shim.flow.conversation import RunValues
from engine_shim.flow.filled import filled_prompts
from engine_shim.flow.outcome import error_of
from engine_shim.flow.state import OutputsBefore, State, VisitState


def build_call(state: State, visit: VisitState, more: Mapping[str, Any] | None = None) -> ToolCall | Json:
    """Return the call, or the error that keeps it from being made; `more` are names that placeholders may have
    besides."""
    node = state.nodes[visit.node]
    tool, where = state.tools[node.tool], f"nodes/{state.index[visit.node]}/config"
    names = names_of(state, visit, more)
    try:
        config = names.render(node.config, where)
    except DefinitionError as error:
        return error_of(error)
    if faults := without_filled(names.fills, state.schemas[node.tool].faults(config)):
        message = " ".join(fault.message for fault in faults)
        return {"kind": "definition", "message": message, "where": where}
    if refusal := refuse_masked(state, node.tool, config):
        return {"kind": "policy_denied", "message": refusal, "where": where}
    effect = effect_of(tool, config) or "write"
    call = ToolCall(node.id, node.tool, config, config, effect, None, tool["idempotent"], fills=names.fills)
    filled = filled_prompts(node, names, state.nodes) if node.tool == AGENT else {}
    return call._replace(inherited={"filled": filled}) if filled else call


def refuse_masked(state: State, tool: str, config: Json) -> str | None:
    """Return why a call is not made whose config holds something masked.

    A run of its own may have it, as its models may read it, and so may a tool whose arguments stay within the run.
    """
    policy = state.tools[tool]
    if policy["effect"] == "nested" or policy.get("inward"):
        return None
    faults = state.marks.faults(config)
    return refuse_arguments(tool, faults) if faults else None


def names_of(state: State, visit: VisitState, more: Mapping[str, Any] | None = None) -> Names:
    """Return the names that the placeholders of a visit may have."""
    roots = {**state.names(OutputsBefore(state, visit), RunValues(state, visit)), **(more or {})}
    return Names(roots, state.definition.secrets, state.has_quoted_keys)
