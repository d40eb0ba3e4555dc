"""HostCheck: what a definition needs of its host, and the host does not give: models, keys, secrets, variables."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent_core.run.secrets import Secrets
from engine_shim.definition.errors import Problem
from engine_shim.definition.load import Workflow
from engine_shim.definition.secret_refs import secret_refs
from engine_shim.runs.models import HostModels
from utools.errors import DefinitionError, ToolError
from utools.registry import ToolRegistry

Invoked = Sequence[tuple[str, Workflow]]
"""The workflows below one that are known before it runs, each with the place in it that leads there."""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """The host's tools, secrets and models. What it finds has its place in the first workflow."""

    registry: ToolRegistry
    secrets: Secrets
    models: HostModels

    def problems(self, workflow: Workflow, invoked: Invoked = ()) -> list[Problem]:
        """What the host refuses to give, or does not know; keys and values may be missing."""
        return list(_of_all(workflow, invoked, self._refused))

    def warnings(self, workflow: Workflow, invoked: Invoked = ()) -> list[Problem]:
        """What a run needs and this host lacks: another one may have it."""
        return list(_of_all(workflow, invoked, self._lacking))

    def run_problems(self, workflow: Workflow, invoked: Invoked = ()) -> list[Problem]:
        """Why a run cannot start here."""
        return list(_of_all(workflow, invoked, self._in_the_way))

    def _refused(self, workflow: Workflow) -> Iterator[Problem]:
        yield from self.models.problems(workflow.definition, workflow.base)
        yield from (problem for name, problem in self._missing_secrets(workflow) if name not in self.secrets.names)

    def _lacking(self, workflow: Workflow) -> Iterator[Problem]:
        yield from self.models.keyless(workflow.definition, workflow.base)
        yield from _unset_variables(workflow)
        yield from (problem for name, problem in self._missing_secrets(workflow) if name in self.secrets.names)

    def _in_the_way(self, workflow: Workflow) -> Iterator[Problem]:
        yield from self.models.unaskable(workflow.definition, workflow.base)
        yield from _unset_variables(workflow)
        yield from (problem for _, problem in self._missing_secrets(workflow))

    def _missing_secrets(self, workflow: Workflow) -> Iterator[tuple[str, Problem]]:
        """The secrets that tools cannot get, by name: not allowed, or allowed and not set."""
        schemas = {tool.code: self.registry.schema(tool.code).schema for tool in self.registry.all()}
        for where, name in secret_refs(workflow.definition, schemas):
            try:
                self.secrets(name)
            except ToolError as error:
                yield name, Problem(where, str(error))


def _unset_variables(workflow: Workflow) -> Iterator[Problem]:
    for index, entry in enumerate(workflow.definition.env):
        if not isinstance(entry, str) and entry.plain and entry.name not in os.environ:
            yield Problem(f"env/{index}", str(DefinitionError("this variable is not set", value=entry.name)))


def _of_all(workflow: Workflow, invoked: Invoked, find: Callable[[Workflow], Iterable[Problem]]) -> Iterator[Problem]:
    yield from map(workflow.locate, find(workflow))
    for entry, below in invoked:
        yield from (workflow.locate(Problem(entry, str(below.locate(each)))) for each in find(below))
