"""What the recorder needs done: the operations that a driver performs, and what it sends back. Pure.

operation   what the driver does                                     what it sends back
Begin       prepares a run that is not on the tape yet               the body of `run_started`, or Failed, Cancelled,
                                                                     Suspended
Append      appends the rows                                         None
Act         appends the rows, then acts                              ModelReply, ToolReply, Failed, Cancelled or
                                                                     InDoubt; Suspended or Received when it has
                                                                     appended all but the last row
Sleep       waits before a node is tried again                       None, Cancelled or Suspended
Listen      appends the rows, then waits for a time or a signal      Elapsed, Signalled or Cancelled; None when the run
                                                                     is to be let go until then
Classify    asks a tool's own function what a call would do          "read", "write" or "nested"
Fork        drives branches at the same time, and what `more` adds   what they return, in order of start
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.effects import CallModel, Classify, ToolCall
from agent_core.encryption.record_cipher import Encrypt
from agent_core.inherited import Inherited
from agent_core.journal.record import Row, chain_row
from agent_core.outputs import Json


@dataclass(frozen=True, slots=True)
class Spec:
    """A run to be prepared: the nested tool's code, its config, and what its parent hands down.

    `spent` is what earlier attempts at this run have used up, `language` that of the model which reads how it ended.
    """

    tool: str
    config: Json
    inherited: Inherited = field(default_factory=Inherited)
    spent: Json | None = None
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the next record of a strand goes: its number, the hash before it, and what encrypts it, if its store is."""

    path: str
    n: int
    head: bytes
    encrypt: Encrypt | None = field(default=None, repr=False, compare=False)

    def row(self, record: Mapping[str, object]) -> Row:
        return chain_row(self.path, self.n, self.head, record, self.encrypt)


@dataclass(frozen=True, slots=True)
class Begin:
    """`slot` is where `run_started` goes; `rows` wait for the next operation that needs them on disk."""

    slot: Slot
    spec: Spec
    rows: tuple[Row, ...]

    @property
    def path(self) -> str:
        return self.slot.path

    def started(self, body: Mapping[str, Any]) -> Json:
        """Return the record that the run begins with."""
        return {"kind": "run_started", **body, **({} if self.spec.spent is None else {"spent": self.spec.spent})}


def started_body(record: Json) -> Json:
    """Return the body that a run's first record was made of."""
    return {key: value for key, value in record.items() if key not in ("kind", "spent")}


@dataclass(frozen=True, slots=True)
class Append:
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """`slot` is where the answer goes. `key` is the same for every attempt at this act; `once_only` when it must not
    happen twice: such an act has to be ready to begin before its last row, the `asked`, is appended."""

    rows: tuple[Row, ...]
    effect: CallModel | ToolCall
    slot: Slot
    key: str
    once_only: bool


@dataclass(frozen=True, slots=True)
class Fork:
    branches: Sequence["Operations"]
    more: Callable[[Any], Sequence["Operations"]] | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    """`path` is the strand that begins after it."""

    path: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Listen:
    """`slot` is where the event goes; `until` is a time in ISO 8601, UTC."""

    rows: tuple[Row, ...]
    slot: Slot
    until: str | None
    signal: str | None


Operation = Begin | Append | Act | Classify | Fork | Sleep | Listen
Operations = Generator[Operation, Any, Any]
Perform = Callable[[Operation], Any]


def walk_branches(fork: Fork, perform: Perform) -> list[Any]:
    """Return what the branches of a fork return, walked in order of their start."""
    queue, results = list(fork.branches), list[Any]()
    for branch in queue:
        results.append(walk(branch, perform))
        queue.extend(fork.more(results[-1]) if fork.more else ())
    return results


def walk(
    operations: Operations, perform: Perform, walk_fork: Callable[[Fork, Perform], list[Any]] = walk_branches
) -> Any:
    """Return what the operations return, performed one after another."""
    reply: Any = None
    while True:
        try:
            operation = operations.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = walk_fork(operation, perform) if isinstance(operation, Fork) else perform(operation)
