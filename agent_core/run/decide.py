"""What reaches a run without driving it: decisions for its next attempt, and a look at where it stands."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_core.config import AgentConfig, read_config
from agent_core.journal.chain import is_finished
from agent_core.journal.control import Decisions, waiting_calls
from agent_core.journal.store import Journal
from agent_core.outputs import Json, WaitingCall
from agent_core.run.agent_drive import ROOT
from agent_core.run.arguments import open_lasting
from agent_core.run.blocking import finish_blocking, run_blocking
from agent_core.run.control import append_decisions
from agent_core.run.prepare import config_record, to_journal
from agent_core.run.run_id import check_run_id
from agent_core.run.secrets import Secrets, signing_keys
from agent_core.run.sync import run_sync
from agent_core.statuses import EndedStatus, read_ended_status
from utools.registry import ToolRegistry
from utools.tool import Tool


async def decide(
    run_id: str,
    decisions: Decisions,
    *,
    journal: Journal | str | os.PathLike[str],
    by: str,
    tools: ToolRegistry | Iterable[Tool] | None = None,
    secrets: Secrets | None = None,
) -> None:
    """Record a person's decisions on what waits in a run, by (strand, n); its next attempt goes on with them.

    `by` names that person. With `tools`, a call whose tool has changed since it was shown is refused here; the next
    attempt refuses it in any case. DecisionError, with nothing recorded, for a decision that fits nothing that waits;
    DecisionTaken where it is decided already; JournalError where the journal cannot be used.
    """
    run, registry = check_run_id(run_id), None if tools is None else ToolRegistry.from_tools(tools, where="tools")
    redactor = (secrets or Secrets()).redactor()
    with open_lasting(journal) as opened:
        step = partial(append_decisions, opened, run, decisions, registry=registry, by=by, redactor=redactor)
        _, cancellation = await finish_blocking(opened, partial(step, keys=signing_keys()))
    if cancellation is not None:
        raise cancellation


async def list_waiting(run_id: str, *, journal: Journal | str | os.PathLike[str]) -> list[WaitingCall]:
    """Return what waits in a run by its journal, in order of strands: nothing once all of it is decided, or the run has
    ended. JournalError where the journal cannot be used."""
    with open_lasting(journal) as opened:
        return waiting_calls(await run_blocking(opened, opened.load, check_run_id(run_id)))


@dataclass(frozen=True, slots=True)
class BegunRun:
    """Where a run stands by its journal: the config that it began with, as recorded, and how it ended; None while it
    has not."""

    config: Json
    ended: EndedStatus | None

    def has_config(self, config: Mapping[str, Any] | AgentConfig, secrets: Secrets | None = None) -> bool:
        """Return whether this is the config that the run began with, as records hold it. DefinitionErrors for one that
        no run can have."""
        given = config_record(read_config(to_journal(config)), (secrets or Secrets()).redactor())
        return all(given.get(key) == value for key, value in self.config.items())


async def find_run(run_id: str, *, journal: Journal | str | os.PathLike[str]) -> BegunRun | None:
    """Return where an agent's run stands; None where no attempt at it has begun. JournalError where the journal cannot
    be used."""
    with open_lasting(journal) as opened:
        tape = await run_blocking(opened, opened.load, check_run_id(run_id))
    if ROOT not in tape:
        return None
    first, last = tape[ROOT][0], tape[ROOT][-1]
    return BegunRun(first.record()["config"], read_ended_status(last.record()) if is_finished(tape, ROOT) else None)


def decide_sync(
    run_id: str,
    decisions: Decisions,
    *,
    journal: Journal | str | os.PathLike[str],
    by: str,
    tools: ToolRegistry | Iterable[Tool] | None = None,
    secrets: Secrets | None = None,
) -> None:
    """`decide` for a caller without an event loop; inside one, it runs in a thread of its own."""
    run_sync(lambda: decide(run_id, decisions, journal=journal, by=by, tools=tools, secrets=secrets))


def find_run_sync(run_id: str, *, journal: Journal | str | os.PathLike[str]) -> BegunRun | None:
    """`find_run` for a caller without an event loop; inside one, it runs in a thread of its own."""
    return run_sync(lambda: find_run(run_id, journal=journal))


def list_waiting_sync(run_id: str, *, journal: Journal | str | os.PathLike[str]) -> list[WaitingCall]:
    """`list_waiting` for a caller without an event loop; inside one, it runs in a thread of its own."""
    return run_sync(lambda: list_waiting(run_id, journal=journal))
