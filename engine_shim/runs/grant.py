"""Grant: what the operator of a host gives to definitions: to those in its own files, and to those from HTTP."""

from dataclasses import dataclass, field, replace

from agent_core.journal.reader import RecordedRun
from agent_core.run.secrets import Secrets
from engine_shim.definition.load import UNBOUND, Bounds, Workflow
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
        """The workflow as one of those that this is given to."""
        return replace(workflow, bounds=self.bounds)


@dataclass(frozen=True, slots=True)
class Grants:
    """What a host gives to the definitions in its own files, and to those that came over HTTP."""

    own: Grant
    http: Grant

    @classmethod
    def alike(cls, registry: ToolRegistry, secrets: Secrets, models: HostModels) -> "Grants":
        """The same for both kinds, in a program that has no configuration."""
        grant = Grant(registry, secrets, models)
        return cls(grant, grant)

    def of(self, *, from_http: bool) -> Grant:
        """What is given to one kind of definitions."""
        return self.http if from_http else self.own

    def of_run(self, run: RecordedRun) -> Grant:
        """What is given to a recorded run."""
        return self.of(from_http=run.from_http)

    async def close(self) -> None:
        """Close the connections of all models."""
        for each in (self.own, self.http):
            await each.models.close()
