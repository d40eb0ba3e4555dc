"""Grant: what the operator of a host gives to definitions: to those in its own files, and to those from HTTP."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from agent_core.journal.facts import RecordedRun
from agent_core.run.secrets import Secrets
from engine_shim.definition.load import UNBOUND, Bounds, Workflow
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.host.variables import Variables
from engine_shim.runs.models import HostModels
from utools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Grant:
    """Tools, secrets, plain variables, models, and where invoked workflows may lie."""

    registry: ToolRegistry
    secrets: Secrets
    models: HostModels
    variables: Variables = field(default_factory=Variables)
    bounds: Bounds = UNBOUND

    def bind(self, workflow: Workflow) -> Workflow:
        """Return the workflow as one of those that this is given to."""
        return replace(workflow, bounds=self.bounds)


@dataclass(frozen=True)
class Grants:
    """What a host gives to the definitions in its own files, to those that came over HTTP, and to the turns of its
    agents, if it has any."""

    own: Grant
    open_http: Callable[[], Grant]
    turns: Grant | None = None

    @cached_property
    def http(self) -> Grant:
        """What definitions that came over HTTP are given. It is opened at first use: a command has none of them."""
        return self.open_http()

    @classmethod
    def alike(cls, registry: ToolRegistry, secrets: Secrets, models: HostModels) -> "Grants":
        """Return the same for both kinds, in a program that has no configuration."""
        grant = Grant(registry, secrets, models)
        return cls(grant, lambda: grant)

    def of_workflow(self, workflow: Workflow | CheckedWorkflow) -> Grant:
        """Return what is given to a workflow."""
        return self._choose(from_http=workflow.bounds.from_http, is_turn=workflow.agent is not None)

    def of_run(self, run: RecordedRun) -> Grant:
        """Return what is given to a recorded run."""
        return self._choose(from_http=run.from_http, is_turn=run.turn is not None)

    def _choose(self, *, from_http: bool, is_turn: bool) -> Grant:
        if is_turn and self.turns is not None:
            return self.turns
        return self.http if from_http else self.own

    async def warm_up(self) -> None:
        """Build what a first question needs; once is enough for all models of the process."""
        await self.own.models.warm_up()

    async def close(self) -> None:
        """Close the connections of all models."""
        for each in (self.own, vars(self).get("http"), self.turns):
            if each is not None:
                await each.models.close()
