"""The node as a task of Airflow: `AgentCoreOperator`, and `@task.agent_core`."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.plugins.airflow.decorator import agent_core_task as agent_core_task
    from engine_shim.plugins.airflow.operator import AgentCoreOperator as AgentCoreOperator

HOMES = {
    "engine_shim.plugins.airflow.decorator": "agent_core_task",
    "engine_shim.plugins.airflow.operator": "AgentCoreOperator",
}
"""The public names by their modules; each is imported when it is first used: Airflow needs a provider's info alone."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
