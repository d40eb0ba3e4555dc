"""RunStarter: how a run begins on this host: checked, prepared, and written before anything is driven."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_core.agents.catalog import AgentCatalog
from agent_core.journal.operations import Spec
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.store import find_encrypter
from agent_core.outputs import Json
from agent_core.run.run_id import check_run_id, new_run_id
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import ROOT
from engine_shim.definition.validate import CheckedWorkflow, check
from engine_shim.runs.drive import Begun
from engine_shim.runs.grant import Grant, Grants
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.known_workflows import KnownWorkflows
from engine_shim.runs.prepare import Preparer
from engine_shim.store.entries import RunEntry
from engine_shim.store.index import RunIndex
from engine_shim.store.run_store import RunStore, StrPath
from utools.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Start:
    """A run that may begin, or go on: its workflow, its `run_started` body, and what prepares the runs in it. One that
    `is_new` is surely in no store."""

    run: str
    checked: CheckedWorkflow
    body: Json
    preparer: Preparer
    is_new: bool = False

    @property
    def conversation(self) -> str | None:
        """The stored conversation of which the run is a turn."""
        note: Json = self.body.get("turn", {})
        return note.get("conversation")

    @property
    def spec(self) -> Spec:
        return Spec(ROOT, {"definition": self.checked.data, "external": self.body["external"]})


class RunStarter:
    """Starts the runs of one store. `agents` are those that nodes may name; `host` names the file that configures
    this host, if there is one."""

    def __init__(
        self,
        store: RunStore,
        grants: Grants,
        agents: AgentCatalog | None,
    ) -> None:
        self.host = ""
        self._store, self._index = store, RunIndex(store)
        self._grants, self._agents = grants, agents
        self._known = KnownWorkflows()

    def prepare(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        external: Mapping[str, Any] | None,
        run_id: str | None,
        *,
        is_new: bool = False,
    ) -> Start:
        """Return how a run starts, whose id was made just now if it `is_new`. DefinitionError, with nothing written,
        when it cannot be run."""
        if isinstance(workflow, str | os.PathLike):
            workflow = self._known.load(workflow)
        elif not isinstance(workflow, Workflow | CheckedWorkflow):
            workflow = load_workflow(workflow)
        is_new = is_new or run_id is None
        begun = not is_new and run_id is not None and self._index.has_started(check_run_id(run_id))
        grant = self._grants.of_workflow(workflow)
        if begun or isinstance(workflow, CheckedWorkflow):
            checked = check(workflow, grant.registry, self._agents, begun=begun)
        else:
            checked = self._known.check(workflow, grant.registry, self._agents)
        if not begun:
            refuse(HostCheck(grant).run_problems(checked.workflow, checked.invoked))
        inputs = checked.external_of(external or {})
        run = new_run_id() if run_id is None else check_run_id(run_id)
        preparer = self.preparer(grant, checked.base, checked, begun=begun)
        return Start(run, checked, preparer.start(run, checked, inputs, {}), preparer, is_new)

    def write(self, start: Start, submitter: str | None = None) -> Begun | None:
        """Write how a run begins, and who handed it in. None when the store held it already, as the same."""
        run, base, at = start.run, start.checked.base, start.body["at"]
        if start.is_new or not self._index.has_begun(run, start.body):
            record, encrypt = {"kind": "run_started", **start.body}, find_encrypter(self._store.journal, run)
            started = chain_row(ROOT, 0, genesis(run, ROOT), record, encrypt)  # or nothing is written
            entry = self.add_entry(run, start.body, base.resolve(), at, submitter)
            self._store.journal.append(run, [started])
            return Begun(entry, started)
        if self._store.entry(run) is None:
            self.add_entry(run, start.body, base.resolve(), at, submitter)
        elif submitter is not None:
            self._store.save_submission(run, submitter)
        return None

    def add_entry(self, run: str, started: Json, base: Path, at: str, submitter: str | None = None) -> RunEntry:
        """Add a run that has begun, as `run_started` says, to the index: a turn under its agent's name. DefinitionError
        for a directory that cannot be stored with it."""
        definition, note = started["definition"], started.get("turn", {})
        agent = note.get("name", "")
        version = "" if agent else definition.get("version", "1")
        directory = str(base)
        if not directory.isascii():
            _refuse_no_text(directory)
        entry = RunEntry(run, agent or definition["id"], version, "pending", at, directory, host=self.host)
        entry = replace(entry, agent=agent, conversation=note.get("conversation"), submitter=submitter)
        self._store.save(entry)
        return entry

    def preparer(self, grant: Grant, base: Path, checked: CheckedWorkflow | None = None, *, begun: bool) -> Preparer:
        """Return what prepares the runs below a directory."""
        return Preparer(grant, base, checked, self._agents, begun=begun)


def _refuse_no_text(directory: str) -> None:
    """Raise DefinitionError for a name of bytes that are no text, which no store takes."""
    try:
        directory.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(directory).decode("utf-8", "backslashreplace")
        encoding = sys.getfilesystemencoding()
        raise DefinitionError(f"the name of the directory is not {encoding} text: {shown}; rename it") from None
