"""The commands that look at recorded runs, or delete them: their options and help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from engine_shim.cli.completion import complete_recorded, complete_statuses
from engine_shim.cli.parameters import (
    AsJson,
    ExistingStore,
    OfWorkflow,
    Recorded,
    RecordedIfAny,
    Since,
    TrustedKeys,
    check_files,
    read_option,
)

FINISHED = "completed,failed,cancelled"


def runs(
    limit: Annotated[int | None, typer.Option(metavar="<n>", min=1, help="At most this many runs.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Of these statuses, separated by commas.", autocompletion=complete_statuses)
    ] = None,
    workflow: OfWorkflow = None,
    since: Since = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """List the runs of the store, newest first.

    \b
    Examples:
      agent-core runs --limit 10
      agent-core runs --status failed,waiting --since 7d
    """
    from engine_shim.cli.records.runs import read_statuses, write_runs
    from engine_shim.cli.timespec import read_since
    from engine_shim.store.entries import RunFilter

    wanted = RunFilter(() if status is None else read_statuses(status), workflow, read_since(since), limit)
    return write_runs(wanted, store, as_json=as_json)


def show(
    run: Recorded,
    trace: Annotated[bool, typer.Option("--trace", help="Show the trace of its agents instead.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing, and show the prompts of agents.")] = False,
    as_example: Annotated[
        bool, typer.Option("--as-example", help="As an entry of an agent's `examples`, in YAML, instead.")
    ] = False,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="<step>", help="What the model read at this step, or STRAND:N, word for word, instead."),
    ] = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Show a run, record by record, in order of time.

    \b
    Examples:
      agent-core show last
      agent-core show last --trace
      agent-core show last --full
      agent-core show last --prompt 2
      agent-core show last --as-example
      agent-core show run.jsonl --json
    """
    if sum((trace, full, as_example, prompt is not None)) > 1:
        raise typer.BadParameter("--trace, --full, --as-example and --prompt show a thing each; show it once for each")
    from engine_shim.cli.records.show import show_as_example, show_run

    if prompt is not None:
        from engine_shim.cli.records.prompt import show_prompt

        return show_prompt(run, prompt, store, as_json=as_json)
    if as_example:
        return show_as_example(run, store, as_json=as_json)
    if trace:
        from engine_shim.cli.records.trace import show_trace

        return show_trace(run, store, as_json=as_json)
    return show_run(run, store, full=full, as_json=as_json)


def store(
    action: Annotated[Literal["copy"], typer.Argument(metavar="copy")],
    source: Annotated[str, typer.Argument(metavar="[FROM]", help="A store: a file, or the URL of a database.")],
    target: Annotated[str | None, typer.Argument(metavar="TO", help="Another store, as FROM.")] = None,
    runs: Annotated[list[str] | None, typer.Option("--run", metavar="RUN", help="This run alone; repeat it.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs of these statuses, separated by commas.")] = None,
    workflow: Annotated[str | None, typer.Option(help="Only runs of this workflow.")] = None,
    since: Annotated[str | None, typer.Option(help="Only runs begun since: 2h, 3d, or a time.")] = None,
    as_json: AsJson = False,
) -> int:
    """Copy runs from one store into another. Their heads stay, and each is verified. Without FROM, those of this host.

    A run that a process drives is left out, and one that continued in the target since an earlier copy. A copy that was
    interrupted is completed when it is repeated. The conversations of these runs come along; with all runs also the
    ledger, and the tokens of a server. TO is a file, made if it is missing, or a database that exists.

    \b
    Examples:
      agent-core store copy postgresql://localhost/agents
      agent-core store copy runs.db archive.db --since 24h --status completed
    """
    from engine_shim.cli.records.runs import read_statuses
    from engine_shim.cli.records.store_copy import copy_store
    from engine_shim.cli.store import find_address
    from engine_shim.cli.timespec import read_since
    from engine_shim.store.entries import RunFilter

    wanted = RunFilter(() if status is None else read_statuses(status), workflow, read_since(since))
    first = find_address(None) if target is None else read_option(source, "FROM")
    second = read_option(source, "TO") if target is None else read_option(target, "TO")
    return copy_store(first, second, runs or (), wanted, as_json=as_json)


def verify(
    run: RecordedIfAny = None,
    strand: Annotated[str | None, typer.Option(help="This strand and those below it.")] = None,
    head: Annotated[str | None, typer.Option(help="The head that the run or node gave.")] = None,
    count: Annotated[int | None, typer.Option(help="How many records that head covers.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All runs of the store, and that none is missing.")] = False,
    ledger: Annotated[str | None, typer.Option(metavar="HEAD", help="With --all: what `ledger` printed.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --all: what `ledger checkpoint` wrote.", callback=check_files),
    ] = None,
    key: TrustedKeys = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Check that a run's journal is complete and unchanged. With a key, also its seal. RUN may be an excerpt.

    \b
    Examples:
      agent-core verify last
      agent-core verify last --key desk.key.pub
      agent-core verify --all
    """
    if every or ledger is not None or checkpoint is not None:
        from engine_shim.cli.records.ledger import verify_store

        if run is not None or not every or (strand or head or count) is not None:
            raise typer.BadParameter(
                "--all takes no RUN, --strand, --head or --count; --ledger and --checkpoint need --all"
            )
        return verify_store(store, ledger, checkpoint, key, as_json=as_json)
    if run is None:
        raise typer.BadParameter("name a RUN, or --all")
    from engine_shim.cli.records.audit import verify_run

    return verify_run(run, store, strand=strand, head=head, count=count, key=key, as_json=as_json)


def export(
    run: Recorded,
    html: Annotated[
        bool, typer.Option("--html", help="A page that needs no server and proves itself (the default of a whole run).")
    ] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Only the journal, for verify and replay.")] = False,
    in_toto: Annotated[
        bool, typer.Option("--in-toto", help="A signed statement about it, for programs that read in-toto.")
    ] = False,
    receipts: Annotated[
        bool, typer.Option("--receipts", help="An agent receipt for each call, for programs that read those.")
    ] = False,
    records: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STRAND[:N[-M]]", help="An excerpt for a stranger: these records alone, proven; repeat it."
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="<path>", help="The file; - is stdout.")] = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Write a run into one file. It is a page with the timeline and the records, which checks them itself; or with
    --jsonl the journal; or with --records an excerpt, which proves these records by the host's key, and tells nothing
    of the others but how many there are: JSON, or with --html a page that shows them, and checks them itself.

    \b
    Examples:
      agent-core export last
      agent-core export last --jsonl --to run.jsonl
      agent-core export last --records flow:0 --records flow/order.1
      agent-core export last --records flow:0 --html --to shown.html
    """
    if sum((html or records is not None, jsonl, in_toto, receipts)) > 1:
        raise typer.BadParameter("--html, --jsonl, --records, --in-toto and --receipts write a file each; export twice")
    if records is not None:
        from engine_shim.cli.evidence.excerpt import export_excerpt

        return export_excerpt(run, records, store, to, as_html=html, as_json=as_json)
    if in_toto or receipts:
        from engine_shim.cli.evidence.foreign import export_receipts, export_statement

        return (export_statement if in_toto else export_receipts)(run, store, to, as_json=as_json)
    from engine_shim.cli.records.export import export_run

    return export_run(run, store, as_html=not jsonl, target=to, as_json=as_json)


def replay(
    run: RecordedIfAny = None,
    every: Annotated[bool, typer.Option("--all", help="Replay every run of the store, and print a table.")] = False,
    since: Annotated[str | None, typer.Option(help="With --all: begun since a date, or in the last 7d.")] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A policy to judge the run by instead, JSON or YAML.", callback=check_files)
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="<key=value>", help="One key of that policy; again for each.")
    ] = None,
    strand: Annotated[str | None, typer.Option(help="The policy is that of the agent in this strand alone.")] = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Replay a recorded run offline, and compare every decision.

    \b
    Examples:
      agent-core replay last
      agent-core replay last --set max_steps=3
      agent-core replay --all --since 7d
    """
    from engine_shim.cli.records.audit import read_policy, replay_run

    varied = read_policy(policy, changes or [])
    if strand is not None and (every or varied is None):
        raise typer.BadParameter("--strand takes a RUN, and a policy by --policy or --set")
    if every and run is None:
        from engine_shim.cli.records.many_replays import replay_all
        from engine_shim.cli.timespec import read_since

        return replay_all(store, read_since(since), varied, as_json=as_json)
    if every or run is None or since is not None:
        raise typer.BadParameter("replay takes one run, or --all; --since needs --all")
    return replay_run(run, store, varied, strand, as_json=as_json)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A run, as for show.", autocompletion=complete_recorded)],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The run to compare it with.", autocompletion=complete_recorded)
    ],
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Compare two runs, and say where they part. Times and ids are ignored.

    \b
    Examples:
      agent-core diff last last
    """
    from engine_shim.cli.records.diff import compare_runs

    return compare_runs(a, b, store, as_json=as_json)


def stats(
    since: Since = None,
    workflow: OfWorkflow = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Count what runs did. Workflows by status and error, tools by calls, failures and time, models by tokens and cost.

    \b
    Examples:
      agent-core stats --since 7d
    """
    from engine_shim.cli.records.stats import show_stats
    from engine_shim.cli.timespec import read_since
    from engine_shim.store.entries import RunFilter

    return show_stats(RunFilter(workflow=workflow, since=read_since(since)), store, as_json=as_json)


def erase(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="The runs; they have ended.")] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="All runs of a conversation, and what is remembered of it.")
    ] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="All runs that somebody handed in.")] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; the ledger keeps it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be erased.")] = False,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Destroy what runs have recorded; their proof stays.

    In an encrypted store the keys of the runs are destroyed, and those of the store replaced, so that no copy of them
    opens anything; the records stay, unreadable, and still verify. In any other store the records are deleted, and the
    command says what it cannot promise. The ledger keeps their heads, and who erased what, when and why.

    \b
    Examples:
      agent-core erase last --why "request 71"
    """
    from engine_shim.cli.records.erase import erase_named

    return erase_named(runs or [], conversation, subject, why, store, dry_run=dry_run, as_json=as_json)


def retention(
    older_than: Annotated[str, typer.Option(help="How long ago a run ended at least: 30d, 12h, 30m.")],
    status: Annotated[str, typer.Option(help="Statuses of the runs, separated by commas.")] = FINISHED,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be deleted.")] = False,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Delete old runs with their journals. Runs that have not ended are deleted only if --status names them; their age
    counts from their last record.

    \b
    Examples:
      agent-core retention --older-than 30d --dry-run
    """
    from engine_shim.cli.records.retention import delete_runs

    return delete_runs(older_than, status, store, dry_run=dry_run, as_json=as_json)
