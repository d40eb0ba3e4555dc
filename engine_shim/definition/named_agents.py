"""fill_workflow(): a workflow in which each agent of the host's catalogue stands for what its definition says."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.fill import fill_agents
from agent_core.agents.narrow import TASK
from engine_shim.definition.errors import Problem, problems_in
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT, Node
from engine_shim.definition.model_refs import STAND_INS
from engine_shim.errors import DefinitionError

_STAND_INS: dict[str, Any] = {**STAND_INS, "model": "{{run.id}}"}
"""The config of a faulty node; its model is none that is known before a run."""


def fill_workflow(workflow: Workflow, catalog: AgentCatalog) -> tuple[Workflow, list[Problem]]:
    """Return the workflow with the configs that its agents' names stand for, and what is wrong with these nodes.

    A faulty node has a config with stand-ins, so that the rest can be checked.
    """
    problems: list[Problem] = []
    nodes: list[Node] = []
    given: dict[str, str] = {}
    for index, node in enumerate(workflow.definition.nodes):
        where = f"nodes/{index}/config"
        try:
            config = fill_agents(node.config, catalog) if node.tool == AGENT else node.config
        except DefinitionError as error:
            problems += [Problem(f"{where}/{each.where}", each.message) for each in problems_in(error)]
            config = {**_STAND_INS, **{key: value for key, value in node.config.items() if key in TASK}}
        nodes.append(node if config == node.config else node.model_copy(update={"config": config}))
        given |= {f"{where}/{key}": _of_agent(node.config, key) for key in config.keys() - node.config.keys()}
    if nodes == workflow.definition.nodes:
        return workflow, problems
    filled = workflow.definition.model_copy(update={"nodes": nodes})
    return replace(workflow, definition=filled, given={**given, **workflow.given}), problems


def _of_agent(config: Mapping[str, Any], key: str) -> str:
    """Return what to call a value that is not the node's own."""
    return f"agent {config.get('agent')!r}, {key}"
