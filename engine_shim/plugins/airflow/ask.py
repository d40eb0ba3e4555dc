"""Asks people on Airflow's page of required actions, as its human-in-the-loop operators do."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from engine_shim.plugins.airflow.questions import Question


def ask_in_airflow(ti_id: Any, question: Question, users: Sequence[Mapping[str, str]]) -> bool:
    """Show a question about a task instance, for these users, or for all who may act. Returns whether Airflow shows it:
    before 3.1 there is no such page, and before 3.4 a task that asks again shows its first question."""
    try:
        from airflow.sdk.api.datamodels._generated import HITLUser
        from airflow.sdk.execution_time.comms import CreateHITLDetailPayload
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS
    except ImportError:
        return False
    shown: Any = SUPERVISOR_COMMS.send(
        CreateHITLDetailPayload(
            ti_id=ti_id,
            options=question.options,
            subject=question.subject,
            body=question.body,
            params=question.params,
            assigned_users=[HITLUser(id=user["id"], name=user["name"]) for user in users],
        )
    )
    wanted = (question.subject, question.body, question.options, question.params)
    return (shown.subject, shown.body, shown.options, shown.params) == wanted


def await_answer(
    operator: Any, ti_id: Any, question: Question, method: str, kwargs: dict[str, Any], timeout: timedelta | None
) -> None:
    """Put the task aside until somebody answered; `method` goes on. Raises what tells Airflow so."""
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3, a trigger waits
        from airflow.providers.standard.triggers.hitl import HITLTrigger

        operator.defer(
            trigger=HITLTrigger(
                ti_id=ti_id,
                options=question.options,
                params=question.params,
                multiple=False,
                timeout_datetime=None if timeout is None else datetime.now(UTC) + timeout,
            ),
            method_name=method,
            kwargs=kwargs,
        )
    else:
        raise TaskAwaitingInput(method_name=method, kwargs=kwargs, timeout=timeout)
