"""The host configuration: where it was found, whether it is sound, and whether what it names is approved and set."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from agent_core.run.secrets import VARIABLE as SECRET_ENV
from agent_core.run.secrets import Secrets
from engine_shim.cli.doctor.finding import Finding, find_faults
from engine_shim.definition.errors import message_of
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.host.find import NAME, find_host_config, open_host
from engine_shim.host.registry import LOCK, pinned_sources
from utools.command import check_program
from utools.sources.mcp.servers import McpServers
from utools.sources.tool_lock_file import ToolLockFile

PART = "configuration"


def check_host(named: Path | None) -> tuple[list[Finding], HostConfig | None]:
    """Return what is said of the configuration, and the configuration, unless it has faults."""
    file = find_host_config(named)
    try:
        config = open_host(file)
    except DefinitionError as error:
        return find_faults(PART, error), None
    if file is None:
        message = f"no {NAME} here or above: only the built-in tools are there"
        return [Finding(PART, "ok", message, "`agent-core init DIR` writes one to start with")], config
    facts = {"path": str(file.resolve()), "tenants": list(config.tenants)}
    return [Finding(PART, "ok", str(file), facts=facts), *_find_unset(config), *_check_endpoints(config)], config


def _find_unset(config: HostConfig) -> Iterator[Finding]:
    for name in dict.fromkeys((*config.secret_env, *sorted(Secrets().names))):
        if config.is_own(name):
            message = f"{name} is the host's own, and no tool gets it"
            yield Finding("secret", "warning", message, f"take it out of secret_env, and of {SECRET_ENV}")
        elif not os.environ.get(name):
            advice = f"set it, or put {name}=… into .env beside the configuration"
            yield Finding("secret", "warning", f"{name} is allowed to tools, and not set", advice)


def _check_endpoints(config: HostConfig) -> Iterator[Finding]:
    """Yield whether each endpoint of the host's own can be asked, whether a workflow names it or not; nothing is
    sent."""
    for name, endpoint in config.endpoints.items():
        where = f"endpoints/{name}"
        try:
            route = endpoint.open_route(config.base, config.at(where))
            if endpoint.url.startswith("https:"):
                route.open_tls()
        except DefinitionError as error:
            yield from find_faults(where, error)
            continue
        if endpoint.missing:
            advice = "in the environment, or in .env beside agent-core.yaml"
            yield Finding(where, "warning", f"not set: {', '.join(endpoint.missing)}", advice)
        else:
            yield Finding(where, "ok", f"{endpoint.url}, asked for {', '.join(endpoint.models)}")


def check_sources(config: HostConfig) -> tuple[list[Finding], bool]:
    """Return whether the tools of MCP servers and other hosts are approved, as the lock file has it, or what is in the
    way; and whether the host's tools are known without an approval."""
    lock = ToolLockFile(config.base / LOCK)
    names = [f"{where}/{name}" for where in ("mcp_servers", "remote") for name in getattr(config, where)]
    away = _find_away(config)
    found = [_check_source(name, lock, away.get(name)) for name in names]
    if config.mcp_servers and find_spec("mcp") is None:
        message = "the configuration names MCP servers, and the extra mcp is not installed"
        found.append(Finding("mcp_servers", "problem", message, "pip install 'agent-core[mcp]'"))
    are_known = not any(each.status == "warning" for each in found)
    return [*found, *_find_missing_env(config)], are_known


def _find_missing_env(config: HostConfig) -> Iterator[Finding]:
    for name, server in config.mcp_servers.items():
        if unset := server.unset:
            advice = "in the environment, or in .env beside agent-core.yaml"
            yield Finding(f"mcp_servers/{name}", "warning", f"not set of its `env`: {', '.join(unset)}", advice)


def _find_away(config: HostConfig) -> dict[str, str]:
    """Return why sources cannot be used now: a program that is not there, a server that does not answer. Nothing is
    started, and nothing approved."""
    away: dict[str, str] = {}
    for name, server in config.mcp_servers.items():
        if server.command is not None:
            try:
                check_program(server.command[0], config.base / (server.cwd or "."), f"the MCP server {name!r}")
            except DefinitionError as error:
                away[f"mcp_servers/{name}"] = error.message
    for source in pinned_sources(config):
        is_mcp = isinstance(source, McpServers)
        if asked := [name for name in source.names if not is_mcp or config.mcp_servers[name].command is None]:
            faults = {name: each for name, each in source.offered(asked).items() if isinstance(each, DefinitionError)}
            away |= {f"{source.where}/{name}": message_of(each) for name, each in faults.items()}
        if isinstance(source, McpServers):
            source.close()
    return away


def _check_source(name: str, lock: ToolLockFile, away: str | None) -> Finding:
    try:
        approved = lock.approved(name)
    except DefinitionError as error:
        return Finding(name, "problem", error.message, f"`agent-core tools approve {name}`")
    if approved is None and away is not None:
        return Finding(name, "problem", f"its tools are left out: {away}")
    if approved is None:
        return Finding(name, "warning", "its tools are not approved yet", f"`agent-core tools approve {name}`")
    facts = {"tools": [each.name for each in approved]}
    if away is not None:
        return Finding(name, "problem", f"tools approved: {len(approved)}; it cannot be used now: {away}", facts=facts)
    return Finding(name, "ok", f"tools approved: {len(approved)}", facts=facts)
