"""Workflows: definitions, their graph, their runs, and the command line."""

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
