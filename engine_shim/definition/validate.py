"""CheckedWorkflow: a workflow in which nothing was found wrong, and what there is to find without running it."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent_core.errors import DefinitionError
from agent_core.run.prepare import prepare_agent
from engine_shim.definition.errors import Problem, message_of, problem_of, problems_in, refuse
from engine_shim.definition.graph import Graph, graph_of
from engine_shim.definition.inputs import external_of, input_schema
from engine_shim.definition.invoke import load_invoked
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT, INVOKE, Definition, Node
from engine_shim.definition.model_refs import known_config
from engine_shim.definition.reachability import Reachability, reachability_of, unmet_references
from engine_shim.definition.template import BRACES, TEMPLATE, find_placeholder_inside, placeholders
from utools.errors import UnknownTool
from utools.registry import ToolRegistry

PASSING_ON = (INVOKE, "context_manager")
"""Tools that pass their config on to readers who may not see a secret."""
FORMATTER = "formatter"


@dataclass(frozen=True, slots=True)
class CheckedWorkflow:
    """A workflow that can run with the tools of a registry, and what was found out about it on the way."""

    workflow: Workflow
    registry: ToolRegistry
    graph: Graph
    reachability: Reachability
    data: Mapping[str, Any]
    """The definition as a journal records it."""

    @property
    def definition(self) -> Definition:
        return self.workflow.definition

    @property
    def base(self) -> Path:
        return self.workflow.base

    def external_of(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The run's `external`, from its inputs. DefinitionError for inputs that do not fit."""
        return external_of(self.definition, inputs, self.reachability.at_the_end)


def check(workflow: Workflow | CheckedWorkflow, registry: ToolRegistry) -> CheckedWorkflow:
    """The workflow, checked. DefinitionErrors with everything that `validate` finds, if it finds anything."""
    if isinstance(workflow, CheckedWorkflow):
        if workflow.registry is registry:
            return workflow
        workflow = workflow.workflow
    checker = _Checker(registry, [])
    refuse(checker.find_problems(workflow))
    graph, reachability = checker.checked
    return CheckedWorkflow(workflow, registry, graph, reachability, workflow.as_json())


def validate(workflow: Workflow, registry: ToolRegistry) -> list[Problem]:
    """Every fault that can be found without running; empty when there is none."""
    return list(dict.fromkeys(_Checker(registry, []).find_problems(workflow)))


class _Checker:
    """Checks a workflow, and those that it invokes. What is in `seen` is not checked again: many workflows may invoke
    one, or each other in a circle."""

    checked: tuple[Graph, Reachability]

    def __init__(self, registry: ToolRegistry, seen: list[Definition]) -> None:
        self._registry, self._seen = registry, seen

    def find_problems(self, workflow: Workflow) -> Iterator[Problem]:
        definition, nodes = workflow.definition, workflow.nodes.keys()
        self._seen.append(definition)
        try:
            input_schema(definition)
        except DefinitionError as error:
            yield from problems_in(error)
        for index, node in enumerate(definition.nodes):
            yield from self._check_node(node, f"nodes/{index}", workflow, nodes)
            for where, config in _invocations(node, f"nodes/{index}/config"):
                yield from self._check_invoked(config, where, workflow.base)
        yield from _unknown_references(definition.outputs, "outputs", definition, nodes)
        yield from _exposed_secrets(definition)
        try:
            graph = graph_of(definition)
            self.checked = graph, reachability_of(graph)
            yield from unmet_references(definition, *self.checked)
        except DefinitionError as error:
            yield from problems_in(error)

    def _check_node(self, node: Node, where: str, workflow: Workflow, nodes: Set[str]) -> Iterator[Problem]:
        try:
            self._registry.get(node.tool)
        except UnknownTool as error:
            yield Problem(f"{where}/tool", str(error))
            return
        where = f"{where}/config"
        if node.tool == FORMATTER and (half := find_placeholder_inside(node.config.get(TEMPLATE))):
            message = f"{half}: nothing is filled in within a template; give the value in data, and use its name there"
            yield Problem(f"{where}/{TEMPLATE}", message)
            return
        unknown = list(_unknown_references(node.config, where, workflow.definition, nodes, own=node.id))
        faults = unknown or list(self._find_schema_faults(node, where))
        yield from faults
        if node.tool == AGENT and not faults:
            yield from self._check_agent(node, where, workflow)

    def _find_schema_faults(self, node: Node, where: str) -> Iterator[Problem]:
        """What the tool's schema refuses, except for values that placeholders give only when the node runs."""
        later = {location for location, _ in placeholders(node.config, where)}
        schema = self._registry.schema(node.tool).schema
        closed = schema.get("properties", {}).keys() if schema.get("additionalProperties") is False else None
        for fault in self._registry.validate(node.tool, node.config):
            name, location = fault.pointer[1:].partition("/")[0], f"{where}{fault.pointer}"
            unknown = bool(name) and closed is not None and name not in closed
            if unknown or not _overlaps(location, later):
                yield problem_of(fault, where, self._registry.policy.describe_preset(node.tool, name))

    def _check_agent(self, node: Node, where: str, workflow: Workflow) -> Iterator[Problem]:
        """Prepare the agent as if it ran, with as much of its config as is known before that."""
        config = known_config(node)
        problem = self._try_to_prepare(config, where, workflow)
        if problem is not None:
            yield problem
            for index, entry in enumerate(config["allowed_tools"]):  # each may have a fault of its own
                other = self._try_to_prepare({**config, "allowed_tools": [entry]}, where, workflow)
                if other is not None:
                    yield Problem(other.where.replace("allowed_tools/0", f"allowed_tools/{index}"), other.message)
        yield from _unvouched_text(node, where, workflow.definition)

    def _try_to_prepare(self, config: dict[str, Any], where: str, workflow: Workflow) -> Problem | None:
        """Why an agent could not be started with this config; None when it could."""
        try:
            prepare_agent("probe", "agent", config, {}, registry=self._registry, at="", base=workflow.base)
        except DefinitionError as error:
            location = error.where.removeprefix("config").lstrip("/")
            return Problem(f"{where}/{location}" if location else where, message_of(error))
        return None

    def _check_invoked(self, config: Mapping[str, Any], where: str, base: Path) -> Iterator[Problem]:
        """What is wrong with the workflow that a config names."""
        file = config.get("workflow")
        if not isinstance(file, str) or BRACES in file:  # which one it is, shows only in the run
            return
        try:
            below = load_invoked(config, base)
        except DefinitionError as error:
            yield from (Problem(f"{where}/workflow", str(each)) for each in problems_in(error))
            return
        if below.definition not in self._seen:
            found = dict.fromkeys(_Checker(self._registry, self._seen).find_problems(below))
            yield from (Problem(f"{where}/workflow", str(each)) for each in found)


def _invocations(node: Node, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The configs that name a workflow, with their places: the node's, or presets of what its agent may call.

    Those workflows are checked before anything runs as well: an agent may write files.
    """
    if node.tool == INVOKE:
        yield where, node.config
    entries = node.config.get("allowed_tools") if node.tool == AGENT else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        pattern, preset = (entry.get("tool"), entry.get("preset")) if isinstance(entry, dict) else (None, None)
        if isinstance(pattern, str) and fnmatchcase(INVOKE, pattern) and isinstance(preset, dict):
            yield f"{where}/allowed_tools/{index}/preset", preset


def _overlaps(location: str, later: Set[str]) -> bool:
    """Whether a place holds, or is inside, a value that a placeholder gives only when the node runs."""
    return any(
        location == other or other.startswith(f"{location}/") or location.startswith(f"{other}/") for other in later
    )


# ── placeholders ─────────────────────────────────────────────────────────────────────────────────


def _unknown_references(
    value: Any, where: str, definition: Definition, nodes: Set[str], own: str = ""
) -> Iterator[Problem]:
    """Placeholders in a value that read what the definition does not have.

    A node may read its `own` output only from the round before, and only if it may be missing.
    """
    try:
        for location, each in placeholders(value, where):
            root, name = each.path[:2]
            known = _known_names(root, definition, nodes)
            is_own = root == "nodes" and name == own and not each.optional
            if known is not None and (name not in known or is_own) and not (each.optional and root == "external"):
                others = ", ".join(sorted(known - {own} if root == "nodes" and not each.optional else known)) or "none"
                yield Problem(location, f"{each}: there is no {name!r} in {root} here; there are {others}")
            elif root in ("env", "run") and len(each.path) > 2:
                yield Problem(location, f"{each}: {root}.{name} is a text, and nothing is below it")
    except DefinitionError as error:
        yield from problems_in(error)


def _known_names(root: str, definition: Definition, nodes: Set[str]) -> Set[str] | None:
    """The names below a placeholder's root; None where they are not known before a run."""
    inputs = definition.inputs or {}
    match root:
        case "nodes":
            return nodes
        case "env":
            return definition.secrets | definition.plain
        case "external":
            return set(inputs.get("properties", ())) if inputs.get("additionalProperties") is False else None
        case _:
            return {"id"}


def _exposed_secrets(definition: Definition) -> Iterator[Problem]:
    """Secrets where a model would read them, or a record hold them: only the input of a tool may contain one."""
    locations = [(node, f"nodes/{index}/config", node.config) for index, node in enumerate(definition.nodes)]
    for node, start, value in (*locations, (None, "outputs", definition.outputs)):
        try:
            found = [(where, each) for where, each in placeholders(value, start) if each.path[0] == "env"]
        except DefinitionError:
            continue
        for where, each in found:
            if each.path[1] in definition.secrets and not _reaches_tool_only(node, where.removeprefix(start)):
                message = "is secret: only the config of a tool, or the preset of an agent's tool, may take it"
                yield Problem(where, f"{each} {message}; or mark it plain in env")


def _reaches_tool_only(node: Node | None, location: str) -> bool:
    """Whether only the tool itself gets a value in a node's config."""
    if node is None or node.tool in PASSING_ON:
        return False
    if node.tool != AGENT:
        return True
    preset, entries = re.match(r"/allowed_tools/(\d+)/preset/", location), node.config.get("allowed_tools")
    if preset is None or not isinstance(entries, list):
        return False
    return not any(fnmatchcase(code, str(entries[int(preset[1])].get("tool"))) for code in (AGENT, *PASSING_ON))


def _unvouched_text(node: Node, where: str, definition: Definition) -> Iterator[Problem]:
    """Provenance rests on the prompts: the author must vouch for another node's output in them, or leave it out."""
    entries = node.config.get("allowed_tools", ())
    if node.config.get("trusted_text") is not None or not isinstance(entries, list):
        return
    if not any(isinstance(entry, dict) and entry.get("provenance") for entry in entries):
        return
    tools = {other.id: other.tool for other in definition.nodes}
    for key in ("messages_json", "prompt", "system_prompt", "developer_prompt"):
        for location, each in placeholders(node.config.get(key), key):
            if each.path[0] == "nodes" and tools.get(each.path[1]) != "context_manager":
                message = f"takes the output of {each.path[1]!r}, so say in trusted_text what provenance may rest on"
                yield Problem(f"{where}/{location}", message)
                return
