"""Why the agents of a node could not be started: its own, and those that are tools of another."""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from agent_core.prompts.render import is_file
from agent_core.run.prepare import prepare_agent
from engine_shim.definition.errors import Problem, problems_in
from engine_shim.definition.model import AGENT, Node
from engine_shim.definition.model_refs import STAND_INS, known_config
from engine_shim.definition.uses import ToolUse, uses_of_node
from engine_shim.errors import DefinitionError
from utools.registry import ToolRegistry


def check_agents(
    node: Node, where: str, registry: ToolRegistry, base: Path, *, with_tools: bool = True
) -> Iterator[Problem]:
    """Prepare each agent as if it ran, with as much of its config as is known before that.

    `with_tools` says that agents that are tools of another are checked too, where that one has no fault.
    """
    faulty: list[str] = []
    for use in uses_of_node(node, where, (AGENT,)):
        is_below_faulty = any(use.where.startswith(f"{other}/") for other in faulty)
        if use.by_agent and (is_below_faulty or not with_tools or not use.by_name):
            continue
        found = list(_faults_of(use, registry, base))
        faulty += [use.where] if found else []
        yield from found


def without_faulty_keys(node: Node, faulty: Set[str]) -> Node:
    """Return the node without the keys of its config that have a fault, so that those of the others are found."""
    config = {key: value for key, value in node.config.items() if key not in faulty}
    stand_ins = {key: value for key, value in STAND_INS.items() if key in faulty}
    return node.model_copy(update={"config": {**config, **stand_ins}})


def _faults_of(use: ToolUse, registry: ToolRegistry, base: Path) -> Iterator[Problem]:
    given_by_model = {"prompt": STAND_INS["prompt"]} if use.by_agent else {}
    config = known_config({**given_by_model, **use.config})
    try:
        prepare_agent("probe", "agent", config, {}, registry=registry, at="", base=base)
    except DefinitionError as error:
        for problem in problems_in(error):
            location = problem.where.removeprefix("config").lstrip("/")
            yield Problem(f"{use.where}/{location}" if location else use.where, problem.message)


def find_prompt_files(config: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Yield a problem for each; the same whether there is such a file or not."""
    prompts = config.get("prompts")
    for name, template in prompts.items() if isinstance(prompts, Mapping) else ():
        if is_file(template):
            place = f"{where}/prompts/{name}" if where else f"prompts/{name}"
            yield Problem(place, "a definition over HTTP gives the text of a template, not the name of a file")
