"""A dialect: how neutral messages reach a model, and how its replies are read. Everything behind it is one code. Pure.

`json` is the Action/Final protocol in plain text, for any model; `tools` is native function calling.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from agent_core.effects import Json, ModelReply, ToolCall
from agent_core.protocol.parse import Action, Final, Mode, ProtocolError

Reading = Sequence[Action] | Final | ProtocolError
ECHO_MAX = 2000
"""Characters of a reply that was unreadable or refused that the model is shown again."""


class Entry(NamedTuple):
    """One message as it is sent: role, content, and `more` of what the wire knows.

    `observation` may be shortened, `turn` numbers the turns that may be dropped.
    """

    role: str
    content: str
    observation: bool = False
    turn: int | None = None
    more: Mapping[str, object] | None = None

    def wire(self) -> Json:
        message: Json = {"role": self.role, "content": self.content}
        return {**message, **self.more} if self.more else message


class Observation(NamedTuple):
    """What came of one call, as the model is told: it was `seen`, the tool `failed`, or the call was `refused`."""

    call: ToolCall
    text: str
    how: Literal["seen", "failed", "refused"]


class Dialect(Protocol):
    """The words of one run. Entries come in two parts: the model's own step, and what it hears of that."""

    def opening(self, messages: Sequence[Json]) -> list[Entry]:
        """The conversation before the run."""
        ...

    def read(self, reply: ModelReply, *, mode: Mode, any_answer: bool) -> Reading:
        """The calls or the answer that a reply is, or why it is neither. `any_answer`: it may be any JSON value."""
        ...

    def acted(
        self, reply: ModelReply, thought: str | None, told: Sequence[Observation]
    ) -> tuple[list[Entry], list[Entry]]: ...

    def unreadable(self, reply: ModelReply, error: str, id_: str) -> tuple[list[Entry], list[Entry]]:
        """`id_` is what calls that could not be read are known by."""
        ...
