"""find_configuring(): the variables with which an operator configures a host; definitions read none of them."""

from engine_shim.host.config import HostConfig
from utools.sources.http_call import HttpPolicy
from utools.sources.mcp.config import McpServer


def find_configuring(config: HostConfig) -> frozenset[str]:
    """Return the variables that the configuration names for servers, sources, models and webhooks, and the store's
    URL."""
    sources: list[McpServer | HttpPolicy] = [*config.mcp_servers.values(), *config.remote.values()]
    sources += config.openapi.values()
    tokens = {name for each in sources for name in (each.token_env, *each.secret_headers.values()) if name}
    started = {name for each in config.mcp_servers.values() for name in each.env}
    endpoints = [config.named_urls, *(each.model_endpoints or {} for each in config.tenants.values())]
    keys = {name for each in endpoints for name in each.values() if name}
    sent = {name for each in config.endpoints.values() for name in each.variables}
    return frozenset({"REDIS_URL", *tokens, *started, *keys, *sent, *config.signing})
