"""ModelReach: the files and endpoints to which the models of a definition may lead, checked where a client is made."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from agent_core.errors import DefinitionError
from agent_core.models.vendors import normalize_url
from utools.errors import SandboxError
from utools.files.held_path import hold_path

ROOT: Final = Path("/")


@dataclass(frozen=True, slots=True)
class ModelReach:
    """What an operator has given to definitions.

    `files` are globs of absolute paths, `within` and `without` are directories whose files may and may not be named
    besides. `endpoints` are base URLs, each with the variable of its key, or None for one that wants no key; without
    `endpoints` each may be named. `vendors` adds the endpoint that each vendor has on this host.
    `parameters` are the names of the vendor's own parameters that may be sent, and `names` those of the host's own
    endpoints that may be asked; without these, each may be.
    """

    files: Sequence[str] = ()
    within: Sequence[Path] = ()
    without: Sequence[Path] = ()
    endpoints: Mapping[str, str | None] | None = None
    vendors: bool = False
    parameters: Collection[str] | None = None
    names: Collection[str] | None = None

    def find_file(self, path: Path, named: str) -> Path:
        """Return the file at a path, its links resolved. DefinitionError, the same whether there is such a file or not,
        for one that is not given; `named` is what the definition calls the model."""
        try:
            real = hold_path(path, [ROOT])
            if any(fnmatchcase(str(real), glob) for glob in self.files):
                return real
            return hold_path(path, self.within, self.without)
        except SandboxError:
            message = "this definition may not name this file; the operator lists what it may in model_files"
            raise DefinitionError(message, where="model", value=named) from None

    def check_name(self, name: str) -> None:
        """DefinitionError for an endpoint of the host's own that is not given."""
        if self.names is not None and name not in self.names:
            message = "this definition may not ask this endpoint; the operator lists those it may in model_endpoints"
            raise DefinitionError(message, where="model", value=name)

    def check_extra(self, extra: Mapping[str, Any]) -> None:
        """DefinitionError for a parameter of the vendor that is not given."""
        if self.parameters is None:
            return
        if refused := [name for name in extra if name not in self.parameters]:
            message = "this definition may not send this parameter; the operator lists those it may in model_parameters"
            raise DefinitionError(message, where=f"extra/{refused[0]}", value=extra[refused[0]])

    def check_endpoint(self, url: str, *, is_chosen: bool) -> None:
        """DefinitionError for an endpoint that is not given; `is_chosen` says that the definition names it itself."""
        if self.endpoints is None or (self.vendors and not is_chosen):
            return
        if normalize_url(url) not in map(normalize_url, self.endpoints):
            message = "this definition may not ask this endpoint; the operator lists those it may in model_endpoints"
            raise DefinitionError(message, where="base_url" if is_chosen else "model", value=url)
