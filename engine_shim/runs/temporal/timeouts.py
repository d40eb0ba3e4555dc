"""How long Temporal waits: what the operator of a worker says of it, as its workflows read it."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.worker import Interceptor, WorkflowInterceptorClassInput

from engine_shim.host.config import TemporalConfig

HEARTBEAT: Final = timedelta(seconds=TemporalConfig().heartbeat_timeout)
MAX_DOUBLINGS: Final = 3
_NAME: Final = "agent_core_heartbeat_timeout"


class WorkerTimeouts(Interceptor):
    """Give the workflows of one worker its operator's heartbeat timeout.

    The value is the worker's, not the run's: it is no part of a workflow's input or history, so that a worker with
    another one replays the same history.
    """

    def __init__(self, config: TemporalConfig) -> None:
        self._heartbeat = timedelta(seconds=config.heartbeat_timeout)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> None:  # noqa: A002
        input.unsafe_extern_functions[_NAME] = lambda: self._heartbeat


def heartbeat_timeout(attempt: int) -> timedelta:
    """Return how long an act may be silent in its `attempt`, counted from 0: twice as long each time, up to the third.

    An act that lived and was only slow, on a machine with too much to do, would else be given up and begun anew for as
    long as the machine is busy. Read it in a workflow.
    """
    first: timedelta = workflow.extern_functions().get(_NAME, lambda: HEARTBEAT)()
    longest: timedelta = first * 2 ** min(attempt, MAX_DOUBLINGS)
    return longest


def beat_interval(timeout: timedelta | None) -> timedelta:
    """Return how often an act tells that it lives, of which Temporal waits so long for a word."""
    return (timeout or HEARTBEAT) / 5
