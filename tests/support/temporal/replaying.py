"""Replays of histories by Temporal."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from engine_shim.runs.temporal.rows import data_converter
from engine_shim.runs.temporal.worker import RUNNER

TRIES: Final = 2
SECONDS: Final = 60.0
"""How long one replay may take on a busy machine; most take less than one second."""


def replay_histories(workflow: type, journal: Any, histories: Iterable[WorkflowHistory]) -> None:
    """Replay histories of a workflow; raises how the first one differs.

    Now and then a replayer waits for ever for the end of its own worker, and no cancellation ends it. So each replay
    has a thread, which is left if it takes too long; the replay is then tried once more.
    """
    for history in histories:
        for left in reversed(range(TRIES)):
            try:
                _replay(workflow, journal, history).result(SECONDS)
                break
            except TimeoutError:
                if not left:
                    raise


def _replay(workflow: type, journal: Any, history: WorkflowHistory) -> "Future[None]":
    ended = Future[None]()

    def run() -> None:
        replayer = Replayer(workflows=[workflow], workflow_runner=RUNNER, data_converter=data_converter(journal))
        try:
            asyncio.run(replayer.replay_workflow(history))
            ended.set_result(None)
        except Exception as error:
            ended.set_exception(error)

    Thread(target=run, daemon=True).start()
    return ended
