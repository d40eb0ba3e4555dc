"""make_fork(): what a new run begins with that has the past of another one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_core.audit.fork import fork_rows
from agent_core.audit.repeats import Place, find_repeats
from agent_core.journal.control import open_rows
from agent_core.journal.reader import read_run
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.store import find_encrypter
from agent_core.outputs import Json
from agent_core.run.clock import now
from engine_shim.definition.errors import refuse
from engine_shim.definition.model import ROOT
from engine_shim.errors import DefinitionError, WritesRepeated
from engine_shim.runs.grant import Grants
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.loops import LOOPS
from engine_shim.store.index import RunIndex


@dataclass(frozen=True, slots=True)
class Fork:
    """The rows that a fork begins with, and what its entry says."""

    rows: list[Row]
    started: Json
    base: Path
    at: str


def make_fork(
    index: RunIndex,
    grants: Grants,
    run: str,
    find_places: Callable[[Tape], list[Place]],
    new: str,
    *,
    repeat_writes: bool,
    retry: bool,
) -> Fork:
    """Return the fork `new` of a run at places of its tape. Nothing is written. Raises what `Engine.fork` does."""
    _, base = index.load(run)
    tape = index.load_intact(run)
    if index.store.journal.load(new):
        raise DefinitionError("there is such a run already; choose another id", where="new_id", value=new)
    at, encrypt = now(), find_encrypter(index.store.journal, new)
    rows = fork_rows(run, tape, find_places(tape), new, loops=LOOPS, at=at, retry=retry, encrypt=encrypt)
    forked = by_path(rows)
    recorded = read_run(tape, ROOT)
    grant = grants.of_run(recorded)
    refuse(HostCheck(grant).recorded_problems(forked, base))
    if not repeat_writes and (repeats := find_repeats(tape, forked)):
        raise WritesRepeated(run, repeats)
    if retry:  # the failed run takes nothing any more
        rows += open_rows(new, tape, encrypt)
    return Fork(rows, tape[ROOT][0].record(), base, at)
