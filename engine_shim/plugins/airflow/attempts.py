"""Which run an attempt at a task goes on with, whether it need wait no more, and whether a kill is meant for the run or
for the worker alone."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_core.errors import Damaged, JournalError, Unreadable
from agent_core.journal.store import Journal
from agent_core.node import find_run_sync, list_waiting, make_run_id
from agent_core.outputs import Json
from agent_core.run.secrets import Secrets

ANSWER_S: Final = 3.0
"""How long a task that is killed waits for Airflow to say why: its process has five seconds to end."""
RUNS_ON: Final = ("running", "queued", "scheduled")
"""States in which Airflow wants the task to go on: only its worker goes away."""
NO_ITEM: Final = -1
"""The map index of a task that is not mapped."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The run of an attempt, the config that it began with, None where it begins, and the number of the attempt at
    it."""

    run_id: str
    config: Json | None
    number: int


def find_attempt(
    ti: Any, config: Mapping[str, Any], journal: Journal, *, secrets: Secrets | None = None, is_resumed: bool = False
) -> Attempt:
    """Return the run that an attempt at a task instance goes on with: that of the attempts before it.

    A task that was cleared begins a new one, except where its run had not ended, with the same config. So does one
    whose run was cancelled: what cancelled it was a kill, after which Airflow wants the task anew.
    """
    number, found = 1, find_run_sync(run_id := _run_id(ti, 1), journal=journal)
    while (later := find_run_sync(_run_id(ti, number + 1), journal=journal)) is not None:
        number, found, run_id = number + 1, later, _run_id(ti, number + 1)
    if found is None or is_resumed:
        return Attempt(run_id, None if found is None else found.config, ti.try_number)
    if found.ended == "cancelled" or (_is_cleared(ti) and (found.ended or not found.has_config(config, secrets))):
        return Attempt(_run_id(ti, number + 1), None, 1)
    return Attempt(run_id, found.config, ti.try_number)


async def waits_for_else(run_id: str, waiting: Sequence[Sequence[Any]], journal: Journal, log: Any) -> bool:
    """Return whether a run waits for something else than it did, as (strand, n), or cannot be read any more: that is
    its task's to say. Not where the store is away, which is logged."""
    try:
        found = await list_waiting(run_id, journal=journal)
    except (Damaged, Unreadable):
        return True
    except JournalError as error:
        log.warning("run %s: %s", run_id, error)
        return False
    return [(call["strand"], call["n"]) for call in found] != [tuple(each) for each in waiting]


def stop_if_given_up(ti: Any, cancel: Callable[[], object], let_go: Callable[[], object]) -> None:
    """Cancel a run whose task is being killed, in a thread of its own, or let it go where Airflow says that the task
    goes on elsewhere, or does not say."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            found = ti.get_task_states(
                dag_id=ti.dag_id, map_index=ti.map_index, task_ids=[ti.task_id], run_ids=[ti.run_id]
            )
            answers.append(found[ti.run_id][ti.task_id if ti.map_index == NO_ITEM else f"{ti.task_id}_{ti.map_index}"])
        except Exception as error:  # whatever is wrong with it, the process is to end
            ti.log.info("Airflow does not say why the task is killed: %r", error)

    def decide() -> None:
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(ANSWER_S)
        (let_go if not answers or str(answers[0]) in RUNS_ON else cancel)()

    threading.Thread(target=decide, daemon=True).start()


def _run_id(ti: Any, number: int) -> str:
    """Return the id of the nth run of a task instance: a task that is cleared may begin another one."""
    item = [] if ti.map_index == NO_ITEM else [ti.map_index]
    return make_run_id(ti.dag_id, ti.task_id, ti.run_id, *item, *([] if number == 1 else [f"run {number}"]))


def _is_cleared(ti: Any) -> bool:
    """Return whether this is the first attempt after the task was cleared: Airflow adds to its tries then."""
    return bool(ti.try_number == ti.max_tries - (ti.task.retries or 0) + 1 > 1)
