"""The commands that look at recorded runs, or delete them: their options and help."""

from pathlib import Path
from typing import Annotated

import typer

from engine_shim.cli.parameters import AsJson, Recorded, Store

FINISHED = "completed,failed,cancelled"


def runs(store: Store = None, as_json: AsJson = False) -> int:
    """List the runs of the store, newest first."""
    from engine_shim.cli.runs import list_runs

    return list_runs(store, as_json=as_json)


def show(run: Recorded, store: Store = None, as_json: AsJson = False) -> int:
    """Show a run, record by record."""
    from engine_shim.cli.show import show_run

    return show_run(run, store, as_json=as_json)


def verify(
    run: Recorded,
    strand: Annotated[str | None, typer.Option(help="This strand and those below it.")] = None,
    head: Annotated[str | None, typer.Option(help="The head that the run or node emitted.")] = None,
    count: Annotated[int | None, typer.Option(help="How many records stood under that head.")] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Check that a run's journal is whole and as it was written. With a key, also that it is sealed."""
    from engine_shim.cli.audit import verify_run

    return verify_run(run, store, strand=strand, head=head, count=count, as_json=as_json)


def replay(
    run: Annotated[str | None, typer.Argument(metavar="RUN|FILE", help="A run's id, or a journal file.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every run of the store, and a table of them.")] = False,
    since: Annotated[str | None, typer.Option(help="With --all: begun since a date, or in the last 7d.")] = None,
    policy: Annotated[Path | None, typer.Option(help="A policy to judge the run by instead, JSON or YAML.")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", help="One key of that policy, key=value.")] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Replay a recorded run offline, and compare every decision."""
    from engine_shim.cli.audit import read_policy, replay_run
    from engine_shim.cli.replays import replay_all
    from engine_shim.cli.timespec import read_time

    varied = read_policy(policy, changes or [])
    if every and run is None:
        return replay_all(store, None if since is None else read_time("--since", since), varied, as_json=as_json)
    if every or run is None or since is not None:
        raise typer.BadParameter("replay takes one run, or --all, which --since goes with")
    return replay_run(run, store, varied, as_json=as_json)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A run's id in the store, or a journal file.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")],
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Compare two runs, and say where they part. Times and ids are ignored."""
    from engine_shim.cli.diff import compare_runs

    return compare_runs(a, b, store, as_json=as_json)


def retention(
    older_than: Annotated[str, typer.Option(help="How long ago a run ended, at the least: 30d, 12h, 30m.")],
    status: Annotated[str, typer.Option(help="Which runs, separated by commas.")] = FINISHED,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Delete old runs from the store, journal and all. Unfinished runs go only where --status names them, by when they
    last went on."""
    from engine_shim.cli.retention import delete_runs

    return delete_runs(older_than, status, store, dry_run=dry_run, as_json=as_json)
