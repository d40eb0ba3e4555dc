"""Host configuration: which tools, which root, which secrets and endpoints this host offers to workflows."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_core.errors import DefinitionError
from agent_core.secrets import Secrets
from engine_shim.graph.document import read_document
from engine_shim.graph.problem import Faulty, Problem, problems_of
from engine_shim.runs.prepare import with_runs
from engine_shim.runs.runner import Engine
from engine_shim.runs.store import SqliteRunStore, default_store
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
    data = read_document(file, "the host configuration")
    try:
        return HostConfig.model_validate({} if data is None else data), file.parent
    except ValidationError as error:
        problems = problems_of(error, lambda _: HostConfig.model_fields)
        raise Faulty([Problem(f"{file}: {each.where}".removesuffix(": "), each.message) for each in problems]) from None


def registry_of(config: HostConfig, base: Path) -> ToolRegistry:
    """The tools of this host: built in below its root, offered by installed packages, named by the file, the agent."""
    root = base / config.root
    if not root.is_dir():
        raise DefinitionError("there is no such directory", where="host configuration: root", value=str(root))
    registry = default_registry(str(root))
    registry.discover()
    for index, reference in enumerate(config.tools):
        where = f"host configuration: tools/{index}"
        for tool in _tools(reference, base, where):
            _register(tool, registry, where)
    return with_runs(registry, None)


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


def _tools(reference: str, base: Path, where: str) -> list[Tool]:
    """The tools that `module:name` or `file.py:name` stands for."""
    module_name, colon, name = reference.rpartition(":")
    if not colon:
        raise DefinitionError("must be module:name or file.py:name", where=where, value=reference)
    found = _loaded(module_name, name, base, where)
    tools = list(found) if isinstance(found, list | tuple) else [found]
    for tool in tools:
        if not isinstance(tool, Tool):
            told = "is not a Tool, a list of Tools, or a function without arguments that returns either"
            raise DefinitionError(f"{told}; a function becomes a Tool by @tool", where=where, value=reference)
    return tools


def _register(tool: Tool, registry: ToolRegistry, where: str) -> None:
    try:
        registry.register(tool)
    except DefinitionError as error:
        raise DefinitionError(error.message, where=f"{where}: {error.where}") from None


def _loaded(module_name: str, name: str, base: Path, where: str) -> Any:
    try:
        module = _module(module_name, base)
        if not hasattr(module, name):
            raise DefinitionError(f"there is no {name!r} in {module_name}", where=where)
        found = getattr(module, name)
        return found() if callable(found) and not isinstance(found, Tool) else found
    except DefinitionError:
        raise
    except Exception as error:  # the author's own code runs here, and may fail in any way
        told = f"cannot be loaded: {type(error).__name__}: {error}"
        raise DefinitionError(told, where=where, value=f"{module_name}:{name}") from error


def _module(name: str, base: Path) -> ModuleType:
    return _from_file(base / name) if name.endswith(".py") else importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"agent_core_host_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that annotations in it can be resolved
    spec.loader.exec_module(module)
    return module
