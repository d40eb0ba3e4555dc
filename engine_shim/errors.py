"""The exceptions of this package.

DefinitionError (from utools)   a definition cannot be run, or not with these inputs
EngineError
├── RunNotFound                 the store holds no such run
├── RunBusy                     somebody drives the run at this moment
├── EngineAway                  what drives the runs cannot be reached at this moment
├── PageDamaged                 the journal in an exported page cannot be read any more
└── WritesRepeated              a fork may make writes again that were made
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from utools.errors import DefinitionError, revive

if TYPE_CHECKING:
    from agent_core.audit.repeats import MadeWrite

__all__ = [
    "DefinitionError",
    "EngineAway",
    "EngineError",
    "PageDamaged",
    "RunBusy",
    "RunNotFound",
    "WritesRepeated",
]


class EngineError(Exception):
    """The root of this package's own exceptions.

    What to do: catch it for every error of engine_shim.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return revive, (type(self), self.args, self.__dict__)


class RunNotFound(EngineError):
    """The store holds no run of this id. `gone` is what the ledger says of one that it held.

    What to do: correct the id, or the store.
    """

    def __init__(self, run_id: str, gone: str = "") -> None:
        super().__init__(f"there is no run {run_id!r} in this store{f' any more: {gone}' if gone else ''}")
        self.run_id, self.gone = run_id, gone


class PageDamaged(EngineError):
    """What an exported page holds in place of its journal cannot be read.

    What to do: ask for the page anew.
    """


class RunBusy(EngineError):
    """Another driver drives this run at this moment.

    What to do: wait for its end, or pause or cancel the run.
    """

    def __init__(self, run_id: str, driver: str) -> None:
        host, _, rest = driver.partition(":")
        driven = f"run {run_id!r} is being driven by process {rest.partition(':')[0]} on {host}"
        super().__init__(f"{driven}; wait for its end, or pause or cancel it")
        self.run_id, self.driver = run_id, driver


class EngineAway(EngineError):
    """What drives the runs, such as a Temporal server, cannot be reached at this moment. The store has the run.

    What to do: call again once the server is back.
    """


class WritesRepeated(EngineError):
    """A fork leaves out writes that were made, and may make them again: the caller has to say that it may.

    What to do: look at `writes`; pass `repeat_writes=True` if they may be made again.
    """

    def __init__(self, run_id: str, writes: "Sequence[MadeWrite]") -> None:
        shown = ", ".join(map(str, writes[:5])) + (f" and {len(writes) - 5} more" if len(writes) > 5 else "")
        super().__init__(f"run {run_id!r} made writes after that record, which the fork may make again: {shown}")
        self.run_id, self.writes = run_id, tuple(writes)
