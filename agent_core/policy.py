"""A run's policy: the whitelist with everything judge has to know of each tool, fixed when the run starts."""

from collections.abc import Sequence
from typing import Any

from agent_core.config import AgentConfig, AllowedTool
from agent_core.errors import DefinitionError
from agent_core.loop.effects import Json
from utools.errors import UnknownTool
from utools.registry import ToolRegistry
from utools.schema import Narrowing, author_keys, visible
from utools.tool import Tool


def tool_policies(config: AgentConfig, registry: ToolRegistry) -> dict[str, Json]:
    """The whitelisted tools by code, in the config's order. An exact code outweighs a glob; deny wins.

    DefinitionError for a tool that there is not, a glob that fits none, a preset that the tool refuses.
    """
    denied = set(registry.matching(config.deny_tools))
    chosen = _chosen(config.allowed_tools, registry)
    return {
        code: _policy(registry, code, allowed, config, where)
        for code, (allowed, where) in chosen.items()
        if code not in denied
    }


def _chosen(entries: Sequence[str | AllowedTool], registry: ToolRegistry) -> dict[str, tuple[AllowedTool, str]]:
    chosen: dict[str, tuple[AllowedTool, str]] = {}
    exact: set[str] = set()
    for index, entry in enumerate(entries):
        where = f"allowed_tools/{index}"
        allowed = AllowedTool(tool=entry) if isinstance(entry, str) else entry
        is_glob = any(char in allowed.tool for char in "*?[")
        codes = _codes(allowed.tool, registry, where) if is_glob else [_known(allowed.tool, registry, where)]
        for code in codes:
            if not is_glob and code in exact:
                raise DefinitionError("this tool is listed twice", where=where, value=code)
            if not is_glob or code not in exact:
                chosen[code] = (allowed, where)
        exact.update(() if is_glob else codes)
    return chosen


def _codes(glob: str, registry: ToolRegistry, where: str) -> list[str]:
    codes = registry.matching([glob])
    if not codes:
        raise DefinitionError("no tool fits this pattern", where=where, value=glob)
    return codes


def _known(code: str, registry: ToolRegistry, where: str) -> str:
    try:
        return registry.get(code).code
    except UnknownTool as error:
        raise DefinitionError(str(error), where=where) from None


def _policy(registry: ToolRegistry, code: str, allowed: AllowedTool, config: AgentConfig, where: str) -> Json:
    tool, schema = registry.get(code), registry.schema(code).schema
    hidden = sorted(author_keys(schema) | set(allowed.preset))
    _check_preset(registry, code, allowed, where)
    _check_required(schema, hidden, allowed, where)
    _check_narrowing(schema, allowed, where)
    return {
        "description": tool.description,
        "schema": schema,
        "visible": visible(schema, hidden),
        "hidden": hidden,
        "preset": allowed.preset,
        "effect": effect_as_data(tool),
        "idempotent": tool.idempotent,
        "approval": allowed.approval or config.approval,
        "max_calls": allowed.max_calls,
        "timeout": allowed.timeout or None,
        "trusted": allowed.trusted,
        "args": allowed.args,
        "provenance": allowed.provenance,
    }


def effect_as_data(tool: Tool) -> Any:
    """A tool's effect as a journal can hold it; `dynamic` when only its own function can tell."""
    if isinstance(tool.effect, str):
        return tool.effect
    return "dynamic" if callable(tool.effect) else {key: tool.effect[key] for key in ("argument", "read")}


def _check_preset(registry: ToolRegistry, code: str, allowed: AllowedTool, where: str) -> None:
    """What the author sets must fit the tool's schema; what is missing may still come from the model."""
    for fault in registry.validate(code, allowed.preset):
        if fault.pointer.split("/")[1:2] and fault.pointer.split("/")[1] in allowed.preset:
            raise DefinitionError(fault.message, where=f"{where}/preset{fault.pointer}")


def _check_required(schema: Json, hidden: Sequence[str], allowed: AllowedTool, where: str) -> None:
    """What only the author can set, and must, is set."""
    missing = [name for name in schema.get("required", ()) if name in hidden and name not in allowed.preset]
    if missing:
        told = f"the author must set {', '.join(missing)}: no model can"
        raise DefinitionError(told, where=f"{where}/preset", value=allowed.preset)


def _check_narrowing(schema: Json, allowed: AllowedTool, where: str) -> None:
    if allowed.args is not None:
        Narrowing(allowed.args, where=f"{where}/args")
    known = schema.get("properties", {})
    for name in allowed.provenance:
        if known and name not in known:
            raise DefinitionError(f"the tool {allowed.tool} has no such argument", where=f"{where}/provenance/{name}")
