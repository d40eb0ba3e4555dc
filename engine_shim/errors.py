"""What can go wrong here, as exceptions.

DefinitionError (from utools)   a definition, or what it was started with, cannot be run
EngineError
└── RunNotFound                 the store holds no such run
"""

from utools.errors import DefinitionError

__all__ = ["DefinitionError", "EngineError", "RunNotFound"]


class EngineError(Exception):
    """The root of this package's own exceptions."""


class RunNotFound(EngineError):
    """The store holds no run of this id."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id!r} in this store")
        self.run_id = run_id
