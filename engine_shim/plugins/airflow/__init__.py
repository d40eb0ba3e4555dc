"""The node as a task of Airflow: `AgentCoreOperator`, and `@task.agent_core`."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.plugins.airflow.decorator import agent_core_task as agent_core_task
    from engine_shim.plugins.airflow.operator import AgentCoreOperator as AgentCoreOperator

HOMES = {
    "AgentCoreOperator": "engine_shim.plugins.airflow.operator",
    "agent_core_task": "engine_shim.plugins.airflow.decorator",
}
"""The public names, each imported from its module when it is first used: Airflow asks for the provider's info alone."""
__all__ = list(HOMES)
__getattr__, __dir__ = lazy_menu(__name__, HOMES)
