"""build_catalog(): the agents of a host, from the files in its directory of agents."""

import logging

from agent_core.agents.catalog import AgentCatalog
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.host.protected import protect_models
from engine_shim.host.registry import build_registry
from engine_shim.runs.prepare import with_runs
from utools.registry import ToolRegistry

log = logging.getLogger("engine_shim")


def build_catalog(config: HostConfig, registry: ToolRegistry | None = None) -> AgentCatalog:
    """Return the agents of this host; none where it has no such directory, unless its configuration names one.

    `registry` has the host's tools, if it was built already. An agent that needs what the host has to do without is
    left out, and told in the log. DefinitionErrors with file and line of each fault of an agent.
    """
    registry = with_runs(build_registry(config) if registry is None else registry, None)
    directory = config.base / config.agents
    if directory.is_dir():
        catalog = AgentCatalog.from_directory(directory, registry)
        for agent in catalog.list():
            protect_models([agent.model, *agent.runtime_policy.get("fallback_models", [])], config.base)
        for name, problems in catalog.left_out.items():
            log.warning("left out: the agent %s: %s", name, "; ".join(map(str, problems)))
        return catalog
    if "agents" in config.model_fields_set:
        raise DefinitionError("there is no such directory", where=config.at("agents"), value=config.agents)
    return AgentCatalog(registry)
