"""make_agent_sensor(): goes on with Dagster runs in which an agent has waited, once a person has decided."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRequest,
    RunsFilter,
    SensorEvaluationContext,
    sensor,
)

from engine_shim.plugins.dagster.resource import AgentResource
from engine_shim.plugins.dagster.step import PARENT, ROOT, WAITING, root_of
from engine_shim.plugins.decided import still_waits

STANDING: Final = RunsFilter(statuses=[DagsterRunStatus.FAILURE], tags={WAITING: "true"})
PARTITION: Final = "dagster/partition"


def make_agent_sensor(name: str, *, jobs: Sequence[Any] | None = None, assets: Any = None, **options: Any) -> Any:
    """Return a sensor that looks at runs in which an agent waits, and requests one that goes on once all is decided.

    It is for runs of `jobs`, or for those that materialize a selection of `assets` without a job; `options` are those
    of a sensor. What goes on is what re-execution from failure would do again: the assets that are not materialized. A
    sensor can request a job of ops as a whole only: it does if no step has succeeded, else its log says to re-execute
    the run from failure.
    """
    names = {"__ASSET_JOB"} if jobs is None else {job.name for job in jobs}

    @sensor(name=name, jobs=jobs, asset_selection=assets, **options)
    def look(context: SensorEvaluationContext, agents: AgentResource) -> Iterator[RunRequest]:
        for run in context.instance.get_runs(STANDING):
            if run.job_name not in names or not _is_decided(context.instance, run, agents):
                continue
            left = _unmade_assets(context.instance, run)
            if left or not _events(context.instance, run, DagsterEventType.STEP_SUCCESS):
                yield _go_on(context.instance, run, left or None, with_job=jobs is not None)
            else:
                context.log.warning("run %s is decided: re-execute it from failure", run.run_id)

    return look


def _is_decided(instance: DagsterInstance, run: DagsterRun, agents: AgentResource) -> bool:
    """Return whether a run has waited, waits no more, and no other run goes on with it."""
    if instance.get_runs(RunsFilter(tags={PARENT: run.run_id}), limit=1):
        instance.add_run_tags(run.run_id, {WAITING: "false"})
        return False
    waited = [
        event.step_failure_data.user_failure_data.metadata["agent_run_id"].value
        for event in _events(instance, run, DagsterEventType.STEP_FAILURE)
        if (told := event.step_failure_data.user_failure_data) and "waiting" in told.metadata
    ]
    with agents.open_journal() as journal:
        return bool(waited) and not any(still_waits(each, journal) for each in waited)


def _unmade_assets(instance: DagsterInstance, run: DagsterRun) -> list[AssetKey]:
    made = {event.asset_key for event in _events(instance, run, DagsterEventType.ASSET_MATERIALIZATION)}
    planned = _events(instance, run, DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    return [event.asset_key for event in planned if event.asset_key not in made]


def _go_on(
    instance: DagsterInstance, run: DagsterRun, assets: Sequence[AssetKey] | None, *, with_job: bool
) -> RunRequest:
    own = {key: value for key, value in run.tags.items() if not key.startswith("dagster/") and key != WAITING}
    return RunRequest(
        run_key=run.run_id,
        run_config=run.run_config,
        tags={**own, PARENT: run.run_id, ROOT: root_of(instance, run)},
        job_name=run.job_name if with_job else None,
        asset_selection=assets,
        partition_key=run.tags.get(PARTITION),
    )


def _events(instance: DagsterInstance, run: DagsterRun, kind: DagsterEventType) -> list[Any]:
    return [entry.dagster_event for entry in instance.all_logs(run.run_id, of_type=kind)]
