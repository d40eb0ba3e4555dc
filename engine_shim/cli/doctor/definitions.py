"""The tools, agents and workflows of a host: whether their definitions are sound, and the keys of their models set."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent_core.agents.catalog import AgentCatalog
from agent_core.models.apis import CHAT
from agent_core.models.client import ModelInfo
from agent_core.models.providers import Providers
from engine_shim.cli import output
from engine_shim.cli.doctor.finding import Finding, find_faults, list_problems
from engine_shim.cli.doctor.triggers import check_triggers
from engine_shim.definition.errors import message_of
from engine_shim.definition.model_refs import model_refs
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.host.providers import open_providers
from engine_shim.host.registry import build_registry
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.open_grants import agents_reach, open_grants
from engine_shim.runs.prepare import with_runs
from engine_shim.service.workflow_check import read_checked
from engine_shim.service.workflows import WorkflowCatalog
from utools.registry import ToolRegistry

Options = Mapping[str, Any]
Model = tuple[Path, str, Options]
"""The directory that its paths start from, its name, and the options that it is reached by."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The names of the parts of a host, or of one of its tenants."""

    tenant: str | None

    def __call__(self, part: str) -> str:
        return part if self.tenant is None else f"{part} of {self.tenant}"


def check_definitions(config: HostConfig) -> Iterator[Finding]:
    """Yield what is said of the tools, agents, workflows and models of a host, or of a tenant."""
    part = Parts(config.tenant)
    try:
        registry = with_runs(build_registry(config), None)
    except DefinitionError as error:
        yield from find_faults(part("tools"), error)
        return
    yield Finding(part("tools"), "ok", output.count(len(registry.all()), "tool"))
    pinned = {*(f"mcp.{name}" for name in config.mcp_servers), *config.remote}  # check_sources tells of these
    for left_out in registry._left_out if config.tenant is None else ():
        if left_out.name not in pinned:
            yield Finding(left_out.name, "problem", f"left out: {left_out.where}: {left_out.why}")
    catalog: AgentCatalog | None = None
    try:
        catalog = build_catalog(config, registry)
        yield Finding(part("agents"), "ok", ", ".join(each.name for each in catalog.list()) or "none")
        for name, faults in catalog.left_out.items():
            named = (replace(each, message=f"{name}: {each.message}") for each in faults)
            yield from list_problems(part("agents"), named)
    except DefinitionError as error:
        yield from find_faults(part("agents"), error)
    found, loaded = _load_workflows(config, registry, catalog)
    yield from found
    workflows = [each for versions in loaded.list().values() for each in versions.values()]
    if found[0].status == "ok":
        yield from check_triggers(config, loaded, part=part("triggers"), hooks=part("webhooks"))
    models = [*_models_of_agents(config, catalog), *_models_of_workflows(workflows)]
    judged = list(_check_models(config, part("model"), models))
    yield from judged
    yield from _check_needs(config, registry, workflows, {each.message.partition(": ")[2] for each in judged})


def _load_workflows(
    config: HostConfig, registry: ToolRegistry, catalog: AgentCatalog | None
) -> tuple[list[Finding], WorkflowCatalog]:
    part, directory = Parts(config.tenant)("workflows"), config.base / config.workflows
    check_file = partial(read_checked, grants=open_grants(config, registry, is_served=True), agents=catalog)
    workflows = WorkflowCatalog(directory, check_file, registry._is_due_to_left_out)
    if "workflows" in config.model_fields_set and not directory.is_dir():
        return [Finding(part, "problem", f"{config.at('workflows')}: there is no directory {directory}")], workflows
    try:
        workflows.load()
    except DefinitionError as error:
        return find_faults(part, error), workflows
    names = ", ".join(f"{name}@{version}" for name, versions in workflows.list().items() for version in versions)
    left_out = (each for faults in workflows.left_out.values() for each in faults)
    return [Finding(part, "ok", names or "none"), *list_problems(part, left_out)], workflows


def _models_of_agents(config: HostConfig, catalog: AgentCatalog | None) -> Iterator[Model]:
    if config.summary_model is not None:
        yield config.base, config.summary_model, {}
    for agent in catalog.list() if catalog is not None else ():
        options, _ = catalog.config_of(agent.name) if catalog is not None else ({}, None)
        yield config.base, options["model"], options
        yield from ((config.base, name, {}) for name in options.get("fallback_models") or ())


def _models_of_workflows(workflows: Iterable[CheckedWorkflow]) -> Iterator[Model]:
    for checked in workflows:
        for each in (checked.workflow, *(below for _, below in checked.invoked)):
            yield from ((each.base, name, options) for _, name, options in model_refs(each.definition))


def _check_models(config: HostConfig, part: str, models: Iterable[Model]) -> Iterator[Finding]:
    """Yield each model once, however it is reached: whether it can be asked from here."""
    known: set[tuple[Any, ...]] = set()
    reach = agents_reach(config)
    for base, name, options in models:
        key = (base, name, *(options.get(option) for option in ("base_url", "api_key_env", "api")))
        if key not in known:
            known.add(key)
            providers = open_providers(config, base, reach=reach)
            yield _check_model(providers, part, name, options)


def _check_model(providers: Providers, part: str, name: str, options: Options) -> Finding:
    try:
        providers.check(name, options)
    except DefinitionError as error:
        return Finding(part, "problem", f"{name}: {message_of(error)}")
    if missing := providers.explain_missing_key(name, options):
        return Finding(part, "problem", f"{name}: {missing}", "in the environment, or in .env beside agent-core.yaml")
    if keyless := providers.explain_keyless(name, options):
        return Finding(part, "warning", f"{name}: {keyless}", "fine for an endpoint that wants none")
    given = [each for each in providers.key_variables(name, options) if os.environ.get(each)]
    info = providers.info(name, options)
    said = "; ".join([f"{name}: {f'{given[0]} is set' if given else 'it needs no key'}", *_describe_model(info)])
    facts = {key: value for key, value in asdict(info).items() if key != "name" and value is not None}
    return Finding(part, "ok", said, providers.explain_api(name, options) or "", facts)


def _describe_model(info: ModelInfo) -> Iterator[str]:
    """Yield what is known of a model, as far as its author may want to know."""
    if info.api not in (None, CHAT):
        yield f"asked by its vendor's own API, {info.api}"
    if info.context_window is not None:
        yield f"a window of {info.context_window:,} tokens"
    able = {"thinks": info.reasoning, "sees pictures": info.vision, "is cached": info.caching}
    if has := [what for what, is_able in able.items() if is_able]:
        yield ", ".join(has)


def _check_needs(
    config: HostConfig, registry: ToolRegistry, workflows: Iterable[CheckedWorkflow], told: set[str]
) -> Iterator[Finding]:
    """Yield what else the workflows need of the host and it does not give: secrets and variables."""
    needs, part = HostCheck(open_grants(config, registry).own), Parts(config.tenant)("workflows")
    for checked in workflows:
        problems = [each for each in needs.problems(checked.workflow, checked.invoked) if each.message not in told]
        lacking = [each for each in needs.warnings(checked.workflow, checked.invoked) if each.message not in told]
        yield from list_problems(part, problems)
        yield from list_problems(part, lacking, "warning")
