"""The commands of `agent-core` with their options and help. Each imports what it needs when it is called."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from engine_shim.cli.terminal import with_own_streams

QUESTION = "What did the trip to Lisbon cost in all, and which item was the dearest?"
FINISHED = "completed,failed,cancelled"


def show_log(verbose: bool) -> None:
    """Write what the packages log to stderr."""
    from engine_shim.cli.log import configure_log

    configure_log(verbose=verbose)


Flow = Annotated[Path, typer.Argument(metavar="FLOW", help="A workflow definition, JSON or YAML.")]
RunId = Annotated[str, typer.Argument(metavar="RUN")]
Recorded = Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run's id in the store, or a journal file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout.")]
Store = Annotated[Path | None, typer.Option(help="The run store's file.", envvar="AGENT_CORE_STORE")]
Config = Annotated[Path | None, typer.Option(help="The host configuration.", envvar="AGENT_CORE_CONFIG")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Say on stderr which configuration is used.", callback=show_log, expose_value=False),
]


# ── runs that are driven ─────────────────────────────────────────────────────────────────────────


def run(
    file: Flow,
    pairs: Annotated[list[str] | None, typer.Option("--input", help="An input, name=value.")] = None,
    inputs: Annotated[str | None, typer.Option(help="A JSON file with all inputs, or - for stdin.")] = None,
    model: Annotated[str | None, typer.Option(help="Ask this model alone in every agent node instead.")] = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Run a workflow."""
    from engine_shim.cli.output import Options
    from engine_shim.cli.run import run_workflow

    return run_workflow(file, pairs or [], inputs, model, Options(store, config, as_json))


def resume(
    run_id: RunId,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Start a new run where this one failed over a model or a read."),
    ] = False,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Go on with a run that was paused, or whose process died."""
    from engine_shim.cli.output import Options

    if retry_failed:
        from engine_shim.cli.control import retry_run

        return retry_run(run_id, Options(store, config, as_json))
    from engine_shim.cli.run import resume_run

    return resume_run(run_id, Options(store, config, as_json))


def decide(
    run_id: RunId,
    word: Annotated[str, typer.Argument(metavar="approve|deny|edit|retry|skip|fail")],
    at: Annotated[str | None, typer.Option(help="STRAND:N, when more than one call waits.")] = None,
    message: Annotated[str, typer.Option(help="Why it is denied; the model reads it.")] = "",
    args: Annotated[str | None, typer.Option(help="The edited arguments, as a JSON object.")] = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Decide on a call that waits, and go on with the run."""
    from engine_shim.cli.output import Options
    from engine_shim.cli.run import decide_call, read_decision

    return decide_call(run_id, read_decision(word, message, args), at, Options(store, config, as_json))


def pause(
    run_id: RunId, store: Store = None, config: Config = None, verbose: Verbose = False, as_json: AsJson = False
) -> int:
    """Pause a run: calls under way may answer. `resume` goes on."""
    from engine_shim.cli.control import pause_run
    from engine_shim.cli.output import Options

    return pause_run(run_id, Options(store, config, as_json))


def cancel(
    run_id: RunId, store: Store = None, config: Config = None, verbose: Verbose = False, as_json: AsJson = False
) -> int:
    """End a run for good. Calls under way are aborted, and nobody is asked about what waits."""
    from engine_shim.cli.control import cancel_run
    from engine_shim.cli.output import Options

    return cancel_run(run_id, Options(store, config, as_json))


def fork(
    run_id: RunId,
    at: Annotated[str, typer.Option(help="STRAND:N, the first record that is not taken over; `show` lists them.")],
    repeat_writes: Annotated[
        bool, typer.Option("--repeat-writes", help="The new run may make the writes after it again; do not ask.")
    ] = False,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Start a new run with this one's past up to a record. It goes on from there."""
    from engine_shim.cli.control import fork_run
    from engine_shim.cli.output import Options

    return fork_run(run_id, at, Options(store, config, as_json), repeat_writes=repeat_writes)


def demo(
    model: Annotated[str | None, typer.Option(help="A real model, e.g. openai:gpt-4o-mini.")] = None,
    question: Annotated[str, typer.Option(help="Ask something else; needs a real model.")] = QUESTION,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """See an agent think, answer and prove itself."""
    from engine_shim.cli.demo import show_demo

    return show_demo(model, question, store, as_json=as_json)


# ── runs that are looked at ──────────────────────────────────────────────────────────────────────


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


# ── models, tools and definitions ────────────────────────────────────────────────────────────────


def evaluate(
    file: Annotated[Path, typer.Argument(metavar="CASES", help="A case file, JSON or YAML.")],
    model: Annotated[str, typer.Option(help="The model to measure, e.g. openai:gpt-4o-mini.")],
    only: Annotated[list[str] | None, typer.Option(help="Only cases of this category.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="How often each case is run, with another seed.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="How many cases run at once.")] = 1,
    protocol: Annotated[Literal["json", "tools"], typer.Option(help="The dialect.")] = "json",
    settings: Annotated[list[str] | None, typer.Option("--set", help="A key of the agent's config, key=value.")] = None,
    store: Annotated[Path | None, typer.Option(help="Keep every run in this store, to look at with show.")] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Measure a model on cases. Tool choice, arguments, several steps, recovery from errors, answers, tokens."""
    from engine_shim.cli.eval import Evaluation, evaluate_model, read_settings

    chosen = {"protocol": protocol, **read_settings(settings or [])}
    return evaluate_model(
        file, Evaluation(model, chosen, only or [], repeat, concurrency, store, config), as_json=as_json
    )


def tools(
    action: Annotated[str | None, typer.Argument(metavar="[show|approve]")] = None,
    code: Annotated[str | None, typer.Argument(metavar="[CODE|SOURCE]")] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """List the tools of this host. `show CODE` prints one with its schema, `approve [SOURCE]` accepts what an MCP
    server or another host offers now."""
    from engine_shim.cli.describe import approve_tools, list_tools, show_tool

    if action == "approve":
        return approve_tools(code, config, as_json=as_json)
    if action == "show" and code:
        return show_tool(code, config)
    if action is not None:
        raise typer.BadParameter("write `tools`, `tools show CODE`, or `tools approve [SOURCE]`")
    return list_tools(config, as_json=as_json)


def schema(
    file: Annotated[Path | None, typer.Argument(metavar="[FLOW]")] = None,
    node: Annotated[str | None, typer.Option(help="The agent node whose legal next step is wanted.")] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Print the JSON Schema of definitions, or of an agent's step. With FLOW, the legal next step of its agent node, or
    with `protocol: tools` the functions that it may call."""
    from engine_shim.cli.describe import show_definition_schema, show_step_schema

    return show_definition_schema() if file is None else show_step_schema(file, node, config)


def validate(file: Flow, config: Config = None, verbose: Verbose = False, as_json: AsJson = False) -> int:
    """Find what is wrong with a definition without running it."""
    from engine_shim.cli.describe import validate_definition

    return validate_definition(file, config, as_json=as_json)


COMMANDS: tuple[Callable[..., int], ...] = (
    *(run, resume, decide, pause, cancel, fork, demo),
    *(runs, show, verify, replay, diff),
    *(evaluate, retention, tools, schema, validate),
)
NAMES = {evaluate: "eval"}
"""Commands whose name is one of Python's own."""

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
for command in COMMANDS:
    app.command(NAMES.get(command))(with_own_streams(command))
