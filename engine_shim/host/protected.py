"""protect_host(): what says what a host and its tenants do is not written by any tool."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_core.agents.catalog import SUFFIXES
from agent_core.models.named_endpoint import OFFLINE
from engine_shim.host.config import HostConfig, TenantConfig
from utools.files.protected_paths import protect, protect_glob


def protect_host(config: HostConfig) -> None:
    """Protect the directories of workflows, agents and triggers, and the files of models, of the host and of all its
    tenants, whether they exist or not. Of a directory that a root lies in, what may define something there."""
    hosts: list[HostConfig | TenantConfig] = [config, *config.tenants.values()]
    roots = [(config.base / each.root).resolve() for each in hosts if each.root is not None]
    for each in hosts:
        for name in filter(None, (each.workflows, each.agents, each.triggers)):
            directory = (config.base / name).resolve()
            if not any(root.is_relative_to(directory) for root in roots):
                protect(directory)
            for suffix in SUFFIXES:
                protect_glob(directory / f"*{suffix}")
        for pattern in each.model_files:
            protect_glob(config.base / pattern)


def protect_models(names: Iterable[object], base: Path) -> None:
    """Protect the files that models are, by their names, whether they exist or not."""
    for file in _files_in(names):
        protect(base / file)


def _files_in(names: Iterable[object]) -> Iterator[str]:
    for name in names:
        provider, colon, file = name.partition(":") if isinstance(name, str) else ("", "", "")
        if colon and provider in OFFLINE and "\0" not in file:
            yield file
