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
)
from engine_shim.cli.serve_commands import check_extra

DECISIONS = ("approve", "deny", "edit", "retry", "skip", "fail")


def run(
    file: Flow,
    pairs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="<name=value>", help="An input; JSON where `inputs` says so."),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(metavar="<path>", help="A JSON file with all inputs, or - for stdin.")
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
    from engine_shim.cli.run import run_workflow

    options = Options(store, config, as_json, engine, temporal)
    if not watch:
        return run_workflow(file, pairs or [], inputs, model, options)
    if as_json or inputs == "-":
        raise typer.BadParameter("--watch runs many times: it goes neither with --json nor with --inputs -")
    from engine_shim.cli.watch import run_and_watch

    return run_and_watch(lambda: run_workflow(file, pairs or [], inputs, model, options))


def chat(
    agent: Annotated[str | None, typer.Option(metavar="<name>", help="Which agent of this host answers.")] = None,
    model: Annotated[str | None, typer.Option(metavar="<model>", help="Ask this model instead of the agent's.")] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="<id>", help="Go on with this conversation; else a new one begins.")
    ] = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Talk with an agent. Its steps go to stderr, its answers to stdout; /help lists what else can be done. Without a
    terminal each line of stdin is a message.

    \b
    Examples:
      agent-core chat --model openai:gpt-4o-mini
      agent-core chat --agent support --conversation desk
    """
    from engine_shim.cli.chat import chat_with_agent
    from engine_shim.cli.output import Options

    return chat_with_agent(agent, model, conversation, Options(store, config))


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
    from engine_shim.cli.run_names import find_workflow_run

    if model is not None:
        told = (
            "a run keeps the models that it began with; `agent-core run FLOW --model` asks another one from the start"
        )
        raise typer.BadParameter(f"--model {model}: {told}")
    options = Options(store, config, as_json, engine, temporal)
    if retry_failed:
        from engine_shim.cli.control import retry_run

        return retry_run(find_workflow_run(run_id, options), options)
    from engine_shim.cli.run import resume_run

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
    """Decide on a call that waits, and go on with the run.

    \b
    Examples:
      agent-core decide last approve
      agent-core decide last deny --message "Ask me next week."
      agent-core decide last edit --args '{"pieces": 2}'
    """
    from engine_shim.cli.ask import is_attended
    from engine_shim.cli.output import Options
    from engine_shim.cli.run import decide_call, read_decision
    from engine_shim.cli.run_names import find_workflow_run

    options = Options(store, config, as_json, engine, temporal)
    decision = read_decision(word, message, args, attended=is_attended(options))
    return decide_call(find_workflow_run(run_id, options), decision, at, options)


def pause(
    run_id: RunId,
    store: ExistingStore = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Pause a run: calls under way may answer. `resume` goes on.

    \b
    Examples:
      agent-core pause last
    """
    from engine_shim.cli.control import pause_run
    from engine_shim.cli.output import Options
    from engine_shim.cli.run_names import find_workflow_run

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
    """End a run for good. Calls under way are aborted, and nobody is asked about what waits.

    \b
    Examples:
      agent-core cancel last
    """
    from engine_shim.cli.control import cancel_run
    from engine_shim.cli.output import Options
    from engine_shim.cli.run_names import find_workflow_run

    options = Options(store, config, as_json, engine, temporal)
    return cancel_run(find_workflow_run(run_id, options), options)


def fork(
    run_id: RunId,
    at: Annotated[str, typer.Option(help="STRAND:N, the first record that is not taken over; `show` lists them.")],
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
    """Start a new run with this one's past up to a record. It goes on from there.

    \b
    Examples:
      agent-core fork last --at flow:1
    """
    from engine_shim.cli.control import fork_run
    from engine_shim.cli.output import Options
    from engine_shim.cli.run_names import find_workflow_run

    options = Options(store, config, as_json, engine, temporal)
    return fork_run(find_workflow_run(run_id, options), at, options, repeat_writes=repeat_writes)


def demo(
    model: Annotated[str | None, typer.Option(help="A real model, e.g. openai:gpt-4o-mini.")] = None,
    question: Annotated[str | None, typer.Option(help="Ask something else; needs --model.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page on the demo, for a browser.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: the port to listen at.")] = 8080,
    engine: EngineKind = None,
    store: Store = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> int:
    """See an agent think, answer and prove itself.

    \b
    Examples:
      agent-core demo
      agent-core demo --serve
      agent-core demo --engine temporal
      agent-core demo --model ollama:qwen2.5:7b
    """
    if serve:
        check_extra("demo --serve")
        from engine_shim.cli.demo_serve import serve_demo

        return serve_demo(port, model)
    from engine_shim.cli.demo import show_demo

    return show_demo(model, question, store, engine, as_json=as_json)
