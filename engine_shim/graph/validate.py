"""What can be found wrong with a workflow without running it: every fault with its place."""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_core.errors import DefinitionError
from agent_core.node import CODE as AGENT
from agent_core.prepare import prepare_agent
from engine_shim.graph.definition import Definition, Node, Workflow
from engine_shim.graph.schedule import graph_of
from engine_shim.graph.template import placeholders
from utools.errors import UnknownTool
from utools.registry import ToolRegistry
from utools.schema import ConfigSchema


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a definition: where it stands, and what to do about it."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def validate(workflow: Workflow, registry: ToolRegistry) -> list[Problem]:
    """Every fault that can be found without running; empty when there is none."""
    return list(_problems(workflow, registry))


def check(workflow: Workflow, registry: ToolRegistry) -> None:
    """Raise DefinitionError with all that `validate` finds, if it finds anything."""
    problems = validate(workflow, registry)
    if problems:
        more = "".join(f"\n{problem}" for problem in problems[1:])
        raise DefinitionError(problems[0].message + more, where=problems[0].where)


def check_inputs(definition: Definition, external: Mapping[str, Any]) -> None:
    """The run's inputs against `inputs`; DefinitionError says which is missing or wrong."""
    if definition.inputs is None:
        return
    faults = ConfigSchema(definition.inputs, foreign=True, where="inputs").faults(dict(external))
    if faults:
        told = "; ".join(fault.message for fault in faults)
        raise DefinitionError(told, where=f"external{faults[0].pointer}")


def _problems(workflow: Workflow, registry: ToolRegistry) -> Iterator[Problem]:
    definition = workflow.definition
    checks: list[Callable[[], object]] = [partial(graph_of, definition), partial(_inputs, definition)]
    checks += [partial(_node, index, workflow, registry) for index in range(len(definition.nodes))]
    checks += [partial(_outputs, definition)]
    for one in checks:
        try:
            one()
        except DefinitionError as error:
            yield Problem(error.where, str(error).removeprefix(f"{error.where}: "))


def _inputs(definition: Definition) -> None:
    if definition.inputs is not None:
        ConfigSchema(definition.inputs, foreign=True, where="inputs")


def _node(index: int, workflow: Workflow, registry: ToolRegistry) -> None:
    node, where = workflow.definition.nodes[index], f"nodes/{index}"
    try:
        registry.get(node.tool)
    except UnknownTool as error:
        raise DefinitionError(str(error), where=f"{where}/tool") from None
    filled = list(placeholders(node.config, f"{where}/config"))
    for place, path in filled:
        _known(path, workflow.definition, place)
    late = {place for place, _ in filled}
    for fault in registry.validate(node.tool, node.config):
        if not _below(f"{where}/config{fault.pointer}", late):
            raise DefinitionError(fault.message, where=f"{where}/config{fault.pointer}")
    if node.tool == AGENT:
        _agent(node, f"{where}/config", workflow, registry)


def _below(place: str, late: Set[str]) -> bool:
    """Whether a place holds, or lies in, what a placeholder fills only when the node runs."""
    return any(place == other or other.startswith(f"{place}/") or place.startswith(f"{other}/") for other in late)


def _known(path: tuple[str, ...], definition: Definition, where: str) -> None:
    """A placeholder's name, as far as the definition lists what there is."""
    inputs = definition.inputs or {}
    known = {
        "env": {entry if isinstance(entry, str) else entry.name for entry in definition.env},
        "external": set(inputs.get("properties", ())) if inputs.get("additionalProperties") is False else None,
        "run": {"id"},
    }.get(path[0])
    if known is not None and path[1] not in known:
        told = f"there is no such name; there are {', '.join(sorted(known)) or 'none'}"
        raise DefinitionError(told, where=where, value=f"{{{{{'.'.join(path)}}}}}")


def _agent(node: Node, where: str, workflow: Workflow, registry: ToolRegistry) -> None:
    """All of an agent's config that is known before it runs, prepared as if it ran."""
    try:
        prepare_agent("probe", "agent", known_config(node), {}, registry=registry, at="", base=workflow.base)
        _trust(node, workflow.definition)
    except DefinitionError as error:
        place = error.where.removeprefix("config").lstrip("/")
        told = str(error).removeprefix(f"{error.where}: ")
        raise DefinitionError(told, where=f"{where}/{place}" if place else where) from None


def known_config(node: Node) -> dict[str, Any]:
    """What an agent's config says before it runs, with stand-ins for what placeholders fill later."""
    known = {key: value for key, value in node.config.items() if not any(True for _ in placeholders(value))}
    return {"model": "probe", "max_steps": 1, "allowed_tools": [], "prompt": "probe", **known}


def _trust(node: Node, definition: Definition) -> None:
    """Provenance rests on the prompts; what another node put into them must be vouched for, or left out."""
    entries = node.config.get("allowed_tools", ())
    if node.config.get("trusted_text") is not None or not isinstance(entries, list):
        return
    if not any(isinstance(entry, dict) and entry.get("provenance") for entry in entries):
        return
    tools = {other.id: other.tool for other in definition.nodes}
    for key in ("messages_json", "prompt", "system_prompt", "developer_prompt"):
        for where, path in placeholders(node.config.get(key), key):
            if path[0] == "nodes" and tools.get(path[1]) != "context_manager":
                told = f"takes the output of {path[1]!r}, so say in trusted_text what provenance may rest on"
                raise DefinitionError(told, where=where)


def _outputs(definition: Definition) -> None:
    known = {node.id for node in definition.nodes}
    for where, path in placeholders(definition.outputs, "outputs"):
        if path[0] == "nodes" and path[1] not in known:
            raise DefinitionError(f"no such node; there are {', '.join(sorted(known))}", where=where, value=path[1])
        _known(path, definition, where)
