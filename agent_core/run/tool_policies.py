"""The policy of a new run: its whitelist, checked against the host's registry."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent_core.config import AgentConfig, AllowedTool
from agent_core.errors import DefinitionError
from agent_core.loop.judge import without_filled
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.origins.rules import rule_problems
from agent_core.outputs import Json
from agent_core.policy import binding_of, find_tools, has_wildcard
from agent_core.tool_policy import ToolPolicy
from utools.errors import UnknownTool
from utools.near_names import near_names
from utools.problems import Problem, gathering, refuse
from utools.registry import ToolRegistry
from utools.schema.config_schema import ConfigSchema, Narrowing, visible
from utools.schema.faults import hint
from utools.schema.shape import KNOWN, find_unknown_keywords
from utools.tool import Tool
from utools.words.text import translate_description, translate_descriptions

OF_OTHERS: Final = frozenset(
    {
        *("pattern", "format", "minLength", "maxLength", "contentEncoding", "contentMediaType", "contentSchema"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains"),
        *("minItems", "maxItems", "uniqueItems"),
    }
)
"""Keywords that judge texts, numbers or lists alone, and not the arguments of a call, which are an object."""
OF_NOTHING: Final = frozenset({"default", "dependencies", "examples", "id"})
"""Keywords that judge nothing, and may hold an object; arguments may have these names."""


def tool_policies(config: AgentConfig, registry: ToolRegistry, fills: Sequence[Json] = ()) -> dict[str, ToolPolicy]:
    """Return the whitelisted tools by code, in the config's order.

    `fills` says where secrets belong in the config, of which only presets may hold any. A glob does not reach a tool
    that needs a preset of its author, such as `agent_core`. DefinitionErrors for unknown tools, globs without a
    tool, and presets or narrowings that a tool's schema refuses.
    """
    selected, unknown = find_tools(config, [tool.code for tool in registry.for_models()])
    problems = list(_refused_entries(config, registry))
    refused = {problem.where for problem in problems}
    problems += [problem for problem in unknown if problem.where not in refused]
    policies: dict[str, ToolPolicy] = {}
    for code, (allowed, where) in selected.items():
        if code == allowed.tool or not _missing_presets(registry._schema(code), allowed):
            filled = _fills_of_preset(fills, where)
            problems += _binding_problems(registry, code, allowed, where, filled)
            policies[code] = _policy(registry, code, allowed, config, filled)
    outputs = {code: registry.get(code).output_schema for code in policies}
    for code, policy in policies.items():
        problems += _origin_problems(*selected[code], policy, outputs)
    refuse(sorted(problems, key=_position))
    return policies


def _position(problem: Problem) -> tuple[str, int]:
    """Return the list of the config that a problem is in, and its entry."""
    name, index = problem.where.split("/")[:2]
    return name, int(index)


def _refused_entries(config: AgentConfig, registry: ToolRegistry) -> Iterator[Problem]:
    """Tools that the host refuses, and denials that would deny nothing."""
    for index, entry in enumerate(config.allowed_tools):
        if refusal := registry._refusal_for_models(entry if isinstance(entry, str) else entry.tool):
            yield Problem(f"allowed_tools/{index}", refusal)
    codes = [tool.code for tool in registry.all()] + [READ_OBSERVATION]
    for index, code in enumerate(config.deny_tools):
        if not has_wildcard(code) and code not in codes and registry._refusal(code) is None:
            yield Problem(f"deny_tools/{index}", str(UnknownTool(code, codes)))


def _fills_of_preset(fills: Sequence[Json], where: str) -> list[Json]:
    """Return the fills of the preset of the entry at `where`, relative to that preset."""
    index = int(where.rpartition("/")[2])
    return [{**fill, "at": fill["at"][3:]} for fill in fills if fill["at"][:3] == ["allowed_tools", index, "preset"]]


def _policy(
    registry: ToolRegistry, code: str, allowed: AllowedTool, config: AgentConfig, fills: Sequence[Json]
) -> ToolPolicy:
    tool, schema = registry.get(code), registry._schema(code)
    hidden = sorted(schema.author_keys | set(allowed.preset))
    policy: ToolPolicy = {
        "description": translate_description(tool.description, config.language),
        "schema": schema.schema,
        "visible": translate_descriptions(visible(schema.schema, hidden), config.language),
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
    """Return a tool's effect as a journal can hold it; `dynamic` when only its own function can tell."""
    if isinstance(tool.effect, str):
        return tool.effect
    return "dynamic" if callable(tool.effect) else dict(tool.effect)


def _binding_problems(
    registry: ToolRegistry, code: str, allowed: AllowedTool, where: str, fills: Sequence[Json]
) -> Iterator[Problem]:
    """Yield how an entry binds a tool otherwise than the tool can be bound."""
    schema = registry._schema(code)
    yield from _preset_problems(registry, code, allowed, where, fills)
    if missing := _missing_presets(schema, allowed):
        message = f"the author must set {', '.join(missing)}: no model can"
        yield Problem(f"{where}/preset", str(DefinitionError(message, value=allowed.preset)))
    narrowing: list[Problem] = []
    with gathering(narrowing):
        if allowed.args is not None:
            Narrowing(allowed.args, where=f"{where}/args")
    yield from narrowing or _narrowed_in_vain(schema.schema, code, allowed, where)
    if allowed.args:
        yield from _idle_keywords(schema.schema, allowed.args, where)
    if allowed.rate_limit and registry.get(code).effect == "nested":
        message = "a nested run is no single call: limit the tools that it uses"
        yield Problem(f"{where}/rate_limit", str(DefinitionError(message, value=allowed.rate_limit)))


def _narrowed_in_vain(schema: Json, code: str, allowed: AllowedTool, where: str) -> Iterator[Problem]:
    """Yield the arguments that an entry narrows by a name that its tool does not take; a glob may fit other tools."""
    narrowed, known = (allowed.args or {}).get("properties", {}), schema.get("properties", {})
    if code != allowed.tool or schema.get("additionalProperties") is not False:
        return
    for name, bound in narrowed.items():
        if name not in known and bound is not False:
            yield Problem(f"{where}/args/properties/{name}", f"the tool has no such argument; {hint(name, known)}")


def _idle_keywords(schema: Json, narrowing: Json, where: str) -> Iterator[Problem]:
    """Yield the keys of a narrowing that narrow nothing: arguments beside `properties`, and misspelt keywords."""
    known = schema.get("properties", {})
    for key, value in narrowing.items():
        if key in OF_OTHERS or (key in OF_NOTHING and key in known and isinstance(value, dict)):
            message = "is a keyword here that narrows nothing: arguments are below properties"
            yield Problem(f"{where}/args/{key}", f"{message}, {{properties: {{{key if key in known else 'NAME'}: …}}}}")
    for pointer, key in find_unknown_keywords(narrowing):
        near = near_names(key, sorted(KNOWN))
        if not pointer and (not near or key in known):
            advice = f", and narrows nothing: arguments are below properties, {{properties: {{{key}: …}}}}"
        elif near:
            advice = f"; did you mean {near[0]}?"
        else:
            continue
        yield Problem(f"{where}/args{pointer}/{key}", f"is no keyword of JSON Schema{advice}")


def _origin_problems(
    allowed: AllowedTool, where: str, policy: ToolPolicy, outputs: Mapping[str, Json | None]
) -> Iterator[Problem]:
    """Rules on origins that no call can meet, and a question to a person that they would never raise."""
    for key, fault in rule_problems(policy["provenance"], policy["schema"], policy["preset"], outputs):
        is_whole = not isinstance(allowed.provenance, dict)
        value = str(DefinitionError(fault, value=policy["provenance"][key]))
        yield Problem(f"{where}/provenance" if is_whole else f"{where}/provenance/{key}", value)
    if allowed.approval == "on_unproven" and not policy["provenance"]:
        message = "asks only for what provenance does not prove: list the accepted origins in provenance"
        yield Problem(f"{where}/approval", str(DefinitionError(message, value=allowed.approval)))


def _preset_problems(
    registry: ToolRegistry, code: str, allowed: AllowedTool, where: str, fills: Sequence[Json]
) -> Iterator[Problem]:
    """Yield what of a preset does not fit the tool's schema; what is missing may still come from the model."""
    if not allowed.preset:
        return
    for fault in without_filled(fills, registry.validate(code, allowed.preset)):
        if fault.pointer.split("/")[1:2] and fault.pointer.split("/")[1] in allowed.preset:
            key = fault.pointer.split("/")[1]
            message = fault.message + registry._policy.describe_preset(code, key)
            yield Problem(f"{where}/preset{fault.pointer}", message)


def _missing_presets(schema: ConfigSchema, allowed: AllowedTool) -> list[str]:
    """Return the required arguments that only the author can set, and has not."""
    missing = schema.author_keys.difference(allowed.preset)
    return [name for name in schema.schema.get("required", ()) if name in missing] if missing else []
