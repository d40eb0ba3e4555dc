"""Variables: the plain variables of the environment that a definition may read."""

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from engine_shim.errors import DefinitionError
from engine_shim.host.own_variables import is_own


@dataclass(frozen=True, slots=True)
class Variables:
    """`listed` are those that the operator lists; with `others`, the rest may be read as well, but for the
    host's own. `has_list` says that there is somewhere to list them."""

    listed: Set[str] = frozenset()
    is_own: Callable[[str], bool] = is_own
    others: bool = True
    has_list: bool = False

    def check(self, name: str) -> None:
        """DefinitionError, the same whether it is set or not, for a variable that this definition may not read."""
        if not self.others and name not in self.listed:
            message = "this definition may not read this variable; the operator lists those it may in env"
            raise DefinitionError(message, value=name)
        if self.is_own(name):
            raise DefinitionError("this variable is the host's own, and no definition may read it", value=name)

    def read(self, name: str, environment: Mapping[str, str] = os.environ) -> str:
        """Return the value. DefinitionError for a variable that may not be read, or that is not set."""
        self.check(name)
        if name not in environment:
            raise DefinitionError("this variable is not set", value=name)
        return environment[name]

    def warns_of(self, name: str) -> bool:
        """Return whether it is read only since nothing forbids it, on a host that lists others."""
        return self.has_list and name not in self.listed
