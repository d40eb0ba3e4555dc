"""The options of a run's questions, stage by stage. Pure."""

from agent_core.effects import Json
from agent_core.policy import ToolPolicy
from agent_core.protocol.step_schema import with_action
from agent_core.protocol.tools_dialect import write_function


def options_by_stage(options: Json) -> dict[str, Json]:
    """The options of the run's questions: before any tool was called, between, and where only an answer is legal."""
    usual = {name: value for name, value in options.items() if name not in ("final_schema", "tool_choice")}
    first = between = last = usual
    if "tool_choice" in options:
        first = {**usual, "tool_choice": options["tool_choice"]}
    if options.get("tool_choice") == "none":
        between = first
    if "final_schema" in options:
        last = {**usual, "step_schema": options["final_schema"]}
    if "tools" in options:
        last = {**usual, "tool_choice": "none"}
    return {"first": first, "between": between, "last": last}


def add_tool(options: Json, code: str, policy: ToolPolicy) -> Json:
    """A run's options with one more tool."""
    changed = dict(options)
    if "tools" in options:
        changed["tools"] = [*options["tools"], write_function(code, policy)]
    if "step_schema" in options:
        changed["step_schema"] = with_action(options["step_schema"], code, policy["visible"])
    return changed
