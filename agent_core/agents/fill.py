"""fill_agents(): a node's config with all that the agents stand for which it names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.definition import AgentDefinition
from agent_core.agents.errors import AgentNotFound
from agent_core.agents.narrow import narrow_agent
from agent_core.errors import DefinitionError
from agent_core.outputs import Json
from utools.problems import DefinitionErrors, Problem, problems_in, refuse

AGENT = "agent_core"
"""The code of the tool that an agent is."""


def fill_agents(config: Mapping[str, Any], catalog: AgentCatalog) -> Json:
    """Return the config with what each agent stands for that it names: by its key `agent`, or in the preset of a tool.

    An agent that was filled in already stays as it is. DefinitionErrors with places in the config, for an agent that
    is not in the catalogue, keys that would give one more than its definition does, and an agent that calls itself.
    """
    return _fill(config, catalog, ())


def _fill(config: Mapping[str, Any], catalog: AgentCatalog, above: Sequence[str]) -> Json:
    name = config.get("agent")
    filled = dict(config)
    if isinstance(name, str):
        if name in above:
            raise DefinitionError(f"this agent calls itself: {' → '.join((*above, name))}", where="agent", value=name)
        agent = _get(catalog, name)
        filled = narrow_agent(agent, catalog.config_of(name), _without_name(config))
        above = (*above, name)
    elif name is not None and not isinstance(name, Mapping):
        raise DefinitionError("must be the name of an agent", where="agent", value=name)
    if isinstance(entries := filled.get("allowed_tools"), list):
        filled["allowed_tools"] = _fill_tools(entries, catalog, above)
    return filled


def _fill_tools(entries: list[Any], catalog: AgentCatalog, above: Sequence[str]) -> list[Any]:
    """Return the entries of a whitelist, with the agents among them filled in."""
    filled: list[Any] = []
    problems: list[Problem] = []
    for index, entry in enumerate(entries):
        try:
            filled.append(_fill_tool(entry, catalog, above))
        except DefinitionError as error:
            where = f"allowed_tools/{index}/preset"
            problems += [replace(each, where=f"{where}/{each.where}") for each in problems_in(error)]
    refuse(problems)
    return filled


def _fill_tool(entry: Any, catalog: AgentCatalog, above: Sequence[str]) -> Any:
    preset = entry.get("preset") if isinstance(entry, Mapping) and entry.get("tool") == AGENT else None
    return {**entry, "preset": _fill(preset, catalog, above)} if isinstance(preset, Mapping) else entry


def _get(catalog: AgentCatalog, name: str) -> AgentDefinition:
    try:
        return catalog.get(name)
    except AgentNotFound as error:
        raise DefinitionErrors([Problem("agent", str(error))]) from None


def _without_name(config: Mapping[str, Any]) -> Json:
    return {key: value for key, value in config.items() if key != "agent"}
