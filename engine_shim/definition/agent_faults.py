"""Why the agents of a node could not be started: its own, and those that are tools of another."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_core.run.prepare import prepare_agent
from engine_shim.definition.errors import Problem, message_of
from engine_shim.definition.model import AGENT, Node
from engine_shim.definition.model_refs import STAND_INS, known_config
from engine_shim.definition.uses import ToolUse, uses_of_node
from engine_shim.errors import DefinitionError
from utools.registry import ToolRegistry


def agent_faults(
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


def _faults_of(use: ToolUse, registry: ToolRegistry, base: Path) -> Iterator[Problem]:
    given_by_model = {"prompt": STAND_INS["prompt"]} if use.by_agent else {}
    config = known_config({**given_by_model, **use.config})
    problem = _try_to_prepare(config, use.where, registry, base)
    if problem is None:
        return
    yield problem
    entries = config.get("allowed_tools")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):  # each may have a fault of its own
        other = _try_to_prepare({**config, "allowed_tools": [entry]}, use.where, registry, base)
        if other is not None:
            place = other.where.removeprefix(use.where).replace("allowed_tools/0", f"allowed_tools/{index}", 1)
            yield Problem(f"{use.where}{place}", other.message)


def _try_to_prepare(config: Mapping[str, Any], where: str, registry: ToolRegistry, base: Path) -> Problem | None:
    """Why an agent could not be started with this config; None when it could."""
    try:
        prepare_agent("probe", "agent", config, {}, registry=registry, at="", base=base)
    except DefinitionError as error:
        location = error.where.removeprefix("config").lstrip("/")
        return Problem(f"{where}/{location}" if location else where, message_of(error))
    return None
