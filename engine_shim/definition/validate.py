"""What can be found wrong with a workflow without running it: every fault with its place."""

import re
from collections.abc import Iterator, Mapping, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent_core.errors import DefinitionError
from agent_core.run.prepare import prepare_agent
from engine_shim.definition.errors import Problem, message_of, problem_of, problems_in, refuse
from engine_shim.definition.graph import graph_of
from engine_shim.definition.inputs import input_schema
from engine_shim.definition.invoke import invoked
from engine_shim.definition.model import AGENT, INVOKE, Definition, Node, Workflow
from engine_shim.definition.reachability import too_early
from engine_shim.definition.template import BRACES, TEMPLATE, half_filled, placeholders
from utools.errors import UnknownTool
from utools.registry import ToolRegistry

READ_ON = (INVOKE, "context_manager")
"""Tools that hand on what they are given to those who may not have a secret."""
FORMATTER = "formatter"
STAND_INS: dict[str, Any] = {
    "model": "probe",
    "max_steps": 1,
    "allowed_tools": [],
    "prompt": "probe",
    "messages_json": [{"role": "user", "content": "probe"}],
}


def validate(workflow: Workflow, registry: ToolRegistry, seen: list[Definition] | None = None) -> list[Problem]:
    """Every fault that can be found without running; empty when there is none.

    What is in `seen` is not looked at again: many workflows may invoke one, or each other in a circle.
    """
    seen = [] if seen is None else seen
    seen.append(workflow.definition)
    return list(dict.fromkeys(_problems(workflow, registry, seen)))


def check(workflow: Workflow, registry: ToolRegistry) -> None:
    """Raise DefinitionError with all that `validate` finds, if it finds anything."""
    refuse(validate(workflow, registry))


def _problems(workflow: Workflow, registry: ToolRegistry, seen: list[Definition]) -> Iterator[Problem]:
    definition = workflow.definition
    yield from _inputs(definition)
    for index, node in enumerate(definition.nodes):
        yield from _node(node, f"nodes/{index}", workflow, registry)
        for where, config in _invocations(node, f"nodes/{index}/config"):
            yield from _invoked(config, where, workflow.base, registry, seen)
    yield from _taken(definition.outputs, "outputs", definition, frozenset(workflow.nodes))
    yield from _exposed(definition)
    try:
        yield from too_early(definition, graph_of(definition))
    except DefinitionError as error:
        yield from problems_in(error)


def _inputs(definition: Definition) -> Iterator[Problem]:
    try:
        input_schema(definition)
    except DefinitionError as error:
        yield from problems_in(error)


def _node(node: Node, where: str, workflow: Workflow, registry: ToolRegistry) -> Iterator[Problem]:
    try:
        registry.get(node.tool)
    except UnknownTool as error:
        yield Problem(f"{where}/tool", str(error))
        return
    place = f"{where}/config"
    if node.tool == FORMATTER and (half := half_filled(node.config.get(TEMPLATE))):
        message = f"{half}: nothing is filled in within a template; give the value in data, and use its name there"
        yield Problem(f"{place}/{TEMPLATE}", message)
        return
    unreadable = list(_taken(node.config, place, workflow.definition, workflow.nodes.keys(), own=node.id))
    if unreadable:
        yield from unreadable
        return
    faults = list(_faults(node, place, registry))
    yield from faults
    if node.tool == AGENT and not faults:
        yield from _agent(node, place, workflow, registry)


def _taken(value: Any, where: str, definition: Definition, nodes: Set[str], own: str = "") -> Iterator[Problem]:
    """What is wrong with the placeholders in a value, as far as the definition lists what there is.

    A node may only take its `own` output of the round before, which need not be there.
    """
    try:
        for place, each in placeholders(value, where):
            root, name = each.path[:2]
            known = _known(root, definition, nodes if each.optional else nodes - {own})
            if known is not None and name not in known and not (each.optional and root == "external"):
                names = ", ".join(sorted(known)) or "none"
                yield Problem(place, f"{each}: there is no {name!r} in {root} here; there are {names}")
            elif root in ("env", "run") and len(each.path) > 2:
                yield Problem(place, f"{each}: {root}.{name} is a text, and nothing is below it")
    except DefinitionError as error:
        yield from problems_in(error)


def _exposed(definition: Definition) -> Iterator[Problem]:
    """Secrets where a model would read them, or a record hold them: only what a tool is given may take one."""
    places = [(node, f"nodes/{index}/config", node.config) for index, node in enumerate(definition.nodes)]
    for node, start, value in (*places, (None, "outputs", definition.outputs)):
        try:
            found = [(where, each) for where, each in placeholders(value, start) if each.path[0] == "env"]
        except DefinitionError:
            continue
        for where, each in found:
            if each.path[1] in definition.secrets and not _hidden(node, where.removeprefix(start)):
                message = "is secret: only the config of a tool, or the preset of an agent's tool, may take it"
                yield Problem(where, f"{each} {message}; or mark it plain in env")


def _hidden(node: Node | None, place: str) -> bool:
    """Whether what stands in a node's config only reaches the tool itself."""
    if node is None or node.tool in READ_ON:
        return False
    if node.tool != AGENT:
        return True
    preset, entries = re.match(r"/allowed_tools/(\d+)/preset/", place), node.config.get("allowed_tools")
    if preset is None or not isinstance(entries, list):
        return False
    return not any(fnmatchcase(code, str(entries[int(preset[1])].get("tool"))) for code in (AGENT, *READ_ON))


def _known(root: str, definition: Definition, nodes: Set[str]) -> Set[str] | None:
    """The names below a placeholder's root; None where they are not known before a run."""
    inputs = definition.inputs or {}
    match root:
        case "nodes":
            return nodes
        case "env":
            return {entry if isinstance(entry, str) else entry.name for entry in definition.env}
        case "external":
            return set(inputs.get("properties", ())) if inputs.get("additionalProperties") is False else None
        case _:
            return {"id"}


def _faults(node: Node, where: str, registry: ToolRegistry) -> Iterator[Problem]:
    """What the tool's schema refuses, but for values that placeholders fill only when the node runs."""
    late = {place for place, _ in placeholders(node.config, where)}
    schema = registry.schema(node.tool).schema
    closed = schema.get("properties", {}).keys() if schema.get("additionalProperties") is False else None
    for fault in registry.validate(node.tool, node.config):
        name, place = fault.pointer[1:].partition("/")[0], f"{where}{fault.pointer}"
        unknown = bool(name) and closed is not None and name not in closed
        if unknown or not _below(place, late):
            yield problem_of(fault, where)


def _below(place: str, late: Set[str]) -> bool:
    """Whether a place holds, or lies in, what a placeholder fills only when the node runs."""
    return any(place == other or other.startswith(f"{place}/") or place.startswith(f"{other}/") for other in late)


def _agent(node: Node, where: str, workflow: Workflow, registry: ToolRegistry) -> Iterator[Problem]:
    """All of an agent's config that is known before it runs, prepared as if it ran."""
    config = known_config(node)
    fault = _unprepared(config, where, workflow, registry)
    if fault is not None:
        yield fault
        for index, entry in enumerate(config["allowed_tools"]):  # each may have a fault of its own
            other = _unprepared({**config, "allowed_tools": [entry]}, where, workflow, registry)
            if other is not None:
                place = other.where.replace("allowed_tools/0", f"allowed_tools/{index}")
                yield Problem(place, other.message)
    try:
        _trust(node, workflow.definition)
    except DefinitionError as error:
        yield Problem(f"{where}/{error.where}", message_of(error))


def _unprepared(config: dict[str, Any], where: str, workflow: Workflow, registry: ToolRegistry) -> Problem | None:
    """Why an agent could not be started with this config; None when it could."""
    try:
        prepare_agent("probe", "agent", config, {}, registry=registry, at="", base=workflow.base)
    except DefinitionError as error:
        place = error.where.removeprefix("config").lstrip("/")
        return Problem(f"{where}/{place}" if place else where, message_of(error))
    return None


def _invocations(node: Node, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The configs that name a workflow, with their places: of the node, or of what its agent may call.

    Those are read, too, before anything runs: an agent may write files.
    """
    if node.tool == INVOKE:
        yield where, node.config
    entries = node.config.get("allowed_tools") if node.tool == AGENT else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        pattern, preset = (entry.get("tool"), entry.get("preset")) if isinstance(entry, dict) else (None, None)
        if isinstance(pattern, str) and fnmatchcase(INVOKE, pattern) and isinstance(preset, dict):
            yield f"{where}/allowed_tools/{index}/preset", preset


def _invoked(
    config: Mapping[str, Any], where: str, base: Path, registry: ToolRegistry, seen: list[Definition]
) -> Iterator[Problem]:
    """What is wrong with the workflow that a config names."""
    named = config.get("workflow")
    if not isinstance(named, str) or BRACES in named:  # which one it is, is known when it runs
        return
    try:
        below = invoked(config, base)
    except DefinitionError as error:
        yield from (Problem(f"{where}/workflow", str(each)) for each in problems_in(error))
        return
    if below.definition not in seen:
        yield from (Problem(f"{where}/workflow", str(each)) for each in validate(below, registry, seen))


def known_config(node: Node) -> dict[str, Any]:
    """What an agent's config says before it runs, with stand-ins for what placeholders fill later."""
    known = {key: value for key, value in node.config.items() if not any(True for _ in placeholders(value))}
    return {**{key: value for key, value in STAND_INS.items() if key in node.config}, **known}


def _trust(node: Node, definition: Definition) -> None:
    """Provenance rests on the prompts; what another node put into them must be vouched for, or left out."""
    entries = node.config.get("allowed_tools", ())
    if node.config.get("trusted_text") is not None or not isinstance(entries, list):
        return
    if not any(isinstance(entry, dict) and entry.get("provenance") for entry in entries):
        return
    tools = {other.id: other.tool for other in definition.nodes}
    for key in ("messages_json", "prompt", "system_prompt", "developer_prompt"):
        for where, each in placeholders(node.config.get(key), key):
            if each.path[0] == "nodes" and tools.get(each.path[1]) != "context_manager":
                message = f"takes the output of {each.path[1]!r}, so say in trusted_text what provenance may rest on"
                raise DefinitionError(message, where=where)
