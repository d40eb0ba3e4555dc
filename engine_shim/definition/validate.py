"""CheckedWorkflow: a workflow in which nothing was found wrong, and how faults are found without running it."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agent_core.agents.catalog import AgentCatalog
from agent_core.errors import DefinitionError
from engine_shim.definition.check_agents import check_agents, find_prompt_files, without_faulty_keys
from engine_shim.definition.check_output_types import check_output_types
from engine_shim.definition.check_tool_calls import check_tool_calls
from engine_shim.definition.errors import DefinitionErrors, Problem, by_line, problems_in, refuse
from engine_shim.definition.graph import Graph, graph_of
from engine_shim.definition.inputs import (
    doubtful_inputs,
    external_of,
    faults_beside_placeholders,
    input_schema,
    invoked_input_faults,
)
from engine_shim.definition.invoke import load_invoked
from engine_shim.definition.load import Bounds, Workflow
from engine_shim.definition.model import AGENT, INVOKE, Definition, Node
from engine_shim.definition.named_agents import fill_workflow
from engine_shim.definition.outputs import NodeOutputs
from engine_shim.definition.reachability import Reachability, reachability_of, unmet_references
from engine_shim.definition.references import contradicted_secrets, exposed_secrets, unknown_references, unvouched_text
from engine_shim.definition.template import BRACES, TEMPLATE, find_placeholder_inside, read_whole
from engine_shim.definition.uses import ToolUse, uses_of_node
from utools.errors import UnknownTool
from utools.registry import ToolRegistry
from utools.schema.linear_pattern import find_slow_pattern

FORMATTER = "formatter"
BESIDE_GRAPH = ("description", "id", "inputs", "max_iterations", "max_visits", "name", "outputs", "timeout", "version")
"""Keys of a definition on which its graph does not depend."""


@dataclass(frozen=True, slots=True)
class CheckedWorkflow:
    """A workflow that can run with the tools of a registry, and what was found out about it on the way."""

    workflow: Workflow
    registry: ToolRegistry
    graph: Graph
    reachability: Reachability
    data: Mapping[str, Any]
    """The definition as a journal records it."""
    invoked: tuple[tuple[str, Workflow], ...] = ()
    """The workflows below it that are known before it runs, each with the place in it that leads there."""

    @property
    def definition(self) -> Definition:
        return self.workflow.definition

    @property
    def base(self) -> Path:
        return self.workflow.base

    @property
    def bounds(self) -> Bounds:
        return self.workflow.bounds

    @property
    def agent(self) -> str | None:
        return self.workflow.agent

    def external_of(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the run's `external`, from its inputs. DefinitionError for inputs that do not fit."""
        try:
            return external_of(self.definition, inputs, self.reachability.at_the_end)
        except DefinitionError as error:
            if error.where.startswith("external"):
                raise
            raise DefinitionErrors([self.workflow.locate(each) for each in problems_in(error)]) from None


def check(
    workflow: Workflow | CheckedWorkflow,
    registry: ToolRegistry,
    catalog: AgentCatalog | None = None,
    *,
    begun: bool = False,
) -> CheckedWorkflow:
    """Return the workflow, checked. DefinitionErrors with everything that `validate` finds, if it finds anything.

    `catalog` has the agents that its nodes may name; in what comes back each stands for what its definition says.
    `begun` says that its run began earlier, perhaps under an older version: it is refused for what makes it impossible
    alone, and not for a fault that it may never come to.
    """
    if isinstance(workflow, CheckedWorkflow):
        if workflow.registry is registry:
            return workflow
        workflow = workflow.workflow
    found = examine(workflow, registry, catalog, begun=begun)
    refuse(found.problems)
    assert found.checked is not None  # without problems there is a graph
    return found.checked


def validate(workflow: Workflow, registry: ToolRegistry, catalog: AgentCatalog | None = None) -> list[Problem]:
    """Return every fault that can be found without running; empty when there is none."""
    return list(examine(workflow, registry, catalog).problems)


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found in a workflow. `workflow` has its agents filled in. `warnings` are of faults in calls that need
    not be made, or may fail, and of inputs that a run may be started without. `invoked` are the workflows below it that
    could be read, each with the place in this one that leads to it."""

    workflow: Workflow
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    invoked: tuple[tuple[str, Workflow], ...]
    checked: CheckedWorkflow | None
    outputs: NodeOutputs
    """What the outputs of its nodes can hold."""


def examine(
    workflow: Workflow, registry: ToolRegistry, catalog: AgentCatalog | None = None, *, begun: bool = False
) -> Examination:
    """Return all that is to be found in a workflow, and in those that it invokes."""
    seen: list[_Checker] = []
    checker = _Checker(workflow, _Host(registry, catalog or AgentCatalog(())), seen, begun=begun)
    workflow = checker.workflow
    problems = tuple(by_line(dict.fromkeys(map(workflow.locate, checker.find_problems()))))
    warnings = [*map(workflow.locate, checker.warnings)]
    for below in seen[1:]:
        located = map(below.workflow.locate, below.warnings)
        warnings += [workflow.locate(Problem(below.entry, str(each))) for each in located]
    if checker.reachability is not None:
        warnings += map(workflow.locate, doubtful_inputs(workflow.definition, checker.reachability.at_the_end))
    invoked = tuple((each.entry, each.workflow) for each in seen[1:])
    checked = None
    if checker.graph is not None and checker.reachability is not None:
        data = workflow.as_json()
        checked = CheckedWorkflow(workflow, registry, checker.graph, checker.reachability, data, invoked)
    return Examination(workflow, problems, tuple(dict.fromkeys(warnings)), invoked, checked, checker.outputs)


def examine_parts(
    workflow: Workflow, faults: Sequence[Problem], registry: ToolRegistry, catalog: AgentCatalog
) -> Examination:
    """Return the faults of a definition's form, and those of the parts without one. `workflow` has these parts alone.

    Of the graph nothing is said where a part of it is missing.
    """
    has_graph = all(each.where.partition("/")[0] in BESIDE_GRAPH for each in faults)
    missing = {"/".join(each.where.split("/")[:2]) for each in faults if each.where.startswith("nodes/")}
    checker = _Checker(workflow, _Host(registry, catalog), [], begun=False)
    found = checker.find_problems() if has_graph else checker.find_local_problems()
    sound = (each for each in found if "/".join(each.where.split("/")[:2]) not in missing)
    problems = by_line(dict.fromkeys([*faults, *map(checker.workflow.locate, sound)]))
    return Examination(checker.workflow, tuple(problems), (), (), None, checker.outputs)


class _Host(NamedTuple):
    """What definitions are checked against."""

    registry: ToolRegistry
    catalog: AgentCatalog


class _Checker:
    """Checks a workflow, and those that it invokes, each once: many workflows may invoke one, or each other in a
    circle. `entry` is the place in the first of them that leads to this one."""

    def __init__(
        self, workflow: Workflow, host: _Host, seen: "list[_Checker]", entry: str = "", *, begun: bool
    ) -> None:
        self.written, self.entry = workflow, entry
        self.workflow, self._of_agents = fill_workflow(workflow, host.catalog)
        workflow = self.workflow
        self.graph: Graph | None = None
        self.reachability: Reachability | None = None
        self.outputs = NodeOutputs(workflow.definition, self._output_schema, self._outputs_below, self._may_be_skipped)
        self._host, self._registry, self._seen, self._begun = host, host.registry, seen, begun
        self._below: dict[str, _Checker] = {}
        self.warnings: list[Problem] = []
        seen.append(self)

    def find_problems(self) -> Iterator[Problem]:
        yield from self.find_local_problems()
        yield from self._find_graph_problems()

    def find_local_problems(self) -> Iterator[Problem]:
        """Yield what is wrong with a part, whatever the others are."""
        workflow, definition, nodes = self.workflow, self.workflow.definition, self.workflow.nodes.keys()
        try:
            schema = input_schema(definition)
            slow = find_slow_pattern(schema.schema) if schema is not None and not self._begun else None
            yield from () if slow is None else [Problem(f"inputs{slow[0]}", slow[1])]
        except DefinitionError as error:
            yield from problems_in(error)
        yield from self._of_agents
        for index, node in enumerate(definition.nodes):
            yield from self._check_node(node, f"nodes/{index}", workflow, nodes)
            for use in uses_of_node(node, f"nodes/{index}/config", (INVOKE,)):
                yield from self._check_invoked(use)
        yield from unknown_references(definition, "outputs", nodes)
        yield from exposed_secrets(definition)
        yield from () if self._begun else contradicted_secrets(definition)

    def _find_graph_problems(self) -> Iterator[Problem]:
        definition = self.workflow.definition
        if not self._begun:
            yield from check_output_types(definition, self.outputs)
            for is_certain, problem in check_tool_calls(definition, self._registry, self.outputs.goes_on):
                if is_certain:
                    yield problem
                else:
                    self.warnings.append(problem)
        try:
            self.graph = graph_of(definition)
            self.reachability = reachability_of(self.graph)
            yield from unmet_references(definition, self.graph, self.reachability)
        except DefinitionError as error:
            yield from problems_in(error)

    def _output_schema(self, code: str) -> Any:
        try:
            return self._registry.get(code).output_schema
        except UnknownTool:
            return None

    def _may_be_skipped(self, code: str) -> bool:
        """Return whether each call of a tool is a write that may be in doubt, so that a person may skip it."""
        try:
            tool = self._registry.get(code)
        except UnknownTool:
            return False
        return tool.effect == "write" and not tool.idempotent

    def _outputs_below(self, node: Node) -> NodeOutputs | None:
        below = self._below.get(str(node.config.get("workflow")))
        return None if below is None else below.outputs

    def _check_node(self, node: Node, where: str, workflow: Workflow, nodes: Set[str]) -> Iterator[Problem]:
        try:
            self._registry.get(node.tool)
        except UnknownTool as error:
            own = "" if error.near or error.refusal else "; tools of your own are named in `tools` of agent-core.yaml"
            yield Problem(f"{where}/tool", f"{error}{own}")
            return
        if node.timeout is not None and self._registry.get(node.tool).awaits:
            message = f"{node.tool} ends by the time in its config: say seconds there, and leave out the timeout"
            yield Problem(f"{where}/timeout", str(DefinitionError(message, value=node.timeout)))
        if node.approval != "never" and self._registry.get(node.tool).effect == "nested":
            message = f"{node.tool} is a run of its own: set the approval of the tools that it uses"
            yield Problem(f"{where}/approval", message)
        yield from self._check_foreach(node, f"{where}/foreach")
        where = f"{where}/config"
        if node.tool == FORMATTER and (half := find_placeholder_inside(node.config.get(TEMPLATE))):
            message = (
                f"{half}: placeholders are not filled in inside a template; give the value in data, and use its name"
            )
            yield Problem(f"{where}/{TEMPLATE}", message)
            return
        unknown = list(unknown_references(workflow.definition, where, nodes))
        later = {each.where for each in workflow.definition.placeholders_by_value[where]}
        schema = self._registry._schema(node.tool)
        describe = partial(self._registry._policy.describe_preset, node.tool)
        faults = [*unknown, *faults_beside_placeholders(schema, node.config, where, later, describe)]
        yield from faults
        if node.tool == AGENT:
            uses = uses_of_node(node, where, (AGENT,)) if workflow.bounds.from_http else ()
            if named := [problem for use in uses for problem in find_prompt_files(use.config, use.where)]:
                yield from named
                return
            sound = without_faulty_keys(node, {each.where.removeprefix(f"{where}/").split("/")[0] for each in faults})
            yield from check_agents(sound, where, self._registry, workflow.base, with_tools=not self._begun)
            yield from unvouched_text(sound, where, workflow.definition)

    def _check_foreach(self, node: Node, where: str) -> Iterator[Problem]:
        """Yield what is wrong with the list of a node that calls its tool for each item."""
        if node.foreach is None:
            unused = sorted(node.model_fields_set & {"max_parallel", "on_item_error"})
            message = "needs foreach, the list whose items it is about"
            yield from (Problem(where.replace("foreach", key), f"{key} {message}") for key in unused)
            return
        unknown = list(unknown_references(self.workflow.definition, where, self.workflow.nodes.keys()))
        yield from unknown
        if isinstance(node.foreach, str) and not unknown and read_whole(node.foreach) is None:
            yield Problem(where, "give a list, or one placeholder that gives it, such as {{nodes.search.found}}")

    def _check_invoked(self, use: ToolUse) -> Iterator[Problem]:
        """Yield what is wrong with the workflow that a use names, and with the inputs that it gives.

        Those workflows are checked before anything runs as well: an agent may write files.
        """
        file = use.config.get("workflow")
        if not isinstance(file, str) or BRACES in file:  # which one it is, shows only in the run
            return
        if file not in self._below:
            yield from self._enter(use, file, f"{use.where}/workflow")
        checker = self._below.get(file)
        if checker is not None and not self._begun and not (use.by_agent and "inputs" not in use.config):
            always_run = checker.reachability.at_the_end if checker.reachability else frozenset[str]()
            yield from invoked_input_faults(use, checker.workflow.definition, always_run)

    def _enter(self, use: ToolUse, file: str, where: str) -> Iterator[Problem]:
        """Read the workflow of a file, and check it unless that was done already."""
        try:
            below = load_invoked(use.config, self.workflow.base, self.workflow.bounds)
        except DefinitionError as error:
            yield from (Problem(where, str(each)) for each in problems_in(error))
            return
        known = next((each for each in self._seen if each.written.definition == below.definition), None)
        if known is not None:
            self._below[file] = known
            return
        made = _Checker(below, self._host, self._seen, self.entry or where, begun=self._begun)
        self._below[file] = made
        found = dict.fromkeys(map(made.workflow.locate, made.find_problems()))
        yield from (Problem(where, str(each)) for each in found)
