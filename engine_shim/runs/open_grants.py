"""open_grants(): what a host by its configuration gives to definitions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from agent_core.agents.turn_tool import turn_tool
from agent_core.journal.record import Tape
from agent_core.models.client import ModelClient
from agent_core.models.reach import ModelReach
from engine_shim.definition.load import UNBOUND, Bounds
from engine_shim.host.config import HostConfig
from engine_shim.host.lent_tools import lend_tools
from engine_shim.host.saved_files import is_saved
from engine_shim.host.variables import Variables
from engine_shim.runs.grant import Grant, Grants
from engine_shim.runs.models import HostModels, HowReached
from engine_shim.store.open import cipher_of, shared_database
from engine_shim.store.run_store import RunStore
from utools.defaults import host_context_store
from utools.registry import ToolRegistry
from utools.sources.http_call import HttpPolicy
from utools.sources.mcp.config import McpServer


def open_grants(
    config: HostConfig,
    registry: ToolRegistry,
    model: ModelClient | None = None,
    tape_of: Callable[[str], Tape] | None = None,
    *,
    is_served: bool = False,
) -> Grants:
    """Return what the host gives. `is_served` says that others start the runs of its own files, with inputs of
    theirs."""
    secrets, of_tenant = config.secrets(), config.tenant is not None
    bounded = of_tenant or is_served

    def open_models(reach: ModelReach | None) -> HostModels:
        return HostModels(model, **_reached_of(config), tape_of=tape_of, reach=reach)

    others = find_homes_of_others(config)

    def open_http() -> Grant:
        lent = registry if of_tenant else registry._stricter(lend_tools(config.policy()))
        bounds = Bounds(True, [config.base / config.workflows], others)
        return Grant(lent, secrets, open_models(http_reach(config)), list_variables(config, others=False), bounds)

    own_bounds = Bounds(False, find_home(config), others, is_saved) if bounded else UNBOUND
    own_models = open_models(own_reach(config, bounded=bounded))
    own = Grant(registry, secrets, own_models, list_variables(config, others=not of_tenant), own_bounds)
    return Grants(own, open_http)


def name_model(config: HostConfig, store: RunStore, name: str) -> ModelClient:
    """Return the client of a model that stands in for all others. DefinitionError where it cannot be asked."""
    return HostModels(**_reached_of(config), tape_of=store.journal.load).at(Path())(name, {})


def open_turn_grant(
    config: HostConfig, registry: ToolRegistry, store: RunStore, model: ModelClient | str | None
) -> Grant:
    """Return what the host gives to the turns of its agents, which only its operator defines.

    A `model` that is named stands in the agents' definitions; a client answers for every name.
    """
    models = HostModels(
        None if isinstance(model, str) else model,
        **_reached_of(config),
        tape_of=store.journal.load,
        reach=agents_reach(config) if model is None else None,
    )
    conversations = host_context_store(config.tenant, database=shared_database(store), cipher=cipher_of(store))
    return Grant(registry._with_private(turn_tool(conversations, store.journal)), config.secrets(), models)


def _reached_of(config: HostConfig) -> HowReached:
    """Return how a host's models are reached, by its configuration."""
    return {
        "base_urls": config.named_urls,
        "default_provider": config.default_provider,
        "endpoints": config.endpoints,
        "home": config.base,
    }


def own_reach(config: HostConfig, *, bounded: bool) -> ModelReach | None:
    """Return the models of a host's own files. Those of a tenant ask only the endpoints that the operator names."""
    named = config.named_urls if config.tenant is not None or config.model_endpoints is not None else None
    if not bounded:
        names = _named_endpoints(config)
        return None if named is None else ModelReach(within=[Path("/")], endpoints=named, names=names)
    parameters = None if config.tenant is None else config.model_parameters
    homes = find_home(config), find_homes_of_others(config)
    names = _named_endpoints(config)
    return ModelReach(list_files(config), *homes, named, parameters=parameters, names=names)


def agents_reach(config: HostConfig) -> ModelReach | None:
    """Return the models of a host's agents, which only its operator defines: any file, and the endpoints of its own
    files."""
    own = own_reach(config, bounded=False)
    return own if own is None else replace(own, files=["*"])


def http_reach(config: HostConfig) -> ModelReach:
    """Return the models of what came over HTTP: what the operator lists; of the host itself the vendors too."""
    vendors = config.tenant is None and config.model_endpoints is None
    parameters, names = config.model_parameters, _named_endpoints(config)
    named = config.named_urls
    return ModelReach(list_files(config), (), (), named, vendors=vendors, parameters=parameters, names=names)


def _named_endpoints(config: HostConfig) -> Collection[str] | None:
    """Return the host's own endpoints that may be asked: all by the host itself, by a tenant those that its
    `model_endpoints` name."""
    return None if config.tenant is None else [name for name in config.endpoints if name in config.named_urls]


def list_files(config: HostConfig) -> list[str]:
    """Return the globs of files that definitions may name as models, from the root of the file system."""
    return [str((config.base / glob).absolute()) for glob in config.model_files]


def find_home(config: HostConfig) -> list[Path]:
    """Return where the files lie that the definitions of a host or tenant may name."""
    return [config.base] if config.tenant is None else [config.base / config.workflows, config.base / config.agents]


def find_homes_of_others(config: HostConfig) -> list[Path]:
    """Return the directories of other tenants, as far as they are theirs alone."""
    own = {path.resolve() for path in find_home(config)}
    around = {above for each in own for above in (each, *each.parents)}
    homes = _list_homes(config)
    return [path for name in homes if name != config.tenant for path, real in homes[name] if real not in around]


def _list_homes(config: HostConfig) -> Mapping[str, list[tuple[Path, Path]]]:
    """Return the directories that each tenant names, as they are named below the base and as they are on disk; read
    once for a host and all its tenants."""
    if not config._homes:
        for name, each in config.tenants.items():
            named = filter(None, (each.root, each.workflows, each.agents, each.triggers))
            config._homes[name] = [(path, path.resolve()) for path in (config.base / given for given in named)]
    return config._homes


def list_variables(config: HostConfig, *, others: bool) -> Variables:
    """Return the plain variables that definitions may read: the listed ones, perhaps with others."""
    configuring = _find_configuring(config)

    def is_own(name: str) -> bool:
        return name in configuring or config.is_own(name)

    return Variables(frozenset(config.env), is_own, others=others, has_list=config.file is not None)


def _find_configuring(config: HostConfig) -> frozenset[str]:
    """Return the variables that the configuration names for servers, sources, models and webhooks, and the store's
    URL: no definition reads them."""
    sources: list[McpServer | HttpPolicy] = [*config.mcp_servers.values(), *config.remote.values()]
    sources += config.openapi.values()
    tokens = {name for each in sources for name in (each.token_env, *each.secret_headers.values()) if name}
    started = {name for each in config.mcp_servers.values() for name in each.env}
    endpoints = [config.named_urls, *(each.model_endpoints or {} for each in config.tenants.values())]
    keys = {name for each in endpoints for name in each.values() if name}
    sent = {name for each in config.endpoints.values() for name in each.variables}
    return frozenset({"REDIS_URL", *tokens, *started, *keys, *sent, *config.signing})
