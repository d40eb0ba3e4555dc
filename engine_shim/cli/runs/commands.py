"""The commands that drive runs, or reach those that are driven: their options and help."""

from typing import Annotated

import typer

from engine_shim.cli.completion import complete_words
from engine_shim.cli.parameters import (
    AsJson,
    Config,
    Debug,
    EngineKind,
    ExistingStore,
    Flow,
    LogFormat,
    LogLevel,
    Model,
    RunId,
    Store,
    Temporal,
    Verbose,
    check_files,
)

DECISIONS = ("approve", "deny", "edit", "retry", "skip", "fail", "done")


def run(
    file: Flow,
    pairs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="<name=value>", help="An input; JSON where `inputs` says so."),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(metavar="<path>", help="A JSON file with all inputs, or - for stdin.", callback=check_files),
    ] = None,
    model: Model = None,
    watch: Annotated[bool, typer.Option("--watch", help="Run again whenever a file of it changes.")] = False,
    store: Store = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> int:
    """Run a workflow.

    \b
    Examples:
      agent-core run flow.yaml --input message="How many A-17 do we have?"
      agent-core run flow.yaml --inputs inputs.json --json
      agent-core run flow.yaml --input message=Hello --watch
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.runs.run import run_workflow

    options = Options(store, config, as_json, engine, temporal)
    if not watch:
        return run_workflow(file, pairs or [], inputs, model, options)
    if as_json or inputs == "-":
        raise typer.BadParameter("--watch runs many times: it goes neither with --json nor with --inputs -")
    from engine_shim.cli.runs.watch import run_and_watch

    return run_and_watch(lambda: run_workflow(file, pairs or [], inputs, model, options))


def resume(
    run_id: RunId,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="Start a new run where this one failed over a model or a read; its models stay."
        ),
    ] = False,
    model: Annotated[str | None, typer.Option(hidden=True)] = None,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> int:
    """Go on with a run that was paused, or whose process died.

    \b
    Examples:
      agent-core resume last
      agent-core resume 20260131-12 --retry-failed
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.records.run_names import find_workflow_run

    if model is not None:
        told = (
            "a run keeps the models that it began with; `agent-core run FLOW --model` asks another one from the start"
        )
        raise typer.BadParameter(f"--model {model}: {told}")
    options = Options(store, config, as_json, engine, temporal)
    if retry_failed:
        from engine_shim.cli.runs.control import retry_run

        return retry_run(find_workflow_run(run_id, options), options)
    from engine_shim.cli.runs.run import resume_run

    return resume_run(find_workflow_run(run_id, options), options)


def decide(
    run_id: RunId,
    word: Annotated[str, typer.Argument(metavar="|".join(DECISIONS), autocompletion=complete_words(*DECISIONS))],
    at: Annotated[str | None, typer.Option(help="STRAND:N, when more than one call waits.")] = None,
    message: Annotated[str, typer.Option(help="Why it is denied; the model reads it.")] = "",
    args: Annotated[
        str | None,
        typer.Option(
            help="The edited arguments, as a JSON object: all of them. Without it, you edit them at the terminal."
        ),
    ] = None,
    result: Annotated[
        str | None, typer.Option("--output", help="What a write in doubt gave that is done, as JSON.")
    ] = None,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> int:
    """Decide on a call that waits, and go on with the run. The run of an agent in another program goes on there.

    \b
    Examples:
      agent-core decide last approve
      agent-core decide last deny --message "Ask me next week."
      agent-core decide last edit --args '{"pieces": 2}'
      agent-core decide last done --output '{"order": 17}'
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.records.run_names import find_run_to_decide
    from engine_shim.cli.runs.ask import is_attended
    from engine_shim.cli.runs.run import decide_call, read_decision, record_decision

    options = Options(store, config, as_json, engine, temporal)
    decision = read_decision(word, message, args, result, attended=is_attended(options))
    run, is_agents_own = find_run_to_decide(run_id, options)
    return (record_decision if is_agents_own else decide_call)(run, decision, at, options)


def signal(
    run_id: RunId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name for which a `wait` node waits.")],
    data: Annotated[str | None, typer.Option(help="JSON: the output `data` of that node.")] = None,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> int:
    """Send a signal to a run. If a node waits for it, the run goes on here.

    \b
    Examples:
      agent-core signal last paid
      agent-core signal last paid --data '{"amount": 12}'
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.records.run_names import find_workflow_run
    from engine_shim.cli.runs.run import signal_run

    options = Options(store, config, as_json, engine, temporal)
    return signal_run(find_workflow_run(run_id, options), name, data, options)


def pause(
    run_id: RunId,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Pause a run: calls under way may answer. `resume` lets it continue.

    \b
    Examples:
      agent-core pause last
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.records.run_names import find_workflow_run
    from engine_shim.cli.runs.control import pause_run

    options = Options(store, config, as_json, engine, temporal)
    return pause_run(find_workflow_run(run_id, options), options)


def cancel(
    run_id: RunId,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """End a run for good. Calls under way are aborted; calls that wait for a person are withdrawn.

    \b
    Examples:
      agent-core cancel last
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.records.run_names import find_workflow_run
    from engine_shim.cli.runs.control import cancel_run

    options = Options(store, config, as_json, engine, temporal)
    return cancel_run(find_workflow_run(run_id, options), options)


def fork(
    run_id: RunId,
    at: Annotated[
        str | None, typer.Option(help="STRAND:N, the first record that is not taken over; `show` lists them.")
    ] = None,
    node: Annotated[str | None, typer.Option("--from", metavar="NODE", help="Fork where this node began last.")] = None,
    repeat_writes: Annotated[
        bool, typer.Option("--repeat-writes", help="The new run may make the writes after it again; do not ask.")
    ] = False,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> int:
    """Start a new run with this one's past. It continues from a record, or from where a node began.

    \b
    Examples:
      agent-core fork last --at flow:1
      agent-core fork last --from agent_core
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.records.run_names import find_workflow_run
    from engine_shim.cli.runs.control import find_beginning, fork_run

    options = Options(store, config, as_json, engine, temporal)
    if (at is None) == (node is None):
        raise typer.BadParameter("fork takes --at STRAND:N, or --from NODE")
    run = find_workflow_run(run_id, options)
    return fork_run(run, at or find_beginning(run, str(node), options), options, repeat_writes=repeat_writes)
