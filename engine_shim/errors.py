"""The exceptions of this package.

DefinitionError (from utools)   a definition cannot be run, or not with these inputs
EngineError
├── RunNotFound                 the store holds no such run
└── RunBusy                     somebody drives the run at this moment
"""

from utools.errors import DefinitionError

__all__ = ["DefinitionError", "EngineError", "RunBusy", "RunNotFound"]


class EngineError(Exception):
    """The root of this package's own exceptions."""


class RunNotFound(EngineError):
    """The store holds no run of this id."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id!r} in this store")
        self.run_id = run_id


class RunBusy(EngineError):
    """Another driver drives this run at this moment."""

    def __init__(self, run_id: str, driver: str) -> None:
        host, _, rest = driver.partition(":")
        driven = f"run {run_id!r} is being driven by process {rest.partition(':')[0]} on {host}"
        super().__init__(f"{driven}; wait for its end, or pause or cancel it")
        self.run_id, self.driver = run_id, driver
