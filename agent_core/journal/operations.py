"""What the recorder needs done: the operations that a driver performs, and what it sends back.

operation   what the driver does                                     what it sends back
Begin       prepares a run that the tape does not hold yet           the body of `run_started`, or Failed, Cancelled,
                                                                     Suspended
Append      appends the rows                                         None
Act         appends the rows, then acts                              Said, Did, Failed, Cancelled or Doubt; Suspended
                                                                     when it has appended all but the last row
Sleep       waits before a node is tried again                       None, Cancelled or Suspended
Classify    asks a tool's own function what a call would do          "read", "write" or "nested"
Fork        drives the branches side by side, and what `more` adds   what they return, in order of start
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.effects import CallModel, Classify, Json, ToolCall
from agent_core.journal.record import Record, Row, chained


@dataclass(frozen=True, slots=True)
class Spec:
    """A run to be prepared: the nested tool's code, its config, and what its parent hands down.

    `inherited` has what the parent can still spend (tool_calls, tokens, cost, seconds), as `trusted` the texts that
    the parent trusts, and as `fills` where secrets belong in the config; it is empty for a run without a parent.
    `spent` is what earlier attempts at this run have used up.
    """

    tool: str
    config: Json
    inherited: Json = field(default_factory=dict)
    spent: Json | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """Where an answer goes: the next place of a strand, and the hash before it."""

    path: str
    n: int
    head: bytes

    def row(self, record: Record) -> Row:
        return chained(self.path, self.n, self.head, record)


@dataclass(frozen=True, slots=True)
class Begin:
    path: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Append:
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """`key` is the same for every attempt at this act; `doubtful` when it must not happen twice."""

    rows: tuple[Row, ...]
    effect: CallModel | ToolCall
    slot: Slot
    key: str
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Fork:
    branches: Sequence["Operations"]
    more: Callable[[Any], Sequence["Operations"]] | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    """`path` is the strand that begins after it."""

    path: str
    seconds: float


Operation = Begin | Append | Act | Classify | Fork | Sleep
Operations = Generator[Operation, Any, Any]


def walked(operations: Operations, perform: Callable[[Operation], Any]) -> Any:
    """What the operations return, performed one after another; of a fork the branches in order of their start."""
    reply: Any = None
    while True:
        try:
            operation = operations.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = _forked(operation, perform) if isinstance(operation, Fork) else perform(operation)


def _forked(fork: Fork, perform: Callable[[Operation], Any]) -> list[Any]:
    queue, results = list(fork.branches), []
    for branch in queue:
        results.append(walked(branch, perform))
        queue.extend(fork.more(results[-1]) if fork.more else ())
    return results
