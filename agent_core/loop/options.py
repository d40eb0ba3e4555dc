"""Which model a run asks, and with which options, stage by stage. Pure."""

from typing import Literal

from agent_core.config import OF_ENDPOINT
from agent_core.outputs import Json
from agent_core.protocol.step_schema import with_action
from agent_core.protocol.tools_dialect import write_function
from agent_core.tool_policy import ToolPolicy

Stage = Literal["first", "between", "last"]


class Models:
    """The config's model and its fallbacks, and the options of a question."""

    def __init__(self, config: Json, options: Json) -> None:
        self.current: str = config["model"]
        """The model that is asked now."""
        self._fallbacks: list[str] = [*config.get("fallback_models", ())]
        self._is_own = True
        self._all = options
        self._by_stage = options_by_stage(options)

    def has_fallback(self) -> bool:
        return bool(self._fallbacks)

    def use_fallback(self) -> None:
        """Ask the next model from now on."""
        self.current = self._fallbacks.pop(0)
        self._is_own = False

    def options(self, stage: Stage) -> Json:
        """Return the options before any tool was called, between, and where only an answer is legal."""
        options = self._by_stage[stage]
        return options if self._is_own else {name: each for name, each in options.items() if name not in OF_ENDPOINT}

    def offer(self, code: str, policy: ToolPolicy) -> None:
        """Offer one more tool from now on."""
        self._by_stage = options_by_stage(add_tool(self._all, code, policy))


def options_by_stage(options: Json) -> dict[Stage, Json]:
    """Return the options of the run's questions: before any tool was called, between, and where only an answer is
    legal."""
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
    """Return a run's options with one more tool."""
    changed = dict(options)
    if "tools" in options:
        changed["tools"] = [*options["tools"], write_function(code, policy)]
    if "step_schema" in options:
        changed["step_schema"] = with_action(options["step_schema"], code, policy["visible"])
    return changed
