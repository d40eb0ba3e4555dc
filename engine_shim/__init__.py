"""Workflows: definitions, their graph, their runs, and the command line."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.builder.builder import AgentBuilder as AgentBuilder
    from engine_shim.builder.state import AgentState as AgentState
    from engine_shim.builder.state import Chunk as Chunk
    from engine_shim.definition.load import Workflow as Workflow
    from engine_shim.definition.load import load_workflow as load_workflow
    from engine_shim.errors import DefinitionError as DefinitionError
    from engine_shim.errors import EngineError as EngineError
    from engine_shim.errors import RunBusy as RunBusy
    from engine_shim.errors import RunNotFound as RunNotFound
    from engine_shim.runs.drive import RunResult as RunResult
    from engine_shim.runs.engine import Engine as Engine
    from engine_shim.store.run_store import SqliteRunStore as SqliteRunStore
    from engine_shim.store.run_store_memory import MemoryRunStore as MemoryRunStore

HOMES = {
    "AgentBuilder": "engine_shim.builder.builder",
    "AgentState": "engine_shim.builder.state",
    "Chunk": "engine_shim.builder.state",
    "DefinitionError": "engine_shim.errors",
    "Engine": "engine_shim.runs.engine",
    "EngineError": "engine_shim.errors",
    "MemoryRunStore": "engine_shim.store.run_store_memory",
    "RunBusy": "engine_shim.errors",
    "RunNotFound": "engine_shim.errors",
    "RunResult": "engine_shim.runs.drive",
    "SqliteRunStore": "engine_shim.store.run_store",
    "Workflow": "engine_shim.definition.load",
    "load_workflow": "engine_shim.definition.load",
}
"""The public names, each imported from its module when it is first used: a command loads what it needs."""
__all__ = list(HOMES)
__getattr__, __dir__ = lazy_menu(__name__, HOMES)
