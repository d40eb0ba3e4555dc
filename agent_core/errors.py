"""What can go wrong here, as exceptions.

AgentCoreError
├── JournalError        the journal cannot be read or written
│   ├── JournalAway     its database cannot be reached now, or is busy: another try may help
│   ├── Lost            another driver wrote there first: drive again from the tape
│   ├── Damaged         a record is not what its chain says
│   └── Abandoned       this process has let go of the run
├── Divergence          the loop and its tape disagree
├── DecisionError       a person's decision that fits nothing that waits
│   └── DecisionTaken   somebody else has decided about the call
├── AnswerError         a run has no answer, or none of the type that its caller asked for
└── NoEventLoop         there is no event loop of asyncio to run in, or none beside another (also a RuntimeError)

DefinitionError (from utools)   a config, schema or definition that cannot be run
"""

from typing import Any

from utools.errors import DefinitionError, revive

__all__ = [
    "Abandoned",
    "AgentCoreError",
    "AnswerError",
    "Damaged",
    "DecisionError",
    "DecisionTaken",
    "DefinitionError",
    "Divergence",
    "JournalError",
    "Lost",
    "NoEventLoop",
]


class AgentCoreError(Exception):
    """The root of this package's own exceptions.

    What to do: catch it for every error of agent_core.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return revive, (type(self), self.args, self.__dict__)


class JournalError(AgentCoreError):
    """A journal that cannot be read or written.

    What to do: do what the message says: another path, more space, the right to write.
    """


class JournalAway(JournalError):
    """A journal whose database cannot be reached now, or is busy; what was to be written may be written again.

    What to do: run again with the same run id: it goes on where its records end.
    """


class Lost(JournalError):
    """Another driver appended to this strand first.

    What to do: let the other driver go on; `run_agent` with the same run id follows its records.
    """

    def __init__(self, path: str, n: int) -> None:
        super().__init__(f"another driver already wrote record {n} of strand {path!r}")
        self.path, self.n = path, n


class Damaged(JournalError):
    """A record that is not what its chain says.

    What to do: restore the journal from a copy; `verify` names the damage.
    """

    def __init__(self, path: str, n: int, why: str) -> None:
        super().__init__(f"record {n} of strand {path!r} is damaged: {why}")
        self.path, self.n = path, n


_CONVERSATION = "conversation:"
"""How the names of conversations begin, among those of what is encrypted."""


class Unreadable(JournalError):
    """The records of a run were erased, or are encrypted by a key that is not here. They can still be verified.

    What to do: set AGENT_CORE_ENCRYPTION_KEY to the key of the store; what was erased cannot be had again.
    """

    def __init__(
        self, run: str, *, erased: bool, kind: str = "run", variable: str = "AGENT_CORE_ENCRYPTION_KEY"
    ) -> None:
        if run.startswith(_CONVERSATION):
            kind, run = "conversation", run.removeprefix(_CONVERSATION)
        key = f"it is encrypted: set {variable} to the key of its store"
        super().__init__(f"{kind} {run!r} cannot be read: {'it was erased' if erased else key}")
        self.erased = erased


class Newer(JournalError):
    """A run that a newer version of agent_core wrote; `why` names the format or the rules that are not known here.

    What to do: read the run, and go on with it, by that version.
    """

    def __init__(self, run: str, why: str) -> None:
        super().__init__(f"run {run!r} cannot be read: {why}")
        self.why = why


class Abandoned(JournalError):
    """This process has let go of a run, and writes nothing more into it.

    What to do: resume the run.
    """

    def __init__(self, run: str) -> None:
        super().__init__(f"this process no longer drives run {run!r}; resume it, and it continues from its records")


class Divergence(AgentCoreError):
    """What the loop does now is not what the tape says it did.

    What to do: run the version that wrote the record, or fork the run before the record.
    """

    def __init__(self, strand: str, n: int, recorded: Any, now: Any) -> None:
        super().__init__(f"record {n} of strand {strand!r} says {recorded!r}, but the loop now says {now!r}")
        self.strand, self.n, self.recorded, self.now = strand, n, recorded, now


class DecisionError(AgentCoreError):
    """A decision that names nothing that waits, or that does not fit what waits there.

    `where` is the part that is at fault: `at` (the place), `decision`, `args`, or empty.

    What to do: take the place from what waits, and give a decision that fits it.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class DecisionTaken(DecisionError):
    """A decision about a call that is decided already, or was cancelled.

    What to do: look at the run: another person has decided.
    """


class AnswerError(AgentCoreError):
    """A run without an answer, or without one of the type that its caller asked for.

    `output` is its `AgentOutput`, of a graph its `ExecutionResult`, with the answer as JSON.

    What to do: look at the `finish_reason` and the `error` of `output`; correct the type, if it refuses what its schema
    lets through.
    """

    def __init__(self, message: str, output: Any) -> None:
        super().__init__(message)
        self.output = output


class NoEventLoop(AgentCoreError, RuntimeError):
    """An async function that was called outside an event loop of asyncio, or a `_sync` one in a green thread (gevent,
    eventlet) beside another run.

    What to do: call the function that ends in `_sync`, or await it under `asyncio.run`; run no agents beside each other
    in a process of green threads.
    """
