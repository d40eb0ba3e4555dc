"""The command agents: the agents of this host, and which tools each has."""

from pathlib import Path

from agent_core.agents.definition import AgentDefinition
from engine_shim.cli import output
from engine_shim.host.find import load_host_config
from engine_shim.runs.agents import build_catalog


def list_agents(config: Path | None, *, as_json: bool) -> int:
    """List the agents of this host."""
    agents = build_catalog(load_host_config(config)).list()
    if as_json:
        output.document([_in_brief(agent) for agent in agents])
        return output.OK
    cells = [("name", "model", "description"), *((each.name, each.model, each.description) for each in agents)]
    name, model = (max(len(row[column]) for row in cells) for column in (0, 1))
    for row in cells if agents else ():
        output.line(output.in_line(f"{row[0]:<{name}}  {row[1]:<{model}}  {row[2]}").rstrip())
    if not agents:
        output.line("no agents: write one as agents/NAME.yaml beside agent-core.yaml, with name, model, system_prompt")
    return output.OK


def show_agent(name: str, config: Path | None) -> int:
    """Write an agent's definition, the tools that it has on this host, and why it lacks the others."""
    catalog = build_catalog(load_host_config(config))
    agent = catalog.get(name)
    _, note = catalog.config_of(name)
    output.document({**agent.model_dump(exclude_defaults=True), "tools": note["kept"], "dropped": note["dropped"]})
    return output.OK


def _in_brief(agent: AgentDefinition) -> dict[str, str]:
    return {"name": agent.name, "model": agent.model, "description": agent.description}
