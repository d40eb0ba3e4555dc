"""WorkflowFiles: the definitions in the directory of a tenant's workflows, as they are read and saved from afar."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

from agent_core.outputs import Json
from engine_shim.definition.errors import problems_in, refuse
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.host.saved_files import SavedFiles
from engine_shim.service.draft_view import clean_problem
from engine_shim.service.drafts import Drafts, Format
from engine_shim.service.shares import OverShare
from engine_shim.service.workflows import WorkflowCatalog, WorkflowNotFound
from utools.files.atomic import create_file, locked
from utools.lazy_pattern import lazy_compile

MOST_STORED: Final = 64 * 1024 * 1024
"""Bytes that the versions of a directory which came over HTTP may have together; those of one token half as many."""
VERSION: Final = lazy_compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
"""Versions that can be a part of a file's name."""


class VersionExists(EngineError):
    """A version is there already, and says something else."""

    def __init__(self, identity: str, version: str) -> None:
        super().__init__(f"there is a version {version!r} of {identity!r} already; save this one as another version")


class EditedMeanwhile(EngineError):
    """Somebody has saved a version since."""

    def __init__(self, identity: str, newest: str) -> None:
        super().__init__(f"{newest!r} is the newest version of {identity!r} now; look at it before you save yours")


class SharedDirectory(EngineError):
    """A directory of workflows that others use as well."""

    def __init__(self) -> None:
        super().__init__(
            "this tenant shares the directory of its workflows with others; only the operator can save there"
        )


class TooMuchStored(OverShare):
    """The versions that a token, or a tenant, has saved have as many bytes as they may have."""

    def __init__(self, whose: str, most: int) -> None:
        EngineError.__init__(
            self, f"{whose} may save versions of {most:,} bytes in all; ask the operator to delete some"
        )


class NotWritable(EngineError):
    """The directory of the workflows cannot be written."""


@dataclass(frozen=True, slots=True)
class WorkflowFiles:
    """The files of one tenant. `is_own` says that no other tenant reads the directory, nor the host."""

    directory: Path
    catalog: WorkflowCatalog
    drafts: Drafts
    saved: SavedFiles
    is_own: bool
    _lock: Lock = field(default_factory=Lock, repr=False)

    def read_source(self, name: str) -> Json:
        """Return the text that defines a workflow, `id@version` or the newest version of `id`. WorkflowNotFound."""
        workflow = self.catalog.get(name)
        path = _file_of(workflow)
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError):  # it has just gone, or changed
            raise WorkflowNotFound(name, []) from None
        definition = workflow.definition
        return {
            "id": definition.id,
            "version": definition.version,
            "format": "json" if path.suffix == ".json" else "yaml",
            "text": text,
            "file": path.relative_to(self.directory).as_posix(),
        }

    def save(
        self, identity: str, text: str, form: Format, expects: str | None, token: str
    ) -> tuple[CheckedWorkflow, bool]:
        """Save a text that came with a token as a new version; gives it, and whether it is new.

        `expects` is the newest version that the text began from, None where there was none. DefinitionErrors for all
        that is wrong, VersionExists, EditedMeanwhile, SharedDirectory, NotWritable, TooMuchStored; with nothing saved.
        """
        if not self.is_own:
            raise SharedDirectory
        definition = self.drafts.load(text, form, identity).definition
        if definition.id != identity:
            raise DefinitionError(
                f"must be {identity!r}, the id under which it is saved", where="id", value=definition.id
            )
        if not VERSION.fullmatch(definition.version):
            allowed = "must be 1 to 64 letters, digits or any of _ . + -, not starting with a sign, to name a file"
            raise DefinitionError(allowed, where="version", value=definition.version)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with self._lock, locked(self.directory):
                return self._save(identity, definition.version, text.encode(), form, expects, token)
        except OSError as error:
            raise NotWritable(f"{self.directory} cannot be written: {error.strerror}") from None

    def _save(
        self, identity: str, version: str, data: bytes, form: Format, expects: str | None, token: str
    ) -> tuple[CheckedWorkflow, bool]:
        versions: Mapping[str, CheckedWorkflow] = self.catalog.list().get(identity, {})
        if version in versions:
            if _file_of(versions[version]).read_bytes() != data:
                raise VersionExists(identity, version)
            return versions[version], False
        newest = next(iter(versions), None)
        if newest not in (None, expects):
            raise EditedMeanwhile(identity, str(newest))
        path = self.directory / f"{identity}@{version}.{form}"
        self._check_room(len(data), token)
        self.saved.add(path.name, data, token)
        try:
            create_file(path, data)
        except FileExistsError:
            raise VersionExists(identity, version) from None
        try:
            self.catalog.load()
        except DefinitionError as error:
            path.unlink()
            refuse(clean_problem(each, self.directory) for each in problems_in(error))
        return self.catalog.get(f"{identity}@{version}"), True

    def _check_room(self, size: int, token: str) -> None:
        """TooMuchStored where so many bytes more are too many."""
        stored = self.saved.measure()
        if stored.get(token, 0) + size > MOST_STORED // 2:
            raise TooMuchStored("this token", MOST_STORED // 2)
        if sum(stored.values()) + size > MOST_STORED:
            raise TooMuchStored("this tenant", MOST_STORED)


def _file_of(workflow: CheckedWorkflow) -> Path:
    """Return the file that a workflow of the catalogue was read from."""
    document = workflow.workflow.document
    assert document is not None
    return document.path
