"""Workflows: definitions, their graph, their runs, and the command line."""

TYPE_CHECKING = False  # that of `typing`, which takes long: a command hears Ctrl-C only once this module is there
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from engine_shim.builder.builder import AgentBuilder as AgentBuilder
    from engine_shim.builder.execution import Execution as Execution
    from engine_shim.builder.graph import AgentGraph as AgentGraph
    from engine_shim.builder.node import LLMNode as LLMNode
    from engine_shim.builder.node import NodeConfig as NodeConfig
    from engine_shim.builder.state import AgentState as AgentState
    from engine_shim.builder.state import Chunk as Chunk
    from engine_shim.builder.state import ExecutionResult as ExecutionResult
    from engine_shim.builder.state import ExecutionStatus as ExecutionStatus
    from engine_shim.builder.state import NodeRecord as NodeRecord
    from engine_shim.builder.state import ToolCallRecord as ToolCallRecord
    from engine_shim.definition.load import Workflow as Workflow
    from engine_shim.definition.load import load_workflow as load_workflow
    from engine_shim.definition.model import Definition as Definition
    from engine_shim.definition.model import Edge as Edge
    from engine_shim.definition.model import EnvName as EnvName
    from engine_shim.definition.model import Node as Node
    from engine_shim.definition.model import Retry as Retry
    from engine_shim.errors import DefinitionError as DefinitionError
    from engine_shim.errors import EngineAway as EngineAway
    from engine_shim.errors import EngineError as EngineError
    from engine_shim.errors import PageDamaged as PageDamaged
    from engine_shim.errors import RunBusy as RunBusy
    from engine_shim.errors import RunNotFound as RunNotFound
    from engine_shim.errors import WritesRepeated as WritesRepeated
    from engine_shim.host.config import TemporalConfig as TemporalConfig
    from engine_shim.runs.drive import RunResult as RunResult
    from engine_shim.runs.engine import Engine as Engine
    from engine_shim.store.clock import ClockDifference as ClockDifference
    from engine_shim.store.clock import StoreClock as StoreClock
    from engine_shim.store.entries import RunEntry as RunEntry
    from engine_shim.store.entries import RunFilter as RunFilter
    from engine_shim.store.leases import Leases as Leases
    from engine_shim.store.run_store import RunStore as RunStore
    from engine_shim.store.run_store import SqliteRunStore as SqliteRunStore
    from engine_shim.store.run_store_memory import MemoryRunStore as MemoryRunStore
    from engine_shim.telemetry.telemetry import Telemetry as Telemetry
    from utools.problems import DefinitionErrors as DefinitionErrors

HOMES = {
    "engine_shim.builder.builder": "AgentBuilder",
    "engine_shim.builder.execution": "Execution",
    "engine_shim.builder.graph": "AgentGraph",
    "engine_shim.builder.node": "LLMNode NodeConfig",
    "engine_shim.builder.state": "AgentState Chunk ExecutionResult ExecutionStatus NodeRecord ToolCallRecord",
    "engine_shim.definition.load": "Workflow load_workflow",
    "engine_shim.definition.model": "Definition Edge EnvName Node Retry",
    "engine_shim.errors": "DefinitionError EngineAway EngineError PageDamaged RunBusy RunNotFound WritesRepeated",
    "engine_shim.host.config": "TemporalConfig",
    "engine_shim.runs.drive": "RunResult",
    "engine_shim.runs.engine": "Engine",
    "engine_shim.store.clock": "ClockDifference StoreClock",
    "engine_shim.store.entries": "RunEntry RunFilter",
    "engine_shim.store.leases": "Leases",
    "engine_shim.store.run_store": "RunStore SqliteRunStore",
    "engine_shim.store.run_store_memory": "MemoryRunStore",
    "engine_shim.telemetry.telemetry": "Telemetry",
    "utools.problems": "DefinitionErrors",
}
"""The public names by their modules; each is imported when it is first used: a command loads what it needs."""
__all__ = sorted(" ".join(HOMES.values()).split())


if not TYPE_CHECKING:  # a checker would take any name

    def __getattr__(name: str) -> "Any":
        return _open_menu()[0](name)

    def __dir__() -> "list[str]":
        return _open_menu()[1]()


def _open_menu() -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    try:
        from utools.lazy_menu import lazy_menu
    except ModuleNotFoundError:
        import agent_core  # noqa: F401  # raises: its error names a module of the user's own that hides utools

        raise
    return lazy_menu(__name__, HOMES)
