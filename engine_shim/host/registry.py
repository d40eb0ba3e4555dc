"""The tools of a host: built in, of installed packages, and from each source that its configuration names."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.errors import DefinitionError
from agent_core.models.summary import summariser
from agent_core.policy import has_wildcard
from agent_core.prompts.render import summary_template
from engine_shim.definition.errors import Problem, message_of, problems_in, refuse
from engine_shim.definition.model import AGENT, INVOKE
from engine_shim.host.config import HostConfig
from engine_shim.host.find import NAME
from engine_shim.host.protected import protect_host
from engine_shim.host.providers import open_providers
from engine_shim.host.python_tools import load_functions, load_tools
from utools.context.summary import Summarise
from utools.defaults import host_registry
from utools.errors import UnknownTool
from utools.files.protected_paths import protect, protect_glob, protect_name
from utools.left_out import LeftOut
from utools.registry import ToolRegistry
from utools.secrets.text_cipher import TextCipher
from utools.sources.loaded import Loaded
from utools.sources.openapi import load_openapi
from utools.sources.remote import RemoteHosts
from utools.tool import Tool, name_as_words
from utools.tool_lookup import ReadDocument

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase
    from utools.sources.mcp.servers import McpServers

    Pinned = McpServers | RemoteHosts

log = logging.getLogger("engine_shim")
LOCK = "agent-core.lock.json"
MANIFESTS = (".yaml", ".yml", ".json")
Source = tuple[str, str, Callable[[], list[Tool]]]
"""A place in the file, what to call it, and what loads the tools that it names."""
KINDS = {"mcp_servers": "mcp", "remote": "remote"}


def build_registry(
    config: HostConfig, database: "PostgresDatabase | None" = None, cipher: TextCipher | None = None
) -> ToolRegistry:
    """Return the tools of this host: built in below its root, offered by installed packages, named by the file, the
    agent.

    Conversations, rate limits and kept answers are in `database`, unless the environment says otherwise; with a
    `cipher` they are encrypted. A source from elsewhere that is away or odd, and a single tool of one, is left out, and
    told in the log; `left_out` of the registry lists them. DefinitionErrors for every other entry of the file that
    cannot be used.
    """
    root = Path(os.devnull) if config.root is None else config.base / config.root  # no file lies below that
    if config.root is not None and not root.is_dir():
        raise DefinitionError("there is no such directory", where=config.at("root"), value=str(root))
    _protect_files(config)
    summarise = _summarise(config)
    try:
        registry = host_registry(
            str(root),
            summarise=summarise,
            policy=config.policy(),
            tenant=config.tenant,
            database=database,
            cipher=cipher,
        )
    except DefinitionError as error:
        raise DefinitionError(error.message, where=config.at(error.where)) from None
    registry.discover()
    problems: list[Problem] = []
    for where, origin, tools in _tool_sources(config, root, problems):
        try:
            for tool in tools():
                _register(tool, registry, where)
                registry._origins[tool.code] = origin
        except DefinitionError as error:
            problems += problems_in(error)
    pinned = pinned_sources(config)
    for where, name, loaded in _load_sources(config, pinned):
        _take(loaded, registry, where, name, pinned)
    for source in pinned:
        registry._readers.update({} if isinstance(source, RemoteHosts) else _admitted(source.readers(), registry))
    for each in registry._left_out:
        log.warning("left out: %s", each)
    problems += _unknown_tools(config, registry)
    refuse(problems)
    return registry


def take_up_again(config: HostConfig, registry: ToolRegistry) -> bool:
    """Ask the sources that are left out once more, and register the tools of those that are back; whether any is."""
    away = {each.name for each in registry._left_out}
    servers = {name: each for name, each in config.mcp_servers.items() if f"mcp.{name}" in away}
    hosts = {name: each for name, each in config.remote.items() if name in away}
    documents = {name: each for name, each in config.openapi.items() if name in away}
    part = config.model_copy(update={"mcp_servers": servers, "remote": hosts, "openapi": documents})
    pinned, asked = pinned_sources(part), {*(f"mcp.{name}" for name in servers), *hosts, *documents}
    loaded = list(_load_sources(part, pinned))
    still = {each.name for _, _, found in loaded for each in found.left_out}
    registry._left_out[:] = [each for each in registry._left_out if each.name in still or each.name not in asked]
    for where, name, found in loaded:
        own = [each for each in found.left_out if each.name not in away]
        _take(replace(found, left_out=own), registry, where, name, pinned)
    for source in pinned:
        if not isinstance(source, RemoteHosts):
            back = {name: each for name, each in source.readers().items() if f"mcp.{name}" not in still}
            registry._readers.update(_admitted(back, registry))
            if not back:
                source.close()
    for name in sorted(asked - still):
        log.info("%s can be used again", name)
    return bool(asked - still)


def _admitted(readers: Mapping[str, ReadDocument], registry: ToolRegistry) -> dict[str, ReadDocument]:
    """Return what reads the documents of servers, of those whose tools the policy admits."""
    return {name: each for name, each in readers.items() if registry._policy.admits(f"mcp.{name}.documents")}


def undescribed_tools(registry: ToolRegistry) -> Iterator[str]:
    """Yield what to do about each tool of Python whose function says nothing to the model."""
    is_bare = sys.flags.optimize >= 2
    advice = "Python leaves docstrings out with -OO; run it without" if is_bare else "give its function a docstring"
    for tool in registry.for_models():
        if tool.fingerprint is None and tool.description == name_as_words(tool.code):
            yield f"the tool {tool.code} has no description for the model: {advice}"


def _load_sources(config: HostConfig, pinned: Sequence["Pinned"]) -> Iterator[tuple[str, str, Loaded]]:
    """Yield what each kind of source from elsewhere gives, with its place in the file, and its name where it has one.
    All are asked at once, so that several that are away take no longer than one."""
    with ThreadPoolExecutor(max_workers=max(1, len(pinned))) as asking:
        loading = [(source, asking.submit(source.load)) for source in pinned]
        for name, document in config.openapi.items():
            yield config.at(f"openapi/{name}"), f"openapi.{name}", load_openapi(name, document, config.base)
        for source, loaded in loading:
            yield config.at(source.where), "", loaded.result()


def _take(loaded: Loaded, registry: ToolRegistry, where: str, name: str, pinned: Sequence["Pinned"]) -> None:
    """Register tools from elsewhere, of the source of this name; one that cannot be is left out."""
    registry._left_out += loaded.left_out
    for tool in loaded.tools:
        try:
            registry.register(tool)
            registry._origins[tool.code] = name or name_source(tool.code, pinned)
        except DefinitionError as error:
            registry._left_out.append(LeftOut(tool.code, f"{where}: {error.where}", error.message))


def _tool_sources(config: HostConfig, root: Path, problems: list[Problem]) -> Iterator[Source]:
    """Yield each entry of the file that brings the host's own tools; patterns that match nothing go to `problems`."""
    for index, reference in enumerate(config.tools):
        where = config.at(f"tools/{index}")
        yield where, reference.rpartition("/")[2], partial(load_tools, reference, config.base, where)
    for index, reference in enumerate(config.functions):
        where = config.at(f"functions/{index}")
        yield where, reference.rpartition("/")[2], partial(load_functions, reference, config.base, where)
    for index, pattern in enumerate(config.manifests):
        try:
            files = _find_manifests(pattern, config.base, config.at(f"manifests/{index}"))
        except DefinitionError as error:
            problems += problems_in(error)
            continue
        from utools.sources.manifest import manifest_tools

        yield from ((str(file), file.name, partial(manifest_tools, file, root=root, trusted=True)) for file in files)


def name_source(code: str, pinned: Sequence["Pinned"]) -> str:
    """Return the pinned source that a tool is of, by its code: `mcp.NAME` or `remote.NAME`."""
    own = code.removeprefix("mcp.")
    names = [
        f"{KINDS[source.where]}.{name}"
        for source in pinned
        for name in source.names
        if (own != code) == (source.where == "mcp_servers") and own.startswith(f"{name}.")
    ]
    return max(names, key=len, default="")


def _unknown_tools(config: HostConfig, registry: ToolRegistry) -> Iterator[Problem]:
    """Presets for tools that this host does not have, and denials that would deny nothing."""
    known = [tool.code for tool in registry.all()]
    for index, code in enumerate(config.deny_tools):
        if not has_wildcard(code) and code not in (*known, AGENT, INVOKE) and registry._refusal(code) is None:
            yield Problem(config.at(f"deny_tools/{index}"), str(UnknownTool(code, known)))
    for code in config.presets:
        where = config.at(f"presets/{code}")
        if code in (AGENT, INVOKE):
            yield Problem(where, f"{code} is a run of its own; preset the tools that it uses")
        elif code not in known and registry._refusal(code) is None:
            yield Problem(where, str(UnknownTool(code, known)))


def _protect_files(config: HostConfig) -> None:
    """Protect from tools what this host reads at its next start, whether it exists or not."""
    base = config.base
    protect_host(config)
    modules = (reference.rpartition(":")[0] or reference for reference in (*config.tools, *config.functions))
    sources = (name for name in modules if name.endswith(".py"))
    for path in (LOCK, *config.manifests, *sources):
        protect(base / path)
    protect_name(NAME)
    if config.file is not None:
        protect(config.file)
    for pattern in config.manifests:
        protect_glob(base / pattern)
    for server in config.mcp_servers.values():
        words = (base / (server.cwd or ".") / word for word in server.command or ())
        for program in filter(os.path.isfile, words):
            protect(program)


def _summarise(config: HostConfig) -> Summarise | None:
    """Return what summarises the turns that leave a conversation's window, if the host names a model for it."""
    if config.summary_model is None:
        if config.summary_prompt is not None:
            raise DefinitionError("needs a summary_model, which reads it", where=config.at("summary_prompt"))
        return None
    model, providers = config.summary_model, open_providers(config)
    try:
        providers.check(model, {})
    except DefinitionError as error:
        raise DefinitionError(message_of(error), where=config.at("summary_model")) from None
    return summariser(lambda: providers(model, {}), _summary_prompt(config))


def _summary_prompt(config: HostConfig) -> str | None:
    if config.summary_prompt is None:
        return None
    try:
        return summary_template(config.summary_prompt, config.base)
    except DefinitionError as error:
        raise DefinitionError(error.message, where=config.at("summary_prompt")) from None


def pinned_sources(config: HostConfig) -> list["Pinned"]:
    """Return the sources of this host whose tools are described elsewhere; the lock file lists what is approved of
    them."""
    lock, secret = config.base / LOCK, config.source_secrets()
    sources: list[Pinned] = []
    if config.mcp_servers:
        from utools.sources.mcp.servers import McpServers

        sources.append(McpServers(config.mcp_servers, lock=lock, base=config.base, secret=secret))
    if config.remote:
        sources.append(RemoteHosts(config.remote, lock=lock, secret=secret))
    return sources


def _register(tool: Tool, registry: ToolRegistry, where: str) -> None:
    try:
        registry.register(tool)
    except DefinitionError as error:
        raise DefinitionError(error.message, where=f"{where}: {error.where}") from None


def _find_manifests(pattern: str, base: Path, where: str) -> list[Path]:
    """Return the manifest files that a pattern matches; DefinitionError for none."""
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
