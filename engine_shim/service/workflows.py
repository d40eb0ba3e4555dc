"""WorkflowCatalog: the workflows of a host by `id@version`, as the files of a directory define them."""

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final

from engine_shim.definition.errors import Problem, problems_in, refuse
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.service.changed_files import FileStamps
from utools.document import read_document

IsDue = Callable[[str], bool]
Check = Callable[[Path], CheckedWorkflow]
"""Loads the workflow of a file and checks it; DefinitionError for each fault."""
PREVIEW, END, TEXT, NUMBER = range(4)
"""What may come next in a version, in the order in which versions sort that are the same up to there."""
PREVIEWS: Final = frozenset({"alpha", "beta", "dev", "pre", "preview", "rc", "snapshot"})
log = logging.getLogger("engine_shim")


class WorkflowNotFound(EngineError):
    """The catalogue has no such workflow, or no such version of it; `why` is given for one that cannot be used here.
    `faults` are those for which no file is taken up."""

    def __init__(self, name: str, known: list[str], *, why: str = "", faults: str = "") -> None:
        told = f"there is no workflow {name!r}; there are {', '.join(known) or 'none'}"
        told += f"; new and changed files are not in use before these faults are mended: {faults}" if faults else ""
        super().__init__(f"the workflow {name!r} cannot be used: {why}" if why else told)
        self.name, self.why = name, why


class WorkflowCatalog:
    """Workflows in files, each file one version of one. A name without a version is the newest.

    Changed and new files are taken up when a workflow is next asked for; while the directory has a fault, what was
    known before stays. Other files of the directory, such as recorded replies, are passed over. One whose faults
    `is_due` says are not its own, since it needs what the host has to do without, is left out.
    """

    def __init__(self, directory: Path, check: Check, is_due: IsDue | None = None) -> None:
        self._files, self._check, self._is_due = FileStamps(directory), check, is_due
        self.left_out: dict[str, tuple[Problem, ...]] = {}
        self._by_name: dict[str, dict[str, CheckedWorkflow]] = {}
        self._lock = Lock()
        self._faults = ""

    def load(self) -> None:
        """Read the directory, if it has changed. DefinitionErrors for all faults of its files, which change nothing."""
        with self._lock:
            self._load()

    def reload(self) -> None:
        """Read the directory whether it has changed or not: what the workflows need has. Faults are told in the log."""
        self._files.forget()
        self._refresh()

    def _load(self) -> None:
        files = self._files.find_changed()
        if files is None:
            return
        problems: list[Problem] = []
        found: dict[str, dict[str, CheckedWorkflow]] = {}
        left_out: dict[str, tuple[Problem, ...]] = {}
        for path in files:
            try:
                self._add(path, found)
            except DefinitionError as error:
                own = problems_in(error)
                if self._is_due is not None and all(self._is_due(each.message) for each in own):
                    left_out[_id_in(path)] = own
                    log.warning("left out: the workflow %s: %s", path.name, "; ".join(map(str, own)))
                else:
                    problems += own
        self._faults = "; ".join(map(str, problems)).replace(f"{self._files.directory}/", "")
        refuse(problems)
        self._by_name, self.left_out = found, left_out

    def get(self, name: str) -> CheckedWorkflow:
        """Return the workflow `id@version`, or the newest version of `id`. WorkflowNotFound for any other name."""
        self._refresh()
        identity, is_exact, version = name.partition("@")
        versions = self._by_name.get(identity, {})
        if not versions or (is_exact and version not in versions):
            if why := self.left_out.get(identity):
                raise WorkflowNotFound(name, [], why="; ".join(f"{each.where}: {each.message}" for each in why))
            known = [f"{each}@{key}" for each, keys in self._by_name.items() for key in keys]
            raise WorkflowNotFound(name, known, faults=self._faults)
        return versions[version if is_exact else next(iter(versions))]

    def list(self) -> Mapping[str, Mapping[str, CheckedWorkflow]]:
        """Return all workflows by id, each by its versions, the newest first."""
        self._refresh()
        return self._by_name

    def _refresh(self) -> None:
        try:
            self.load()
        except DefinitionError as error:
            told = "the workflows in %s have faults; the old ones stay in use (new tools and agents need a restart): %s"
            log.error(told, self._files.directory, error)

    def _add(self, path: Path, found: dict[str, dict[str, CheckedWorkflow]]) -> None:
        if not _is_definition(read_document(path, "the definition").data):
            return
        checked = self._check(path)
        identity, version = checked.definition.id, checked.definition.version
        versions = found.setdefault(identity, {})
        if version in versions:
            document = versions[version].workflow.document
            other = "another file" if document is None else document.path.name
            message = f"{other} is version {version!r} of {identity!r} already"
            message += "; give one of them another version or id, or take it out of the directory"
            raise DefinitionError(message, where=str(path))
        versions[version] = checked
        found[identity] = dict(sorted(versions.items(), key=lambda each: _order(each[0]), reverse=True))


def _id_in(path: Path) -> str:
    """Return the id of the workflow in a file that was read before."""
    data = read_document(path, "the definition").data
    return str(data.get("id", path.stem)) if isinstance(data, Mapping) else path.stem


def _is_definition(data: Any) -> bool:
    return isinstance(data, Mapping) and "nodes" in data


def _order(version: str) -> list[tuple[int, int, str]]:
    """Return a version as it sorts: numbers by their value, 1.10 after 1.9, and 2.0-rc1 before 2.0."""
    parts = re.findall(r"\d+|[^\d.]+", version)
    return [*map(_rank, parts), (END, 0, "")]


def _rank(part: str) -> tuple[int, int, str]:
    if part.isdecimal():
        return NUMBER, int(part), ""
    return PREVIEW if part.strip("-_+ ").lower() in PREVIEWS else TEXT, 0, part
