"""Host configuration: which tools, which root, which secrets and endpoints this host offers to workflows."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from agent_core.errors import DefinitionError
from agent_core.secrets import Secrets
from engine_shim.runs.runner import Engine, default_store
from engine_shim.runs.store import SqliteRunStore
from utools.defaults import default_registry
from utools.registry import ToolRegistry
from utools.tool import Tool

VARIABLE = "AGENT_CORE_CONFIG"
DEFAULT = Path("agent-core.yaml")


class HostConfig(BaseModel):
    """The file's keys. `tools` are `module:name` or `file.py:name`, each a Tool, a list of them, or a factory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tools: list[str] = []
    root: str = "."
    secret_env: list[str] = []
    base_urls: dict[str, str] = {}
    default_provider: str = "openai"


def host_config(path: Path | None) -> tuple[HostConfig, Path]:
    """The configuration and the directory its paths start from: --config, AGENT_CORE_CONFIG, or ./agent-core.yaml."""
    named = path or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    file = named or DEFAULT
    if named is None and not file.exists():
        return HostConfig(), Path()
    try:
        data = yaml.safe_load(file.read_text("utf-8")) or {}
        return HostConfig.model_validate(data), file.parent
    except OSError as error:
        raise DefinitionError(f"the host configuration cannot be read: {error.strerror}", where=str(file)) from None
    except yaml.YAMLError as error:
        raise DefinitionError(f"not valid YAML: {error}", where=str(file)) from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in fault["loc"])
        raise DefinitionError(fault["msg"], where=f"{file}: {place}", value=fault["input"]) from None


def registry_of(config: HostConfig, base: Path) -> ToolRegistry:
    """The built-in tools under the host's root, what installed packages offer, and what the file names."""
    registry = default_registry(str(base / config.root))
    registry.discover()
    for index, reference in enumerate(config.tools):
        for tool in _tools(reference, base, f"tools/{index}"):
            registry.register(tool)
    return registry


def engine_of(config_path: Path | None, store: Path | None) -> Engine:
    """The engine of this host."""
    config, base = host_config(config_path)
    return Engine(
        registry_of(config, base),
        store=SqliteRunStore(store or default_store()),
        secrets=Secrets(config.secret_env),
        base_urls=config.base_urls,
        default_provider=config.default_provider,
    )


def _tools(reference: str, base: Path, where: str) -> Iterator[Tool]:
    module_name, colon, name = reference.rpartition(":")
    if not colon:
        raise DefinitionError("must be module:name or file.py:name", where=where, value=reference)
    module = _module(module_name, base, where)
    if not hasattr(module, name):
        raise DefinitionError(f"there is no {name!r} in {module_name}", where=where, value=reference)
    found: Any = getattr(module, name)
    if callable(found) and not isinstance(found, Tool):
        found = found()
    for tool in [found] if isinstance(found, Tool) else found if isinstance(found, list | tuple) else [None]:
        if not isinstance(tool, Tool):
            raise DefinitionError("is not a Tool, a list of Tools, or a function that returns either", where=where)
        yield tool


def _module(name: str, base: Path, where: str) -> ModuleType:
    try:
        return _from_file(base / name) if name.endswith(".py") else importlib.import_module(name)
    except Exception as error:  # the author's own code runs here, and may fail in any way
        raise DefinitionError(f"cannot be loaded: {type(error).__name__}: {error}", where=where, value=name) from error


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"agent_core_host_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"no such file: {path.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that annotations in it can be resolved
    spec.loader.exec_module(module)
    return module
