"""The tool `read_observation`, with which a model reads on in what was cut. Pure.

It is offered once an observation was cut. The loop itself knows what it gives, so its call reaches no tool.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_core.config import AgentConfig
from agent_core.outputs import Json
from agent_core.policy import is_denied
from agent_core.protocol.clip import find_cut
from agent_core.tool_policy import Policies, ToolPolicy
from agent_core.words.catalogue import ENGLISH, Words

READ_OBSERVATION = "read_observation"


def reading_policy(words: Words) -> ToolPolicy:
    """Return what a run's policy says of it."""
    schema: Json = {
        "type": "object",
        "properties": {
            "step": {"type": "integer", "minimum": 1, "description": words.reading_step},
            "from": {"type": "integer", "minimum": 0, "description": words.reading_from},
            "call": {"type": "integer", "minimum": 1, "description": words.reading_call},
        },
        "required": ["step", "from"],
        "additionalProperties": False,
    }
    return {
        "description": words.reading,
        "schema": schema,
        "visible": schema,
        "hidden": [],
        "preset": {},
        "effect": "read",
        "idempotent": True,
        "approval": "never",
        "max_calls": None,
        "timeout": None,
        "trusted": False,
        "args": None,
        "provenance": {},
    }


def may_read_on(config: AgentConfig, tools: Policies) -> bool:
    """Return whether a run offers it: the author may deny it, or allow a tool of their own by this name."""
    return READ_OBSERVATION not in tools and not is_denied(READ_OBSERVATION, config)


@dataclass(frozen=True, slots=True)
class Rest:
    """What a model has not seen of an observation: `left` characters from `start` on."""

    step: int
    call: int
    start: int
    left: int


@dataclass(slots=True)
class CutObservations:
    """The observations that were cut to `limit` characters, whole, by (step, call)."""

    limit: int | None
    words: Words = ENGLISH
    _texts: dict[tuple[int, int], str] = field(default_factory=dict)

    def add(self, step: int, call: int, text: str) -> Rest | None:
        """Keep an observation if the model will see it cut; what is left out then."""
        if not self.limit or len(text) <= self.limit:
            return None
        self._texts[step, call] = text
        return Rest(step, call, *find_cut(len(text), self.limit, self.words))

    def fault(self, args: Mapping[str, int]) -> str | None:
        """Return why there is nothing to read there, as a sentence for the model."""
        text = self._texts.get(_place(args))
        if text is None:
            of_call = self.words.call_of_step
            places = [str(step) if call == 1 else of_call.format(step=step, call=call) for step, call in self._texts]
            return self.words.no_such_rest.format(places=", ".join(places), step=args["step"])
        if args["from"] >= len(text):
            return self.words.beyond_the_end.format(length=len(text), start=args["from"])
        return None

    def read(self, args: Mapping[str, int]) -> str:
        """Return the part that is asked for, as long as an observation may be."""
        start = args["from"]
        return self._texts[_place(args)][start : start + (self.limit or 0)]

    def rest_of(self, args: Mapping[str, int]) -> Rest | None:
        """Return what is left after that part."""
        step, call = _place(args)
        end = args["from"] + (self.limit or 0)
        left = len(self._texts[step, call]) - end
        return Rest(step, call, end, left) if left > 0 else None


def _place(args: Mapping[str, int]) -> tuple[int, int]:
    return args["step"], args.get("call", 1)
