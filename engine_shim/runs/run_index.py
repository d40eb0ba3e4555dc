"""RunIndex: what a store holds of its runs, and the status of each, by its journal and by the index."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_core.effects import Json
from agent_core.journal.chain import check_chains, is_finished
from agent_core.journal.control import CONTROL
from agent_core.journal.record import Tape
from engine_shim.errors import DefinitionError, RunNotFound
from engine_shim.runs.prepare import ROOT
from engine_shim.runs.store import RunStore
from utools.registry import ToolRegistry

ENDED: Final = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The runs of a store. RunNotFound for a run that it does not hold."""

    store: RunStore

    def load(self, run: str) -> tuple[Tape, Path]:
        """A run's tape, verified, and the directory that its relative paths start from."""
        tape, entry = self.store.journal.load(run), self.store.entry(run)
        if ROOT not in tape or entry is None:
            raise RunNotFound(run)
        return check_chains(run, tape), Path(entry.base)

    def has_begun(self, run: str, body: Json) -> bool:
        """Whether the store holds this run already. DefinitionError when it began with something else."""
        tape = check_chains(run, self.store.journal.load(run))
        if tape and ROOT not in tape:
            raise DefinitionError(f"run {run!r} is not a workflow's; choose another id", where="run_id")
        if ROOT not in tape:
            return False
        started = tape[ROOT][0].record()
        for key in ("definition", "external"):
            if started[key] != body[key]:
                raise DefinitionError(f"run {run!r} began with another {key}; choose another id", where="run_id")
        return True

    def final_status(self, run: str) -> str | None:
        """How a run ended, by its journal, which knows before the index does; None while it has not."""
        tape, _ = self.load(run)
        return str(tape[ROOT][-1].record()["status"]) if is_finished(tape, ROOT) else None

    def last_control(self, run: str) -> str | None:
        """The last request about a run: pause, resume or cancel; None when there was none."""
        rows = self.store.journal.load(run).get(CONTROL)
        return str(rows[-1].record()["decision"]) if rows else None

    def status(self, run: str) -> str:
        """A run's status, by the index."""
        entry = self.store.entry(run)
        if entry is None:
            raise RunNotFound(run)
        return entry.status

    def set_status(self, run: str, status: str) -> None:
        """Set a run's status in the index."""
        entry = self.store.entry(run)
        if entry is not None and entry.status != status:
            self.store.save(replace(entry, status=status))


def check_tools(tape: Tape, registry: ToolRegistry) -> None:
    """Refuse a run that began with tools which this host lacks: DefinitionError names one."""
    records = [rows[0].record() for rows in tape.values()]
    needed = {code for record in records if record["kind"] == "run_started" for code in record["tools"]}
    if missing := sorted(needed - {tool.code for tool in registry.all()}):
        message = f"this host has no tool {missing[0]!r}, which the run needs"
        raise DefinitionError(f"{message}; was it started with another configuration?", where="host configuration")
