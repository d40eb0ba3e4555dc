"""A run's policy: the whitelist with everything judge has to know of each tool, fixed when the run starts."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from agent_core.config import AgentConfig, AllowedTool
from agent_core.effects import Json
from agent_core.errors import DefinitionError
from agent_core.loop.judge import apart_from
from utools.errors import UnknownTool
from utools.registry import ToolRegistry
from utools.schema.config_schema import Narrowing, author_keys, visible
from utools.tool import Tool


def tool_policies(config: AgentConfig, registry: ToolRegistry, fills: Sequence[Json] = ()) -> dict[str, Json]:
    """The whitelisted tools by code, in the config's order. An exact code outweighs a glob; deny wins.

    `fills` says where secrets belong in the config, of which only presets may hold any.
    A glob does not reach a tool that cannot run without what its author presets, such as `agent_core`.
    DefinitionError for a tool that there is not, a glob that fits none, a preset that the tool refuses.
    """
    codes = [tool.code for tool in registry.all()]
    return {
        code: _policy(registry, code, allowed, config, where, _within(fills, where))
        for code, (allowed, where) in whitelisted(config, codes).items()
        if code == allowed.tool or not _unset(registry.schema(code).schema, allowed)
    }


def _within(fills: Sequence[Json], where: str) -> list[Json]:
    """The fills of the preset of the entry at `where`, as seen from that preset."""
    index = int(where.rpartition("/")[2])
    return [{**fill, "at": fill["at"][3:]} for fill in fills if fill["at"][:3] == ["allowed_tools", index, "preset"]]


def whitelisted(config: AgentConfig, codes: Sequence[str]) -> dict[str, tuple[AllowedTool, str]]:
    """Which of these codes a config allows, each with the entry that binds it and where that stands."""
    chosen: dict[str, tuple[AllowedTool, str]] = {}
    exact: set[str] = set()
    for index, entry in enumerate(config.allowed_tools):
        where = f"allowed_tools/{index}"
        allowed = AllowedTool(tool=entry) if isinstance(entry, str) else entry
        is_glob = any(char in allowed.tool for char in "*?[")
        fitting = [code for code in codes if fnmatchcase(code, allowed.tool)] if is_glob else [allowed.tool]
        _check_known(fitting, allowed.tool, codes, where)
        for code in fitting:
            if not is_glob and code in exact:
                raise DefinitionError("this tool is listed twice", where=where, value=code)
            if is_glob and code in chosen and code not in exact:
                _check_alike(chosen[code][0], allowed, code, where)
            if not is_glob or code not in exact:
                chosen[code] = (allowed, where)
        exact.update(() if is_glob else fitting)
    return {code: bound for code, bound in chosen.items() if not _denied(code, config)}


def _check_alike(one: AllowedTool, other: AllowedTool, code: str, where: str) -> None:
    """Two patterns may fit one tool only when neither binds it: else the one would loosen what the other holds."""
    if one.model_copy(update={"tool": ""}) != other.model_copy(update={"tool": ""}):
        told = f"the pattern {one.tool!r} fits this tool too, and binds it otherwise; list the tool by its own code"
        raise DefinitionError(told, where=where, value=code)


def _denied(code: str, config: AgentConfig) -> bool:
    return any(fnmatchcase(code, glob) for glob in config.deny_tools)


def _check_known(fitting: Sequence[str], name: str, codes: Sequence[str], where: str) -> None:
    if not fitting:
        raise DefinitionError("no tool fits this pattern", where=where, value=name)
    for code in fitting:
        if code not in codes:
            raise DefinitionError(str(UnknownTool(code, codes)), where=where)


def bound_by(allowed: AllowedTool, config: AgentConfig) -> Json:
    """What a whitelist's entry, and the node's default, say of a tool, beside what the tool is by itself."""
    return {
        "approval": allowed.approval or config.approval,
        "max_calls": allowed.max_calls,
        "timeout": allowed.timeout or None,
        "trusted": allowed.trusted,
        "args": allowed.args,
        "provenance": allowed.provenance,
        **({"rate_limit": allowed.rate_limit} if allowed.rate_limit else {}),
    }


def _policy(
    registry: ToolRegistry, code: str, allowed: AllowedTool, config: AgentConfig, where: str, fills: Sequence[Json]
) -> Json:
    tool, schema = registry.get(code), registry.schema(code).schema
    hidden = sorted(author_keys(schema) | set(allowed.preset))
    _check_preset(registry, code, allowed, where, fills)
    if missing := _unset(schema, allowed):
        told = f"the author must set {', '.join(missing)}: no model can"
        raise DefinitionError(told, where=f"{where}/preset", value=allowed.preset)
    _check_narrowing(schema, allowed, where)
    if allowed.rate_limit and tool.effect == "nested":
        told = "a nested run is no single call: limit the tools that it uses"
        raise DefinitionError(told, where=f"{where}/rate_limit", value=allowed.rate_limit)
    return {
        "description": tool.description,
        "schema": schema,
        "visible": visible(schema, hidden),
        "hidden": hidden,
        "preset": allowed.preset,
        **({"fingerprint": tool.fingerprint} if tool.fingerprint else {}),
        "effect": effect_as_data(tool),
        "idempotent": tool.idempotent,
        **bound_by(allowed, config),
        **({"fills": list(fills)} if fills else {}),
    }


def effect_as_data(tool: Tool) -> Any:
    """A tool's effect as a journal can hold it; `dynamic` when only its own function can tell."""
    if isinstance(tool.effect, str):
        return tool.effect
    return "dynamic" if callable(tool.effect) else {key: tool.effect[key] for key in ("argument", "read")}


def _check_preset(registry: ToolRegistry, code: str, allowed: AllowedTool, where: str, fills: Sequence[Json]) -> None:
    """What the author sets must fit the tool's schema; what is missing may still come from the model."""
    if not allowed.preset:
        return
    for fault in apart_from(fills, registry.validate(code, allowed.preset)):
        if fault.pointer.split("/")[1:2] and fault.pointer.split("/")[1] in allowed.preset:
            raise DefinitionError(fault.message, where=f"{where}/preset{fault.pointer}")


def _unset(schema: Json, allowed: AllowedTool) -> list[str]:
    """What only the author can set, and must, and has not."""
    authored = author_keys(schema)
    return [name for name in schema.get("required", ()) if name in authored and name not in allowed.preset]


def _check_narrowing(schema: Json, allowed: AllowedTool, where: str) -> None:
    if allowed.args is not None:
        Narrowing(allowed.args, where=f"{where}/args")
    known = schema.get("properties", {})
    for name in allowed.provenance:
        if known and name not in known:
            raise DefinitionError(f"the tool {allowed.tool} has no such argument", where=f"{where}/provenance/{name}")
