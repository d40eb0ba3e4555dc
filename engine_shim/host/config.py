"""HostConfig: which tools, which root, which secrets and endpoints a host offers, and how far definitions may go."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, StringConstraints, ValidationError

from agent_core.models.endpoint.address import read_host
from agent_core.models.named_endpoint import OFFLINE, EndpointName, NamedEndpoint
from agent_core.models.vendors import VENDORS
from agent_core.run.secrets import Secrets
from engine_shim.definition.errors import DefinitionErrors, Problem, problems_of, refuse
from engine_shim.errors import DefinitionError
from engine_shim.host.lent_tools import lend_tools, without_files
from engine_shim.host.mask import MaskPattern, check_names
from engine_shim.host.notifications import CallbackConfig, LinkConfig, WebhookConfig
from engine_shim.host.own_variables import is_own
from engine_shim.host.patterns import ADDRESS, PATTERNS, TENANT
from utools.databases.store_address import StoreAddress, read_address
from utools.document import Document, read_document
from utools.host_policy import HostPolicy
from utools.schema.faults import hint
from utools.schema.host_keys import HostKeys
from utools.schema.model_faults import keys_of
from utools.secrets.key_formats import check_format
from utools.sources.mcp.config import McpServer
from utools.sources.openapi import OpenApi
from utools.sources.pinned_source import NAME
from utools.sources.remote import RemoteHost

KeyFormat = Annotated[str, AfterValidator(check_format)]


SourceName = Annotated[str, StringConstraints(pattern=NAME)]
TenantName = Annotated[str, StringConstraints(pattern=TENANT)]


class ExecutableTool(BaseModel):
    """Tools that a server executes by themselves, by code or glob, and whether a person has to let a call through."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    tool: str = Field(min_length=1)
    approval: Literal["never", "on_write", "always"] = "never"


class TenantConfig(HostKeys, BaseModel):
    """What a tenant of a server has otherwise than its host: directories, webhooks, globs of the tools that it may
    use, and what its definitions may read and reach. Without a `root` it has no tools of files."""

    bounds: ClassVar = ("secret_env", "model_endpoints", "allow_tools")

    root: str | None = None
    env: list[str] = []
    secret_env: list[str] | None = None
    model_files: list[str] = []
    model_parameters: list[str] = []
    model_endpoints: dict[str, str | None] | None = None
    presets: dict[str, dict[str, Any]] = {}
    agents: str | None = None
    workflows: str | None = None
    allow_tools: list[str] | None = None
    deny_tools: list[str] = []
    execute_tools: list[str | ExecutableTool] = []
    triggers: str | None = None
    webhooks: list[WebhookConfig] = []
    callbacks: CallbackConfig | None = None

    @property
    def signing(self) -> list[str]:
        """The variables with which what it is told is signed."""
        return _signing_of(self.webhooks, self.callbacks)


class TemporalConfig(BaseModel):
    """Where the workers of a host meet: a Temporal server, a namespace in it, and the queue of this host's runs. Hosts
    with other tools or another store have another queue.

    The timeouts are in seconds. `heartbeat_timeout` is how long a call may be silent before another worker takes it up,
    `task_timeout` how long a worker may take for the next step of a run, and `sticky_timeout` how long that step waits
    for the worker that knows the run, before any worker may begin the run's history anew. The `max_…` bound what one
    worker does at once; by default so much for each core, and 100 `max_activities`, which mostly wait.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    address: Annotated[str, StringConstraints(pattern=ADDRESS)] = "127.0.0.1:7233"
    namespace: Annotated[str, StringConstraints(min_length=1)] = "default"
    queue: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "agent-core"
    heartbeat_timeout: Annotated[float, Field(ge=1, le=3600)] = 2.5
    task_timeout: Annotated[float, Field(ge=1, le=120)] = 2.0
    sticky_timeout: Annotated[float, Field(ge=0.1, le=120)] = 1.0
    max_workflow_tasks: Annotated[int, Field(ge=2, le=1000)] | None = None
    max_activities: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_local_activities: Annotated[int, Field(ge=1, le=1000)] | None = None


class HostConfig(HostKeys, BaseModel):
    """The file's keys. `tools` are `file.py`, for all tools in it, `module:name` or `file.py:name`, each a Tool, a list
    of them, or a factory; `functions` likewise name typed functions, as tools for the nodes of workflows alone.

    `store` is where runs are stored, a file or a PostgreSQL URL, unless --store or AGENT_CORE_STORE says otherwise.
    `manifests` are files, directories of them, or globs. `presets` are values by tool and key, which definitions may
    only narrow; `allow_tools` and `deny_tools` are globs; `agents`, `workflows` and `triggers` are directories. `env`
    are variables that definitions may read; `model_files` are globs of files that definitions over HTTP may name as
    models, `model_parameters` the vendors' own parameters that those and tenants' files may send (`extra`), and
    `model_endpoints`, each with the variable of its key or null, are all that definitions may ask. A server
    has `tenants`, tells `webhooks` of its runs, and those whom its callers name by `callbacks`, makes `decision_links`,
    and executes by themselves the tools that the globs `execute_tools` name. With the `engine` temporal its runs are
    driven by the workers at `temporal`. Paths start from the directory of the configuration.
    """

    bounds: ClassVar = ("allow_tools", "model_endpoints")

    tools: list[str] = []
    functions: list[str] = []
    manifests: list[str] = []
    mcp_servers: dict[SourceName, McpServer] = {}
    openapi: dict[str, OpenApi] = {}
    remote: dict[SourceName, RemoteHost] = {}
    root: str | None = "."
    store: str | None = Field(default=None, min_length=1)
    encrypt: bool = False
    presets: dict[str, dict[str, Any]] = {}
    allow_tools: list[str] | None = None
    deny_tools: list[str] = []
    secret_env: list[str] = []
    env: list[str] = []
    unmasked_formats: list[KeyFormat] = []
    mask: Annotated[list[MaskPattern], AfterValidator(check_names)] = []
    base_urls: dict[str, str] = {}
    endpoints: dict[EndpointName, NamedEndpoint] = {}
    model_endpoints: dict[str, str | None] | None = None
    model_files: list[str] = []
    model_parameters: list[str] = []
    default_provider: str = "openai"
    summary_model: str | None = None
    summary_prompt: str | None = None
    max_conversation_tokens: Annotated[int, Field(ge=1)] | None = None
    agents: str = "agents"
    workflows: str = "workflows"
    triggers: str = "triggers"
    webhooks: list[WebhookConfig] = []
    callbacks: CallbackConfig | None = None
    decision_links: LinkConfig | None = None
    execute_tools: list[str | ExecutableTool] = []
    tenants: dict[TenantName, TenantConfig] = {}
    engine: Literal["process", "temporal"] = "process"
    temporal: TemporalConfig = TemporalConfig.model_construct()
    _document: Document | None = PrivateAttr(None)
    _hidden: frozenset[str] = PrivateAttr(frozenset())
    _tenant: str | None = PrivateAttr(None)
    _around: HostPolicy | None = PrivateAttr(None)
    _of_sources: Secrets | None = PrivateAttr(None)
    _signing: set[str] = PrivateAttr(default_factory=set)
    _homes: dict[str, list[tuple[Path, Path]]] = PrivateAttr(default_factory=dict)  # one with that of its tenants

    def model_post_init(self, context: Any) -> None:
        """Note the secrets with which this host and its tenants sign."""
        self.note_signing(self.signing)

    def for_tenant(self, name: str) -> "HostConfig":
        """Return the host as one of its tenants has it. DefinitionError for a tenant that the file does not name."""
        if name not in self.tenants:
            known = ", ".join(self.tenants) or "none"
            raise DefinitionError(f"there is no such tenant; there are {known}", where=self.at("tenants"), value=name)
        given = {key: getattr(self.tenants[name], key) for key in self.tenants[name].model_fields_set}
        own = {key: value for key, value in given.items() if value is not None}
        unset: dict[str, Any] = {"allow_tools": None, "deny_tools": [], "execute_tools": [], "webhooks": []}
        unset |= {"root": None, "env": [], "model_files": [], "model_parameters": [], "callbacks": None}
        own["presets"] = _merge_presets(self.presets, self.tenants[name].presets)
        temporal = self.temporal.model_copy(update={"queue": f"{self.temporal.queue}.{name}"})
        below: dict[str, Any] = {"triggers": f"{self.triggers}/{name}", "temporal": temporal}
        config = self.model_copy(update={**unset, **below, **own})
        config._tenant, config._around = name, replace(self.policy(), presets=config.presets, off={})
        config._of_sources = self.source_secrets()
        config._signing = self._signing  # one set: what a trigger of one names, no other reads
        return config

    @property
    def signing(self) -> list[str]:
        """The variables of the secrets of webhooks, callbacks and links, of the host and of its tenants."""
        links = [] if self.decision_links is None else self.decision_links.variables
        own = _signing_of(self.webhooks, self.callbacks)
        return [*own, *links, *(name for each in self.tenants.values() for name in each.signing)]

    def note_signing(self, variables: Iterable[str]) -> None:
        """From now on these variables hold secrets with which this host checks who has signed, for all its tenants."""
        self._signing.update(variables)

    def is_own(self, variable: str) -> bool:
        """Return whether no definition and no tool gets a variable, listed or not: it is a key of this host's."""
        return is_own(variable) or variable in self._signing

    @property
    def tenant(self) -> str | None:
        """The tenant that this is the configuration of; None for the host itself."""
        return self._tenant

    @property
    def file(self) -> Path | None:
        """The file that it was read from."""
        return None if self._document is None else self._document.path

    @property
    def base(self) -> Path:
        """The directory that its paths start from."""
        return Path() if self.file is None else self.file.parent

    @property
    def store_address(self) -> StoreAddress | None:
        """Where its runs are stored, if the configuration says so."""
        return None if self.store is None else read_address(self.store, self.base)

    def at(self, location: str) -> str:
        """Return a place in the file for an error; with the file and the line, if the configuration was read from
        one."""
        return f"host configuration: {location}" if self._document is None else _locate(location, self._document)

    @property
    def named_urls(self) -> dict[str, str | None]:
        """The base URLs that the operator names, each with the variable of its key, or None for one without.

        A tenant has none of `base_urls` once there are `model_endpoints`.
        """
        if self.model_endpoints is None:
            return {**self.base_urls}
        return {**self.model_endpoints} if self._tenant is not None else {**self.base_urls, **self.model_endpoints}

    def policy(self) -> HostPolicy:
        """Return the host's last word on each tool."""
        policy = HostPolicy(self.presets, self.allow_tools, self.deny_tools, self._around)
        policy = policy if self.root is not None else without_files(policy)
        return policy if self._tenant is None else lend_tools(policy)

    def secrets(self) -> Secrets:
        """Return the secrets that tools of this host may read, and the keys of its endpoints, which only their models
        get."""
        sent = [name for each in self.endpoints.values() for name in each.variables]
        hidden = self._hidden.union(filter(None, self.named_urls.values()), sent)
        patterns = {each.name: each.pattern for each in self.mask}
        formats = self.unmasked_formats
        return Secrets(self.secret_env, unmasked_formats=formats, mask=patterns, is_own=self.is_own).hiding(hidden)

    def source_secrets(self) -> Secrets:
        """Return the secrets that the sources of tools send, by the operator's word: a tenant's are those of its
        host."""
        return self._of_sources or self.secrets()


def _signing_of(webhooks: Iterable[WebhookConfig], callbacks: CallbackConfig | None) -> list[str]:
    return [*(hook.secret_env for hook in webhooks), *([] if callbacks is None else [callbacks.secret_env])]


def _merge_presets(host: Mapping[str, Mapping[str, Any]], own: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the presets of a tenant: the host's, and key by key its own in place of them."""
    return {code: {**host.get(code, {}), **own.get(code, {})} for code in dict.fromkeys([*host, *own])}


NO_LINKS: Final = "needs `decision_links` in the file, with its public_url and secret_env"


def read_host_config(file: Path | None, hidden: frozenset[str] = frozenset()) -> HostConfig:
    """Return the configuration of a file; the usual one without a file. DefinitionErrors for each fault in it.

    `hidden` are further variables whose values are masked.
    """
    if file is None:
        return HostConfig.model_construct()  # there is nothing to check, for which its validator would be built
    document = read_document(file, "the host configuration")
    try:
        config = HostConfig.model_validate({} if document.data is None else document.data)
    except ValidationError as error:
        problems = sorted(
            problems_of(error, keys_of(HostConfig), PATTERNS), key=lambda each: _line_of(each.where, document) or 0
        )
        raise DefinitionErrors([Problem(_locate(each.where, document), each.message) for each in problems]) from None
    config._document, config._hidden = document, hidden
    problems = [Problem(place, NO_LINKS) for place in _find_wanting(config)]
    problems += [*_find_unknown_endpoints(config), *_find_unknown_providers(config)]
    refuse([Problem(_locate(each.where, document), each.message) for each in problems])
    return config


def _find_unknown_endpoints(config: HostConfig) -> Iterable[Problem]:
    """Yield what `model_endpoints` name that is neither a URL nor one of the `endpoints`, and keys beside these."""
    lists = {"model_endpoints": config.model_endpoints or {}}
    lists |= {f"tenants/{name}/model_endpoints": each.model_endpoints or {} for name, each in config.tenants.items()}
    known = ", ".join(config.endpoints) or "none"
    for where, names in lists.items():
        for name, variable in names.items():
            if name not in config.endpoints and "://" not in name:
                yield Problem(f"{where}/{name}", f"is neither a URL nor one of the endpoints; there are {known}")
            elif name in config.endpoints and variable is not None:
                yield Problem(f"{where}/{name}", "the endpoint has its own key: give null")


def _find_unknown_providers(config: HostConfig) -> Iterable[Problem]:
    """Yield a default provider that there is not, and base URLs that no model can be asked at."""
    known = (*VENDORS, *OFFLINE, *config.endpoints)
    if config.default_provider not in known:
        message = f"there is no such provider; {hint(config.default_provider, known)}"
        yield Problem("default_provider", str(DefinitionError(message, value=config.default_provider)))
    for url in config.base_urls:
        try:
            read_host(url)
        except DefinitionError as error:
            yield Problem(f"base_urls/{url}", error.message)


def _find_wanting(config: HostConfig) -> Iterable[str]:
    """Yield the places that ask for links of a host that makes none."""
    places: dict[str, HostConfig | TenantConfig] = {"": config}
    places |= {f"tenants/{name}/": each for name, each in config.tenants.items()}
    for prefix, each in places.items() if config.decision_links is None else ():
        hooks = {**{f"webhooks/{at}": hook for at, hook in enumerate(each.webhooks)}, "callbacks": each.callbacks}
        yield from (f"{prefix}{at}/decision_links" for at, hook in hooks.items() if hook and hook.decision_links)


def _locate(location: str, document: Document) -> str:
    """`file:line: a/b`, as faults of definitions have it."""
    line = _line_of(location, document)
    file = str(document.path) if line is None else f"{document.path}:{line}"
    return f"{file}: {location}" if location else file


def _line_of(location: str, document: Document) -> int | None:
    return document.line(document.position(location))
