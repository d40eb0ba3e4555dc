"""What a model says, in no vendor's words; and the stand-in of one API, which puts it into them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from support.loopback import Request

Json = dict[str, Any]
KEY = "key-of-the-vendor"
Finish = Literal["stop", "length", "content_filter", "malformed_call"]


class Counts(NamedTuple):
    """The tokens of a reply; `input` has those from the cache and those written to it, `output` those of thoughts."""

    input: int = 120
    output: int = 30
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    """A reply: a text, or calls, (name, arguments) each, or both. `thought` is what the model has thought before."""

    text: str = ""
    calls: Sequence[tuple[str, Json]] = ()
    thought: str = ""
    finish: Finish = "stop"
    counts: Counts = field(default_factory=Counts)


class Asked(NamedTuple):
    """What a request asks for, read from its body: so that tests can look at it, whatever the API.

    `said` are the texts of the conversation in order, system first; `calls` the names of earlier calls with their
    arguments, `results` what they gave. `thoughts` says whether each earlier reply with calls came back with what its
    vendor wants back of it. `marks` are the places of the conversation after which its cache is to reach, where the API
    has such: the number of texts and results before each.
    """

    model: str
    said: list[str]
    tools: list[str]
    calls: list[tuple[str, Json]]
    results: list[str]
    thoughts: list[bool]
    streams: bool
    options: Json
    marks: list[int]


class WireStandIn(Protocol):
    """One vendor's API. Bodies are those that its SDK writes and reads."""

    provider: str
    """The name before the colon of a model."""
    api: str
    keys: str
    """The environment's variable for its key."""
    url_env: str
    """The environment's variable for its base URL, as the vendor's own SDK has it."""

    def is_its_path(self, request: Request) -> bool:
        """Return whether a question to the model `m1` comes to this target."""
        ...

    def key_of(self, request: Request) -> str | None:
        """Return the key that came with a request."""
        ...

    def read(self, request: Request) -> Asked:
        """Return what is asked; AssertionError for a body that the SDK's request types, or the vendor's rules for a
        conversation, do not allow."""
        ...

    def whole(self, turn: Turn, number: int) -> bytes:
        """Return the body of a whole reply, as the SDK's response types write it. `number` makes ids differ."""
        ...

    def events(self, turn: Turn, number: int) -> list[bytes]:
        """Return the pieces of the body of the same reply in a stream, in the vendor's event form."""
        ...

    def error(self, status: int, message: str, kind: str = "") -> bytes:
        """Return the body of a refusal; `kind` is the vendor's word for it, that of the status without one."""
        ...
