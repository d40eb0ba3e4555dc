"""Workflows: definitions, their graph, their runs, and the command line."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine_shim.definition.load import Workflow, load_workflow
    from engine_shim.errors import DefinitionError, EngineError, RunBusy, RunNotFound
    from engine_shim.runs.drive import RunResult
    from engine_shim.runs.engine import Engine
    from engine_shim.runs.store import MemoryRunStore, SqliteRunStore

__all__ = [
    "DefinitionError",
    "Engine",
    "EngineError",
    "MemoryRunStore",
    "RunBusy",
    "RunNotFound",
    "RunResult",
    "SqliteRunStore",
    "Workflow",
    "load_workflow",
]

_MODULES = {
    "DefinitionError": "engine_shim.errors",
    "Engine": "engine_shim.runs.engine",
    "EngineError": "engine_shim.errors",
    "MemoryRunStore": "engine_shim.runs.store",
    "RunBusy": "engine_shim.errors",
    "RunNotFound": "engine_shim.errors",
    "RunResult": "engine_shim.runs.drive",
    "SqliteRunStore": "engine_shim.runs.store",
    "Workflow": "engine_shim.definition.load",
    "load_workflow": "engine_shim.definition.load",
}
"""Where each name is defined: it is imported when it is first asked for, so that a command loads what it needs."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
