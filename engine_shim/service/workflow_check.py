"""read_checked(): the workflow of a file in a directory that is served, with what is given to it."""

from pathlib import Path

from agent_core.agents.catalog import AgentCatalog
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model_refs import model_refs
from engine_shim.definition.validate import CheckedWorkflow, check
from engine_shim.host.protected import protect_models
from engine_shim.host.saved_files import SavedFiles
from engine_shim.runs.grant import Grants


def read_checked(file: Path, grants: Grants, agents: AgentCatalog | None) -> CheckedWorkflow:
    """Return the workflow of a file, with what is given to it. DefinitionErrors for all its faults."""
    grant = grants.http if SavedFiles(file.parent).has(file) else grants.own
    checked = check(grant.bind(load_workflow(file)), grant.registry, agents)
    protect_models((name for _, name, _ in model_refs(checked.definition)), file.parent)
    return checked
