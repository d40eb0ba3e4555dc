"""The policy of a new run: its whitelist, checked against the host's registry."""

from collections.abc import Sequence
from typing import Any

from agent_core.config import AgentConfig, AllowedTool
from agent_core.effects import Json
from agent_core.errors import DefinitionError
from agent_core.loop.judge import without_filled
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.policy import ToolPolicy, binding_of, has_wildcard, select_tools
from utools.errors import UnknownTool
from utools.registry import ToolRegistry
from utools.schema.config_schema import Narrowing, author_keys, visible
from utools.tool import Tool


def tool_policies(config: AgentConfig, registry: ToolRegistry, fills: Sequence[Json] = ()) -> dict[str, ToolPolicy]:
    """The whitelisted tools by code, in the config's order.

    `fills` says where secrets belong in the config, of which only presets may hold any. A glob does not reach a tool
    that needs a preset of its author, such as `agent_core`. DefinitionError for an unknown tool, a glob without a
    tool, and a preset or a narrowing that the tool's schema refuses.
    """
    codes = [tool.code for tool in registry.all()]
    _check_offered(config, registry)
    return {
        code: _policy(registry, code, allowed, config, where, _fills_of_preset(fills, where))
        for code, (allowed, where) in select_tools(config, codes).items()
        if code == allowed.tool or not _missing_presets(registry.schema(code).schema, allowed)
    }


def _check_offered(config: AgentConfig, registry: ToolRegistry) -> None:
    for index, entry in enumerate(config.allowed_tools):
        if refusal := registry.refusal(entry if isinstance(entry, str) else entry.tool):
            raise DefinitionError(refusal, where=f"allowed_tools/{index}")
    codes = [*(tool.code for tool in registry.all()), READ_OBSERVATION]
    for index, code in enumerate(config.deny_tools):
        if not has_wildcard(code) and code not in codes and registry.refusal(code) is None:
            raise DefinitionError(str(UnknownTool(code, codes)), where=f"deny_tools/{index}")


def _fills_of_preset(fills: Sequence[Json], where: str) -> list[Json]:
    """The fills of the preset of the entry at `where`, relative to that preset."""
    index = int(where.rpartition("/")[2])
    return [{**fill, "at": fill["at"][3:]} for fill in fills if fill["at"][:3] == ["allowed_tools", index, "preset"]]


def _policy(
    registry: ToolRegistry, code: str, allowed: AllowedTool, config: AgentConfig, where: str, fills: Sequence[Json]
) -> ToolPolicy:
    tool, schema = registry.get(code), registry.schema(code).schema
    hidden = sorted(author_keys(schema) | set(allowed.preset))
    _check_preset(registry, code, allowed, where, fills)
    if missing := _missing_presets(schema, allowed):
        message = f"the author must set {', '.join(missing)}: no model can"
        raise DefinitionError(message, where=f"{where}/preset", value=allowed.preset)
    _check_narrowing(schema, allowed, where)
    if allowed.rate_limit and tool.effect == "nested":
        message = "a nested run is no single call: limit the tools that it uses"
        raise DefinitionError(message, where=f"{where}/rate_limit", value=allowed.rate_limit)
    policy: ToolPolicy = {
        "description": tool.description,
        "schema": schema,
        "visible": visible(schema, hidden),
        "hidden": hidden,
        "preset": allowed.preset,
        **({"fingerprint": tool.fingerprint} if tool.fingerprint else {}),  # type: ignore[typeddict-item]
        "effect": effect_as_data(tool),
        "idempotent": tool.idempotent,
        **binding_of(allowed, config),
    }
    if fills:
        policy["fills"] = list(fills)
    return policy


def effect_as_data(tool: Tool) -> Any:
    """A tool's effect as a journal can hold it; `dynamic` when only its own function can tell."""
    if isinstance(tool.effect, str):
        return tool.effect
    return "dynamic" if callable(tool.effect) else {key: tool.effect[key] for key in ("argument", "read")}


def _check_preset(registry: ToolRegistry, code: str, allowed: AllowedTool, where: str, fills: Sequence[Json]) -> None:
    """The preset must fit the tool's schema; what is missing may still come from the model."""
    if not allowed.preset:
        return
    for fault in without_filled(fills, registry.validate(code, allowed.preset)):
        if fault.pointer.split("/")[1:2] and fault.pointer.split("/")[1] in allowed.preset:
            key = fault.pointer.split("/")[1]
            message = fault.message + registry.policy.describe_preset(code, key)
            raise DefinitionError(message, where=f"{where}/preset{fault.pointer}")


def _missing_presets(schema: Json, allowed: AllowedTool) -> list[str]:
    """The required arguments that only the author can set, and has not."""
    authored = author_keys(schema)
    return [name for name in schema.get("required", ()) if name in authored and name not in allowed.preset]


def _check_narrowing(schema: Json, allowed: AllowedTool, where: str) -> None:
    if allowed.args is not None:
        Narrowing(allowed.args, where=f"{where}/args")
    known = schema.get("properties", {})
    for name in allowed.provenance:
        if known and name not in known:
            raise DefinitionError(f"the tool {allowed.tool} has no such argument", where=f"{where}/provenance/{name}")
