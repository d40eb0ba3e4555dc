"""view_run(): a run as those who ask a server for it see it: workflow or turn of a conversation."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agent_core.agents.turn import NODE
from agent_core.errors import Damaged, Divergence
from agent_core.journal.chain import check_chains, is_finished
from agent_core.journal.control import waiting_calls
from agent_core.journal.record import Tape
from agent_core.outputs import Json, RunError, WaitingCall
from agent_core.run.agent_drive import ROOT as AGENT_ROOT
from agent_core.statuses import OPEN, ListedStatus, read_ended_status
from engine_shim.definition.model import ROOT
from engine_shim.errors import RunNotFound
from engine_shim.runs.drive import RunResult
from engine_shim.runs.results import read_result
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.run_store import RunStore
from engine_shim.store.takeovers import MOST, describe_takeovers


@dataclass(frozen=True, slots=True)
class RunView:
    """A run. `workflow` and `version` are empty for an agent's turn, `agent` and `conversation` for a workflow's run.

    `outputs`, `path` and `error` are those of a run that came to rest: the outputs that the workflow declares, else
    those of its nodes, which are in `nodes` in any case.
    """

    run_id: str
    status: ListedStatus
    workflow: str | None = None
    version: str | None = None
    agent: str | None = None
    conversation: str | None = None
    started_at: str | None = None
    submitted_by: str | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    waiting: list[WaitingCall] = field(default_factory=list)
    error: RunError | None = None
    journal: Json | None = None
    why_paused: str | None = None
    nodes: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self, *, nodes: bool = False) -> Json:
        """Its JSON, with the outputs of all nodes if they are wanted."""
        return {name: getattr(self, name) for name in self.__slots__ if nodes or name != "nodes"}


def view_run(store: RunStore, run: str, host: str, known: RunResult | None = None) -> RunView:
    """Return a run by its entry and its journal. RunNotFound when the store has no such run, or it is another host's;
    Damaged for broken records.

    The result that is `known` of one that has ended saves the reading of its journal.
    """
    try:
        return _view(store, run, host, known)
    except (ValueError, LookupError, TypeError):  # the record cannot be read
        check_chains(run, store.journal.load(run))
        raise


def find_own_entry(store: RunStore, run: str, host: str) -> RunEntry | None:
    """Return a run's entry, if it has one. RunNotFound for a run of another host, which may share the store."""
    entry = store.entry(run)
    if entry is not None and not RunFilter(host=host).admits(entry):
        raise RunNotFound(run)
    return entry


def check_exists(store: RunStore, run: str, host: str) -> None:
    """RunNotFound where the store has no such run, or it is another host's."""
    if find_own_entry(store, run, host) is not None:
        return
    with suppress(Damaged):  # there is something, at least
        if not store.journal.load(run):
            raise RunNotFound(run)


def _view(store: RunStore, run: str, host: str, known: RunResult | None) -> RunView:
    entry = find_own_entry(store, run, host)
    if entry is None:
        tape = store.journal.load(run)
        if AGENT_ROOT not in tape:
            raise RunNotFound(run)
        return _view_agent_run(store, run, tape)
    about: dict[str, Any] = {
        "run_id": entry.run,
        **_describe_kind(entry),
        "started_at": entry.started_at,
        "submitted_by": entry.submitter,
    }
    if entry.status in OPEN:
        return RunView(status=entry.status, **about)
    result = known if known is not None and known.status == entry.status else read_recorded(store, run)
    taken = store.takeovers(run) if entry.status == "paused" else 0
    about["why_paused"] = describe_takeovers(taken) if taken >= MOST else None
    if result is None:
        return RunView(status=entry.status, waiting=waiting_calls(store.journal.load(run)), **about)
    is_paused = entry.status == "paused" and result.status == "waiting"
    return RunView(
        status="paused" if is_paused else result.status,
        outputs=_choose_outputs(entry, result),
        nodes=result.nodes,
        path=result.path,
        waiting=result.waiting,
        error=result.error,
        journal=result.journal,
        **about,
    )


def read_recorded(store: RunStore, run: str) -> RunResult | None:
    """Return the result of a workflow's run by its journal; None while it continues. RunNotFound where the journal is
    gone."""
    tape = store.journal.load(run)
    if ROOT not in tape:
        raise RunNotFound(run)
    try:
        return read_result(run, tape, store.clock.write_now())
    except Divergence:  # recorded by another version of the loops: what the index says stays
        return None


def _describe_kind(entry: RunEntry) -> dict[str, Any]:
    if entry.agent:
        return {"agent": entry.agent, "conversation": entry.conversation}
    return {"workflow": entry.workflow, "version": entry.version}


def _choose_outputs(entry: RunEntry, result: RunResult) -> Mapping[str, Any]:
    """Return the outputs that the workflow declares, else those of its nodes; of a turn those of its agent."""
    if entry.agent:
        return {NODE: result.nodes[NODE]} if NODE in result.nodes else {}
    return result.nodes if result.declared is None else result.declared


def _view_agent_run(store: RunStore, run: str, tape: Tape) -> RunView:
    """Return an agent's run that was recorded without an engine, as turns were by older versions."""
    first, last = tape[AGENT_ROOT][0].record(), tape[AGENT_ROOT][-1].record()
    note, waiting = first.get("agent", {}), waiting_calls(tape)
    about: dict[str, Any] = {
        "run_id": run,
        "agent": note.get("name"),
        "conversation": note.get("conversation"),
        "started_at": first["at"],
        "submitted_by": store.submitter(run),
    }
    if not is_finished(tape, AGENT_ROOT):
        return RunView(status="waiting" if waiting else "running", waiting=waiting, **about)
    keys = ("final_answer", "finish_reason", "usage")
    outputs = {NODE: {key: last[key] for key in keys if key in last}}
    return RunView(status=read_ended_status(last), outputs=outputs, nodes=outputs, error=last.get("error"), **about)
