"""find_faults(): all that is wrong with a definition on a host, and what its author may not mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from agent_core.agents.catalog import AgentCatalog
from engine_shim.definition.errors import Problem, by_line
from engine_shim.definition.load import Workflow
from engine_shim.definition.validate import Examination, examine, examine_parts
from engine_shim.definition.warnings import find_warnings
from engine_shim.host.registry import undescribed_tools
from engine_shim.runs.host_check import HostCheck
from utools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Faults:
    """What `agent-core validate` says of a definition, and the examination that found it."""

    problems: Sequence[Problem]
    warnings: Sequence[Problem]
    examination: Examination


def find_faults(workflow: Workflow, faults: Sequence[Problem], check: HostCheck, catalog: AgentCatalog) -> Faults:
    """Return the faults of a workflow with the tools, agents and models of a host; `faults` are those of its form.

    Of one whose form is wrong there are no warnings.
    """
    registry = check.registry
    if faults:
        found = examine_parts(workflow, faults, registry, catalog)
        return Faults(by_line([*found.problems, *check.problems(workflow)]), (), found)
    found = examine(workflow, registry, catalog)
    workflow = found.workflow
    problems = by_line([*found.problems, *check.problems(workflow, found.invoked)])
    is_priced, presets = check.models.is_priced(workflow.base), registry._policy.presets
    unbounded = find_warnings(workflow.definition, is_priced, presets, partial(_has_tool, registry))
    doubts = [*map(workflow.locate, unbounded), *found.warnings, *check.warnings(workflow, found.invoked)]
    undescribed = [Problem("tools", each) for each in undescribed_tools(registry)]
    return Faults(problems, [*undescribed, *by_line(doubts)], found)


def _has_tool(registry: ToolRegistry, pattern: str) -> bool:
    """Return whether a glob fits a tool, also one that this host refuses, or whose source cannot be used now."""
    is_refused = any(fnmatchcase(code, pattern) for code in registry._refused)
    return is_refused or registry._refusal(pattern) is not None or bool(registry.matching([pattern]))
