"""Workflows: definitions, their graph, their runs, and the command line."""

from engine_shim.errors import DefinitionError, EngineError, RunNotFound
from engine_shim.graph.definition import Workflow, load_workflow
from engine_shim.runs.runner import Engine, RunResult
from engine_shim.runs.store import MemoryRunStore, SqliteRunStore

__all__ = [
    "DefinitionError",
    "Engine",
    "EngineError",
    "MemoryRunStore",
    "RunNotFound",
    "RunResult",
    "SqliteRunStore",
    "Workflow",
    "load_workflow",
]
