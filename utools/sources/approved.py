"""Definitions of tools that are written elsewhere, as the operator approved them: a lock file beside the configuration.

Models see what stands here, never what a server says today; a tool whose server says something else is not called.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from utools.errors import DefinitionError


class Definition(BaseModel):
    """A tool as its server describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    idempotent: bool = False

    @property
    def fingerprint(self) -> str:
        """SHA-256 over name, description and schema, by which one version is told from another."""
        told = {"name": self.name, "description": self.description, "schema": self.input_schema}
        text = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def differs(self, other: "Definition") -> list[str]:
        """In what it is another than the other, of what the fingerprint covers."""
        same = {"description": self.description == other.description, "schema": self.input_schema == other.input_schema}
        return [name for name, equal in same.items() if not equal]


@dataclass(frozen=True, slots=True)
class Change:
    """What approving a server anew would change."""

    server: str
    tool: str
    kind: Literal["new", "changed", "gone"]
    before: Definition | None = None
    after: Definition | None = None


class _Entry(Definition):
    sha256: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    servers: dict[str, list[_Entry]] = {}


@dataclass
class Approved:
    """The lock file. It is read once, and written whole."""

    path: Path
    _servers: dict[str, list[Definition]] | None = field(default=None, repr=False)

    def of(self, server: str) -> list[Definition] | None:
        """What is approved of a server; None if nobody has ever looked at it."""
        return self._read().get(server)

    def write(self, servers: Mapping[str, Sequence[Definition]]) -> None:
        """Approve these definitions of these servers. DefinitionError if that cannot be kept."""
        together = {**self._read(), **{name: list(found) for name, found in servers.items()}}
        entries = {
            name: [_Entry(**dict(each), sha256=each.fingerprint) for each in together[name]]
            for name in sorted(together)
        }
        told = {"format": 1, **_File(servers=entries).model_dump(exclude_defaults=True)}
        text = json.dumps(told, indent=1, ensure_ascii=False)
        try:
            _replace(self.path, f"{text}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            why = f"the approved tools cannot be written down: {error.strerror}; do it once where that is possible"
            raise DefinitionError(why, where=str(self.path)) from None
        self._servers = together

    def _read(self) -> dict[str, list[Definition]]:
        if self._servers is None:
            try:
                read = _File.model_validate_json(self.path.read_bytes())
            except FileNotFoundError:
                read = _File()
            except (OSError, ValidationError) as error:
                told = f"not a list of approved tools: {str(error)[:300]}"
                raise DefinitionError(told, where=str(self.path)) from None
            self._servers = {name: [self._own(name, each) for each in found] for name, found in read.servers.items()}
        return self._servers

    def _own(self, server: str, entry: _Entry) -> Definition:
        definition = Definition(**entry.model_dump(exclude={"sha256"}))
        if definition.fingerprint != entry.sha256:
            told = "was changed by hand after it had been approved; approve the server's tools again"
            raise DefinitionError(told, where=f"{self.path}: {server}/{entry.name}")
        return definition


def changes(server: str, before: Sequence[Definition], after: Sequence[Definition]) -> list[Change]:
    """What is new, changed and gone."""
    old, new = {each.name: each for each in before}, {each.name: each for each in after}
    return [
        *(Change(server, name, "new", None, each) for name, each in new.items() if name not in old),
        *(
            Change(server, name, "changed", old[name], new[name])
            for name in old
            if name in new and old[name] != new[name]
        ),
        *(Change(server, name, "gone", each, None) for name, each in old.items() if name not in new),
    ]


def _replace(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
