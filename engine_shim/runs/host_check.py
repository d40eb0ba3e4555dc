"""HostCheck: what a definition or a recorded run needs of its host, and the host does not give."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_core.journal.chain import is_finished
from agent_core.journal.facts import RecordedRun
from agent_core.journal.reader import read_runs
from agent_core.journal.record import Tape
from agent_core.models.targets import locate_refusal
from agent_core.outputs import Json
from engine_shim.definition.errors import Problem
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import ROOT, read_definition
from engine_shim.definition.secret_refs import secret_refs
from engine_shim.definition.template import placeholders
from engine_shim.runs.grant import Grant
from engine_shim.runs.models import HostModels
from engine_shim.runs.small_models import find_missing_examples
from utools.errors import DefinitionError, ToolError
from utools.registry import ToolRegistry

Invoked = Sequence[tuple[str, Workflow]]
"""The workflows below one that are known before it runs, each with the place in it that leads there."""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Checks against what is granted. What it finds has its place in the first workflow."""

    grant: Grant

    @property
    def registry(self) -> ToolRegistry:
        return self.grant.registry

    @property
    def models(self) -> HostModels:
        return self.grant.models

    def problems(self, workflow: Workflow, invoked: Invoked = ()) -> list[Problem]:
        """Return what the host refuses to give, or does not know; keys and values may be missing."""
        return list(_of_all(workflow, invoked, self._refused))

    def warnings(self, workflow: Workflow, invoked: Invoked = ()) -> list[Problem]:
        """Return what a run needs and this host lacks: another one may have it."""
        return list(_of_all(workflow, invoked, self._lacking))

    def run_problems(self, workflow: Workflow, invoked: Invoked = ()) -> list[Problem]:
        """Return why a run cannot start here."""
        return list(_of_all(workflow, invoked, self._in_the_way))

    def recorded_problems(self, tape: Tape, base: Path, not_needed: Set[str] = frozenset()) -> list[Problem]:
        """Return why a recorded run cannot go on here: a tool, unless it is not needed, a model, a key or a secret is
        missing. A finished run needs none."""
        if is_finished(tape, ROOT):
            return []
        runs = read_runs(tape)
        unfinished = {path: run for path, run in runs.items() if not is_finished(tape, path)}
        return [
            *self._missing_tools(runs, not_needed),
            *self.models.unaskable(read_definition(runs[ROOT].definition), base),
            *self._unaskable_agents(unfinished, base),
            *self._missing_secrets_of(unfinished, base),
            *self._widened_presets(unfinished),
        ]

    def _widened_presets(self, runs: Mapping[str, RecordedRun]) -> Iterator[Problem]:
        """Values of recorded runs that the host's presets, as they are now, do not allow."""
        for path, run in runs.items():
            for code, tool in run.tools.items():
                bound = self.registry._policy.presets.get(code, {})
                given = [tool.get("preset", {}), _presets(tool["schema"])]
                given += [node.get("config", {}) for node in _nodes(run) if node["tool"] == code]
                for config in given:
                    for key in sorted(bound.keys() & config.keys()):
                        yield from self._widened(path, code, key, config[key])

    def _widened(self, path: str, code: str, key: str, value: Any) -> Iterator[Problem]:
        if any(True for _ in placeholders(value)):
            return
        for fault in self.registry.validate(code, {key: value}):
            if fault.pointer.split("/")[1:2] == [key]:
                yield Problem(path, f"{code}: {fault.message}{self.registry._policy.describe_preset(code, key)}")

    def _missing_secrets_of(self, runs: Mapping[str, RecordedRun], base: Path) -> Iterator[Problem]:
        for path, run in runs.items():
            if run.definition:
                workflow = Workflow(read_definition(run.definition), base)
                for _, problem in self._missing_secrets(workflow):
                    yield problem if path == ROOT else Problem(f"{path}: {problem.where}", problem.message)

    def _missing_tools(self, runs: Mapping[str, RecordedRun], not_needed: Set[str]) -> Iterator[Problem]:
        needed = {code for run in runs.values() for code in run.tools} - not_needed
        for code in sorted(code for code in needed if code not in self.registry):
            why = self.registry._refusal(code) or "was the run started with another configuration?"
            yield Problem("host configuration", f"this host has no tool {code!r}, which the run needs; {why}")

    def _unaskable_agents(self, runs: Mapping[str, RecordedRun], base: Path) -> Iterator[Problem]:
        """Yield the models of agents that have begun, whose names the definition may not show."""
        for path, run in runs.items():
            try:
                if not run.definition:
                    self.models.at(base)(run.config["model"], run.config)
            except DefinitionError as error:
                yield locate_refusal(error, f"{path}/config/model", run.config)

    def _refused(self, workflow: Workflow) -> Iterator[Problem]:
        yield from self.models.problems(workflow.definition, workflow.base)
        yield from self._refused_variables(workflow)
        yield from (problem for name, problem in self._missing_secrets(workflow) if not self.grant.secrets.allows(name))

    def _lacking(self, workflow: Workflow) -> Iterator[Problem]:
        yield from self.models.keyless(workflow.definition, workflow.base)
        yield from find_missing_examples(workflow, self.registry)
        yield from self._doubtful_variables(workflow)
        yield from (problem for name, problem in self._missing_secrets(workflow) if self.grant.secrets.allows(name))

    def _in_the_way(self, workflow: Workflow) -> Iterator[Problem]:
        yield from self.models.unaskable(workflow.definition, workflow.base)
        yield from self._unread_variables(workflow)
        yield from (problem for _, problem in self._missing_secrets(workflow))

    def _refused_variables(self, workflow: Workflow) -> Iterator[Problem]:
        """Plain variables that the definition may not read."""
        yield from _faults_of(self.grant.variables.check, workflow)

    def _unread_variables(self, workflow: Workflow) -> Iterator[Problem]:
        """Plain variables that cannot be read: they are not given, or not set."""
        yield from _faults_of(self.grant.variables.read, workflow)

    def _doubtful_variables(self, workflow: Workflow) -> Iterator[Problem]:
        """Plain variables that may be read, and are not set, or not listed by the operator."""
        refused = {each.where for each in self._refused_variables(workflow)}
        yield from (each for each in self._unread_variables(workflow) if each.where not in refused)
        for where, name in _plain_variables(workflow):
            if where not in refused and self.grant.variables.warns_of(name):
                yield Problem(where, f"list {name} in env of agent-core.yaml; what is listed there is read by intent")

    def _missing_secrets(self, workflow: Workflow) -> Iterator[tuple[str, Problem]]:
        """Yield the secrets that tools cannot get, by name: not allowed, or allowed and not set."""
        registry = self.grant.registry
        codes = [tool.code for tool in registry.all()]
        for where, name in secret_refs(workflow.definition, codes, lambda code: registry._schema(code).schema):
            try:
                self.grant.secrets(name)
            except ToolError as error:
                yield name, Problem(where, str(error))


def _nodes(run: RecordedRun) -> list[Json]:
    nodes: list[Json] = run.definition["nodes"] if run.definition else []
    return nodes


def _presets(schema: Json) -> Json:
    """Return the presets of the host that began the run."""
    properties: Json = schema.get("properties", {})
    return {key: rule["default"] for key, rule in properties.items() if isinstance(rule, dict) and "x-preset" in rule}


def _plain_variables(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the plain variables, each with its place."""
    for index, entry in enumerate(workflow.definition.env):
        if not isinstance(entry, str) and entry.plain:
            yield f"env/{index}", entry.name


def _faults_of(ask: Callable[[str], object], workflow: Workflow) -> Iterator[Problem]:
    for where, name in _plain_variables(workflow):
        try:
            ask(name)
        except DefinitionError as error:
            yield Problem(where, str(error))


def _of_all(workflow: Workflow, invoked: Invoked, find: Callable[[Workflow], Iterable[Problem]]) -> Iterator[Problem]:
    yield from map(workflow.locate, find(workflow))
    for entry, below in invoked:
        yield from (workflow.locate(Problem(entry, str(below.locate(each)))) for each in find(below))
