"""The lock file: definitions of tools from elsewhere, as the operator approved them.

It lies beside the host's configuration. Models see the definitions in it, never what a server says today; a tool that
its server defines otherwise is not called.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from utools.errors import DefinitionError
from utools.files.atomic import locked, replace_file
from utools.json_text import digest_json
from utools.schema.model_faults import find_model_faults, keys_of


class Definition(BaseModel):
    """A tool as its server describes it; `fault` says why one cannot be used, whatever is approved."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    idempotent: bool = False
    fault: str | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over name, description and schema, which tells one version from another."""
        fields = {"name": self.name, "description": self.description, "schema": self.input_schema}
        return digest_json(fields)

    def differences(self, other: "Definition") -> list[str]:
        """Return which of the fields under the fingerprint differ."""
        same = {"description": self.description == other.description, "schema": self.input_schema == other.input_schema}
        return [name for name, equal in same.items() if not equal]


@dataclass(frozen=True, slots=True)
class Change:
    """What a new approval of a source would change."""

    source: str
    tool: str
    kind: Literal["new", "changed", "gone"]
    before: Definition | None = None
    after: Definition | None = None


class _Entry(Definition):
    sha256: str

    def definition(self) -> Definition:
        return Definition(**self.model_dump(exclude={"sha256"}))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    format: Literal[1] = 1
    sources: dict[str, list[_Entry]] = {}


class ToolLockFile:
    """The lock file. Several hosts may write their own sources into it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def approved(self, source: str) -> list[Definition] | None:
        """Return the approved definitions of a source; None before its first use.

        DefinitionError for a definition that was changed in the file, and not approved.
        """
        entries = self._read().get(source)
        for each in entries or ():
            if each.fingerprint != each.sha256:
                raise DefinitionError(
                    "was changed by hand after it had been approved; approve it anew by "
                    f"`agent-core tools approve {source}`",
                    where=f"{self._path}: {source}/{each.name}",
                )
        return None if entries is None else [each.definition() for each in entries]

    def recorded(self, source: str) -> list[Definition]:
        """Return the definitions in the file, approved or changed by hand."""
        return [each.definition() for each in self._read().get(source, ())]

    def write(self, sources: Mapping[str, Sequence[Definition]]) -> None:
        """Approve these definitions of these sources. DefinitionError if the file cannot be written."""
        entries = {
            name: [_Entry(**dict(each), sha256=each.fingerprint) for each in found] for name, found in sources.items()
        }
        try:
            with locked(self._path.parent):
                merged = {**self._read(), **entries}
                replace_file(self._path, _to_bytes({name: merged[name] for name in sorted(merged)}))
        except OSError as error:
            why = f"the approved tools cannot be saved: {error.strerror}; approve them where this file can be written"
            raise DefinitionError(why, where=str(self._path)) from None

    def _read(self) -> "dict[str, list[_Entry]]":
        try:
            return _File.model_validate_json(self._path.read_bytes()).sources
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise DefinitionError(f"cannot be read: {error.strerror}", where=str(self._path)) from None
        except ValidationError as error:
            fault = f"is no list of approved tools: {_explain(error)}"
            remedy = "delete it, and `agent-core tools approve` writes it anew"
            raise DefinitionError(f"{fault}; {remedy}", where=str(self._path)) from None


def _explain(error: ValidationError) -> str:
    """Return the first fault of the file, and where in it."""
    fault = next(find_model_faults(error, keys_of(_File), {"json_invalid": "it is not JSON"}))
    place = "/".join(map(str, fault.position))
    return f"{place}: {fault.text}" if place else fault.text


def find_changes(source: str, before: Sequence[Definition], after: Sequence[Definition]) -> list[Change]:
    """Return what is new, changed and gone."""
    old, new = {each.name: each for each in before}, {each.name: each for each in after}
    changed = [name for name in old if name in new and old[name] != new[name]]
    return [
        *(Change(source, name, "new", None, each) for name, each in new.items() if name not in old),
        *(Change(source, name, "changed", old[name], new[name]) for name in changed),
        *(Change(source, name, "gone", each, None) for name, each in old.items() if name not in new),
    ]


def _to_bytes(sources: dict[str, list[_Entry]]) -> bytes:
    fields = _File(sources=sources).model_dump(exclude_defaults=True)
    text = json.dumps({"format": 1, **fields}, indent=1, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")
