"""A dialect: how neutral messages reach a model, and how its replies are read. Pure.

`json` is the Action/Final protocol in plain text, for any model; `tools` is native function calling. All code behind
a dialect is the same for both.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from agent_core.effects import ModelReply, ToolCall
from agent_core.outputs import Json
from agent_core.protocol.feedback import Status
from agent_core.protocol.parse import Action, Final, Mode, ProtocolError

Reading = Sequence[Action] | Final | ProtocolError
"""What a reply is: calls, an answer, or neither."""
MAX_ECHO = 2000
"""Characters of an unreadable or refused reply that the model sees again."""


class Entry(NamedTuple):
    """One message as it is sent: role, content, and `more` fields of the wire format.

    `observation` may be shortened. `turn` numbers the turns before the run that may be dropped, `step` its own steps.
    """

    role: str
    content: str
    observation: bool = False
    turn: int | None = None
    more: Mapping[str, object] | None = None
    step: int | None = None

    def to_wire(self) -> Json:
        message: Json = {"role": self.role, "content": self.content}
        return {**message, **self.more} if self.more else message


def with_notice(entries: Sequence[Entry], notice: str | None) -> list[Entry]:
    """Return the entries, with a notice at the end of the user's turn."""
    if not notice:
        return list(entries)
    if entries and entries[-1].role == "user":
        return [*entries[:-1], entries[-1]._replace(content=f"{entries[-1].content}\n\n{notice}")]
    return [*entries, Entry("user", notice)]


class Observation(NamedTuple):
    """What became of one call, as the model reads it. `hint` says how it can read on; it is said in this run alone."""

    call: ToolCall
    text: str
    status: Status
    hint: str = ""

    @property
    def whole(self) -> str:
        return f"{self.text} {self.hint}" if self.hint else self.text


class Exchange(NamedTuple):
    """The entries of one step: the model's own message, and the feedback to it."""

    own: list[Entry]
    feedback: list[Entry]


class Dialect(Protocol):
    """The words of one run."""

    def open_conversation(self, messages: Sequence[Json]) -> list[Entry]:
        """Return the conversation before the run."""
        ...

    def read_reply(self, reply: ModelReply, *, mode: Mode, any_answer: bool) -> Reading:
        """Return the calls or the answer that a reply is, or why it is neither. `any_answer`: any JSON value will
        do."""
        ...

    def write_results(
        self, reply: ModelReply, thought: str | None, observations: Sequence[Observation]
    ) -> Exchange: ...

    def count_results(self, calls: int, *, has_notice: bool) -> int:
        """Return how many entries the results of so many calls are, the model's own message and a notice behind them
        included."""
        ...

    def write_protocol_error(self, reply: ModelReply, error: str, call_id: str) -> Exchange:
        """`call_id` names calls that could not be read."""
        ...
