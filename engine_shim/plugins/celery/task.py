"""make_agent_task(): an agent as a task of Celery, which goes on where an attempt before it has ended."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from billiard.exceptions import SoftTimeLimitExceeded
from celery import Celery
from celery.result import AsyncResult

from agent_core.decisions import Decision
from agent_core.errors import JournalError
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.node import NodeContext, make_run_id
from agent_core.outputs import Json
from agent_core.run.secrets import Secrets
from engine_shim.plugins.attempt import deadline_within, execute_beside
from engine_shim.plugins.decided import FINAL_ERRORS, encode_decisions, give_output, read_decisions
from utools.registry import ToolRegistry
from utools.tool import Tool

LONGEST_PAUSE_S: Final = 60


def make_agent_task(
    app: Celery,
    name: str,
    config: Mapping[str, Any],
    *,
    tools: ToolRegistry | Iterable[Tool],
    journal: Journal | str | os.PathLike[str],
    model: ModelClient | str | None = None,
    secrets: Secrets | None = None,
    **options: Any,
) -> Any:
    """Return a task of the app: `task.delay(prompt)` gives the outputs of the node, with their `status`.

    `config` is the node's but its prompt, `options` are those of a task of Celery. A message is acknowledged once its
    task has ended, and comes again after the death of a worker. The run has the id of the message, so that each attempt
    goes on with it; a task that is called without a message begins a run each time. A run that waits is a result:
    `decide` goes on with it. One that failed or was cancelled raises AgentRunFailed. A journal that is away is tried
    again, up to `max_retries` times.
    """
    registry = ToolRegistry.from_tools(tools, where="tools")

    def attempt(
        self: Any, prompt: str, run_id: str | None = None, decisions: Sequence[Json] = (), by: str = "caller"
    ) -> Json:
        request = self.request
        context = NodeContext(
            run_id=run_id or make_run_id(name, request.id or str(uuid4())),
            journal=journal,
            tools=registry,
            model=model,
            attempt=1 + request.retries + bool((request.delivery_info or {}).get("redelivered")),
            deadline=_deadline_of(self),
            secrets=secrets,
            decisions=read_decisions(decisions),
            by=by,
        )
        try:
            output = execute_beside({**config, "prompt": prompt}, context, lambda: False)
        except FINAL_ERRORS:
            raise
        except JournalError as error:
            raise self.retry(exc=error, countdown=min(2**request.retries, LONGEST_PAUSE_S)) from error
        except SoftTimeLimitExceeded as over:
            raise _go_on_later(self) from over
        if output.status == "paused":
            raise _go_on_later(self)
        return give_output(output)

    made: Any = app.task(bind=True, name=name, **{"acks_late": True, "reject_on_worker_lost": True, **options})
    return made(attempt)


def decide(
    task: Any, prompt: str, output: Mapping[str, Any], decisions: Mapping[int, Decision], *, by: str
) -> AsyncResult[Any]:
    """Go on with a run that waits, in a task of its own: `output` is the result of the task before, `prompt` what that
    was given. `decisions` are a person's, by their place in `output["waiting"]`; `by` names that person."""
    more = {"run_id": output["run_id"], "decisions": encode_decisions(output, decisions), "by": by}
    sent: AsyncResult[Any] = task.apply_async([prompt], more)
    return sent


def _go_on_later(task: Any) -> Exception:
    """Send another message, which goes on with a run whose time was over here, as often as it takes; gives what tells
    Celery so."""
    sent: Exception = task.retry(countdown=0, max_retries=task.request.retries + 1, throw=False)
    return sent


def _deadline_of(task: Any) -> datetime | None:
    """Return when a run is to be let go, before the first limit of its task comes. Those of the app are the task's in
    newer versions of Celery alone."""
    (hard, soft), conf = task.request.timelimit or (None, None), task.app.conf
    limits = [
        hard or task.time_limit or conf.task_time_limit,
        soft or task.soft_time_limit or conf.task_soft_time_limit,
    ]
    seconds = min((float(each) for each in limits if each), default=None)
    return deadline_within(seconds)
