"""What goes to a model beside the messages, as it is at one step of a run. Pure."""

from agent_core.effects import Json

OWN_ENDPOINT = ("base_url", "api_key_env")
"""What belongs to the config's model, and to none that stands in for it."""


class Options:
    """The run's options. `final_schema` and `tool_choice` are for certain steps only."""

    def __init__(self, options: Json) -> None:
        usual = {name: value for name, value in options.items() if name not in ("final_schema", "tool_choice")}
        self._usual = self._first = self._last = usual
        if "tool_choice" in options:
            self._first = {**usual, "tool_choice": options["tool_choice"]}
        if options.get("tool_choice") == "none":
            self._usual = self._first
        if "final_schema" in options:
            self._last = {**usual, "step_schema": options["final_schema"]}
        if "tools" in options:
            self._last = {**usual, "tool_choice": "none"}

    def now(self, *, first: bool, last: bool, own: bool) -> Json:
        """The options before any tool was called (`first`), where only an answer is legal (`last`), and between.

        `own` says whether the config's own model is asked.
        """
        options = self._last if last else self._first if first else self._usual
        return options if own else {name: value for name, value in options.items() if name not in OWN_ENDPOINT}
