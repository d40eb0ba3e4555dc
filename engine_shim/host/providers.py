"""open_providers(): the models that a host's configuration names, and how they are reached."""

from pathlib import Path

from agent_core.models.providers import Providers
from agent_core.models.reach import ModelReach
from engine_shim.host.config import HostConfig


def open_providers(config: HostConfig, base: Path | None = None, *, reach: ModelReach | None = None) -> Providers:
    """Return the clients of a host's models; the paths of scripts and models start from `base`, or from the directory
    of the configuration."""
    named = config.named_urls, config.default_provider, config.endpoints
    return Providers(base or config.base, *named, config.base, reach)
