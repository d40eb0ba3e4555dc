"""The node as an activity in a program's own workflow on Temporal; a run of a host as its child workflow."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.plugins.temporal.activity import AgentRequest as AgentRequest
    from engine_shim.plugins.temporal.activity import make_agent_activity as make_agent_activity
    from engine_shim.plugins.temporal.child import ChildRequest as ChildRequest
    from engine_shim.plugins.temporal.child import child_run_id as child_run_id
    from engine_shim.plugins.temporal.child import run_child as run_child

HOMES = {
    "engine_shim.plugins.temporal.activity": "AgentRequest make_agent_activity",
    "engine_shim.plugins.temporal.child": "ChildRequest child_run_id run_child",
}
"""The public names by their modules; each is imported when it is first used: the sandbox of a workflow loads little."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
