"""Host configuration: which tools, which root, which secrets and endpoints this host offers to workflows."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from glob import glob
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from agent_core.errors import DefinitionError
from agent_core.models.providers import Providers
from agent_core.models.summary import Summarise, summariser
from agent_core.run.secrets import Secrets
from engine_shim.definition.errors import DefinitionErrors, Location, Problem, problems_in, problems_of, refuse
from engine_shim.runs.engine import Engine
from engine_shim.runs.prepare import with_runs
from engine_shim.runs.store import SqliteRunStore, default_store
from utools.defaults import host_registry
from utools.document import read_document
from utools.files.protected_paths import protect, protect_glob
from utools.registry import ToolRegistry
from utools.sources.manifest import manifest_tools
from utools.sources.mcp.servers import McpServer, McpServers
from utools.sources.openapi import OpenApi, openapi_tools
from utools.sources.python_object import load_object
from utools.sources.remote import RemoteHost, RemoteHosts
from utools.tool import Tool

VARIABLE = "AGENT_CORE_CONFIG"
DEFAULT = Path("agent-core.yaml")
LOCK = "agent-core.lock.json"
MANIFESTS = (".yaml", ".yml", ".json")
Source = tuple[str, Callable[[], list[Tool]]]
"""A place in the file, and what loads the tools that it names."""


class HostConfig(BaseModel):
    """The file's keys. `tools` are `module:name` or `file.py:name`, each a Tool, a list of them, or a factory.

    `manifests` are files, directories of them, or globs. Paths start from the directory of the configuration.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    tools: list[str] = []
    manifests: list[str] = []
    mcp_servers: dict[str, McpServer] = {}
    openapi: dict[str, OpenApi] = {}
    remote: dict[str, RemoteHost] = {}
    root: str = "."
    secret_env: list[str] = []
    base_urls: dict[str, str] = {}
    default_provider: str = "openai"
    summary_model: str | None = None
    _file: Path | None = PrivateAttr(None)

    def at(self, location: str) -> str:
        """A place in the file for an error; with the file, if the configuration was read from one."""
        return f"{self._file or 'host configuration'}: {location}"


def read_host_config(path: Path | None) -> tuple[HostConfig, Path]:
    """The configuration and the directory its paths start from: --config, AGENT_CORE_CONFIG, or ./agent-core.yaml."""
    named = path or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    file = named or DEFAULT
    if named is None and not file.exists():
        return HostConfig(), Path()
    data = read_document(file, "the host configuration").data
    try:
        config = HostConfig.model_validate({} if data is None else data)
    except ValidationError as error:
        problems = problems_of(error, _keys)
        raise DefinitionErrors(
            [Problem(f"{file}: {each.where}".removesuffix(": "), each.message) for each in problems]
        ) from None
    config._file = file
    return config, file.parent


def _keys(location: Location) -> Iterable[str]:
    """The keys that may be given at a place of the file."""
    within: dict[str, type[BaseModel]] = {"mcp_servers": McpServer, "openapi": OpenApi, "remote": RemoteHost}
    return within.get(str(location[0]), HostConfig).model_fields if len(location) > 2 else HostConfig.model_fields


def build_registry(config: HostConfig, base: Path) -> ToolRegistry:
    """The tools of this host: built in below its root, offered by installed packages, named by the file, the agent.

    DefinitionErrors for every entry of the file that cannot be used.
    """
    root = base / config.root
    if not root.is_dir():
        raise DefinitionError("there is no such directory", where=config.at("root"), value=str(root))
    _protect_files(config, base)
    registry = host_registry(str(root), summarise=_summarise(config, base))
    registry.discover()
    problems: list[Problem] = []
    for where, tools in _tool_sources(config, base, root, problems):
        try:
            for tool in tools():
                _register(tool, registry, where)
        except DefinitionError as error:
            problems += problems_in(error)
    refuse(problems)
    return with_runs(registry, None)


def _tool_sources(config: HostConfig, base: Path, root: Path, problems: list[Problem]) -> Iterator[Source]:
    """Each entry of the file that brings tools, with its place; patterns that match nothing go to `problems`."""
    for index, reference in enumerate(config.tools):
        where = config.at(f"tools/{index}")
        yield where, partial(_load_tools, reference, base, where)
    for index, pattern in enumerate(config.manifests):
        try:
            files = _find_manifests(pattern, base, config.at(f"manifests/{index}"))
        except DefinitionError as error:
            problems += problems_in(error)
            continue
        yield from ((str(file), partial(manifest_tools, file, root=root, trusted=True)) for file in files)
    for name, document in config.openapi.items():
        yield config.at(f"openapi/{name}"), partial(openapi_tools, name, document, base)
    for source in pinned_sources(config, base):
        yield config.at(source.where), source.tools


def _protect_files(config: HostConfig, base: Path) -> None:
    """Protect from tools what this host reads at its next start, whether it exists or not."""
    for path in (DEFAULT, base / LOCK, *(base / pattern for pattern in config.manifests)):
        protect(path)
    for pattern in config.manifests:
        protect_glob(base / pattern)
    for server in config.mcp_servers.values():
        words = (base / (server.cwd or ".") / word for word in server.command or ())
        for program in filter(os.path.isfile, words):
            protect(program)


def _summarise(config: HostConfig, base: Path) -> Summarise | None:
    """What summarises the turns that leave a conversation's window, if the host names a model for it."""
    if config.summary_model is None:
        return None
    model, providers = config.summary_model, Providers(base, config.base_urls, config.default_provider)
    providers.check(model, {})
    return summariser(lambda: providers(model, {}))


def pinned_sources(config: HostConfig, base: Path) -> list[McpServers | RemoteHosts]:
    """The sources of this host whose tools are described elsewhere; the lock file lists what is approved of them."""
    lock, secret = base / LOCK, Secrets(config.secret_env)
    return [
        *([McpServers(config.mcp_servers, lock=lock, base=base, secret=secret)] if config.mcp_servers else ()),
        *([RemoteHosts(config.remote, lock=lock, secret=secret)] if config.remote else ()),
    ]


def secrets_of(config: HostConfig) -> Secrets:
    """The secrets that tools of this host may read, and the keys of its endpoints, which only their models get."""
    return Secrets(config.secret_env).hiding(config.base_urls.values())


def build_engine(config_path: Path | None, store: Path | None) -> Engine:
    """The engine of this host."""
    config, base = read_host_config(config_path)
    return Engine(
        build_registry(config, base),
        store=SqliteRunStore(store or default_store()),
        secrets=secrets_of(config),
        base_urls=config.base_urls,
        default_provider=config.default_provider,
    )


def _load_tools(reference: str, base: Path, where: str) -> list[Tool]:
    """The tools that `module:name` or `file.py:name` names."""
    found = load_object(reference, base, where)
    if callable(found) and not isinstance(found, Tool):
        try:
            found = found()
        except DefinitionError:
            raise
        except Exception as error:  # the author's own code runs here, and may fail in any way
            message = f"cannot be loaded: {type(error).__name__}: {error}"
            raise DefinitionError(message, where=where, value=reference) from error
    tools = list(found) if isinstance(found, list | tuple) else [found]
    for tool in tools:
        if not isinstance(tool, Tool):
            message = "is not a Tool, a list of Tools, or a function without arguments that returns either"
            raise DefinitionError(f"{message}; a function becomes a Tool by @tool", where=where, value=reference)
    return tools


def _register(tool: Tool, registry: ToolRegistry, where: str) -> None:
    try:
        registry.register(tool)
    except DefinitionError as error:
        raise DefinitionError(error.message, where=f"{where}: {error.where}") from None


def _find_manifests(pattern: str, base: Path, where: str) -> list[Path]:
    """The manifest files that a pattern matches; DefinitionError for none."""
    location = base / pattern
    if os.path.isfile(location):
        return [location]
    found = location.glob("*") if location.is_dir() else map(Path, glob(str(location)))
    files = sorted(file for file in found if file.suffix in MANIFESTS and file.is_file())
    if not files:
        kinds = ", ".join(MANIFESTS)
        message = f"the directory holds no manifest ({kinds})" if location.is_dir() else "there is no such manifest"
        raise DefinitionError(message, where=where, value=pattern)
    return files
