"""The types of a whitelist: what judge has to know of each tool, as records hold it. Pure."""

from collections.abc import Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict

from agent_core.outputs import Json


class ToolBinding(TypedDict):
    """The part of a tool's policy that the config alone decides.

    `args` narrows what a model may send, `provenance` names arguments that must occur in trusted text.
    """

    approval: str
    max_calls: int | None
    timeout: float | None
    trusted: bool
    args: Json | None
    provenance: dict[str, Any]
    rate_limit: NotRequired[str]


class ToolPolicy(ToolBinding):
    """One tool of a run's whitelist, as `run_started` holds it.

    `schema` is the tool's own, `visible` what of it a model sees, `hidden` the names that only the author sets,
    `preset` the author's values. `effect` is read, write or nested; {argument, read, default?} where an argument
    decides; or `dynamic` where only the tool itself knows. `fills` are the places in the preset where the executor
    puts secrets.
    """

    description: str
    schema: Json
    visible: Json
    hidden: list[str]
    preset: Json
    fingerprint: NotRequired[str]
    effect: Any
    idempotent: bool
    fills: NotRequired[list[Json]]


Policies = Mapping[str, ToolPolicy]
"""A run's whitelist by tool code, in the config's order."""
