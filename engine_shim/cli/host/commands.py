"""The commands about models, tools and definitions: their options and help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from engine_shim.cli.completion import complete_flow, complete_tool, complete_words
from engine_shim.cli.parameters import (
    AsJson,
    Config,
    Debug,
    EngineKind,
    Flow,
    Flows,
    LogFormat,
    LogLevel,
    Model,
    Store,
    Verbose,
    check_files,
    check_store,
    read_option,
    refuse_others,
)
from engine_shim.cli.serving.commands import check_extra

Example = Literal[
    "cluster",
    "extraction",
    "log-analyst",
    "nightly-report",
    "orders",
    "other-engines",
    "planner",
    "research-graph",
    "support-desk",
]
"""The directories in `engine_shim/examples`."""


def show_help(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="A topic, a command, or `words`.")] = None,
) -> int:
    """Print the recipe of a topic; without one, list the topics.

    `help words` says what the words mean, `help COMMAND` what `COMMAND --help` says.

    \b
    Examples:
      agent-core help
      agent-core help words
      agent-core help approval
    """
    from engine_shim.cli.host.topics import show_topic, show_topics

    return show_topics() if topic is None else show_topic(topic, context.parent)


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The directory to write; by default this one.")
    ] = Path(),
    example: Annotated[Example | None, typer.Option(help="Write this example instead.")] = None,
    as_json: AsJson = False,
) -> int:
    """Write a workflow to begin with, or an example. With it come a tool, recorded replies and a test.

    \b
    Examples:
      agent-core init my-desk
      agent-core init --example support-desk my-desk
    """
    from engine_shim.cli.host.init import write_project

    return write_project(directory, example, as_json=as_json)


def tools(
    context: typer.Context,
    action: Annotated[
        str | None, typer.Argument(metavar="[show|approve]", autocompletion=complete_words("show", "approve"))
    ] = None,
    code: Annotated[str | None, typer.Argument(metavar="[CODE|SOURCE]", autocompletion=complete_tool)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With approve: do not ask.")] = False,
    as_read: Annotated[bool, typer.Option("--as-read", help="With show: as a model reads it.")] = False,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """List the tools of this host, and which of them write. `show CODE` prints one with its schema.

    `approve [SOURCE]` shows what an MCP server or another host now offers otherwise than was approved, and asks whether
    to approve it.

    \b
    Examples:
      agent-core tools
      agent-core tools show calculator
      agent-core tools show calculator --as-read
      agent-core tools approve mcp_servers/github
    """
    from engine_shim.cli.host.tools import approve_tools, list_tools, show_tool

    form = f"tools {action}" if action in ("show", "approve") else "tools"
    refuse_others(context, form, {"yes": ("tools approve",), "as_read": ("tools show",)})
    if action == "approve":
        return approve_tools(code, config, yes=yes, as_json=as_json)
    if action == "show" and code:
        return show_tool(code, config, as_read=as_read)
    if action is not None:
        raise typer.BadParameter("write `tools`, `tools show CODE`, or `tools approve [SOURCE]`")
    return list_tools(config, as_json=as_json)


def agents(
    context: typer.Context,
    action: Annotated[
        str | None, typer.Argument(metavar="[show|check]", autocompletion=complete_words("show", "check"))
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    since: Annotated[str | None, typer.Option(help="With check: begun since a date, or in the last 7d.")] = None,
    config: Config = None,
    store: Annotated[
        str | None,
        typer.Option(
            *("--against", "--store"),
            metavar="FILE|URL",
            help="With check: where runs are stored.",
            envvar="AGENT_CORE_STORE",
            callback=check_store,
        ),
    ] = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """List the agents of this host. `show NAME` prints one, with the tools that its policy keeps and drops.

    `check NAME` tries it on its recorded runs: which past decisions would change, and by which rule. NAME may be a
    workflow's file as well; then its agents are tried.

    \b
    Examples:
      agent-core agents
      agent-core agents show support
      agent-core agents check support --since 30d
      agent-core agents check flow.yaml --against runs.db
    """
    from engine_shim.cli.host.agent_check import check_agent
    from engine_shim.cli.host.agents import list_agents, show_agent
    from engine_shim.cli.timespec import read_since

    form = f"agents {action}" if action in ("show", "check") else "agents"
    refuse_others(context, form, {"since": ("agents check",), "store": ("agents check",)})
    if action == "show" and name:
        return show_agent(name, config)
    if action == "check" and name:
        return check_agent(name, config, store, read_since(since), as_json=as_json)
    if action is not None:
        raise typer.BadParameter("write `agents`, `agents show NAME`, or `agents check NAME`")
    return list_agents(config, as_json=as_json)


def schema(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FLOW]", autocompletion=complete_flow, callback=check_files)
    ] = None,
    node: Annotated[str | None, typer.Option(help="The agent node whose next step is described.")] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Print the JSON Schema of definitions, or of an agent's step.

    With FLOW it is that of the next step that the agent of this workflow may take; with `protocol: tools`, the
    functions that it may call.

    \b
    Examples:
      agent-core schema
      agent-core schema flow.yaml --node agent_core
    """
    from engine_shim.cli.host.describe import show_definition_schema, show_step_schema

    if file is None and node is not None:
        raise typer.BadParameter("--node takes the FLOW that has the node")
    return show_definition_schema() if file is None else show_step_schema(file, node, config)


def graph(
    file: Flow,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="A Mermaid flowchart, for documents.")] = False,
) -> int:
    """Draw a workflow. Its nodes, edges and conditions, loops, errors, approvals and agents' tools.

    \b
    Examples:
      agent-core graph flow.yaml
      agent-core graph flow.yaml --mermaid
    """
    from engine_shim.cli.host.graph import draw_graph

    return draw_graph(file, mermaid=mermaid)


def validate(
    files: Flows,
    model: Model = None,
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Also print what the agents read before the conversation.")
    ] = False,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Find what is wrong with definitions without running them.

    \b
    Examples:
      agent-core validate flow.yaml
      agent-core validate flows/*.yaml --model ollama:qwen2.5:7b
      agent-core validate flow.yaml --show-prompt
    """
    from engine_shim.cli.host.describe import validate_definitions

    return validate_definitions(files, model, config, show_prompt=show_prompt, as_json=as_json)


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Verify only the newest 100 runs.")] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Check only what is needed where tenants do not trust each other.")
    ] = False,
    copied_from: Annotated[
        str | None, typer.Option(metavar="STORE", help="Check only that all of this store has come to the other one.")
    ] = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Find what is missing or broken on this host. Extras, configuration, tools, agents, workflows, keys, stores and
    services; every run is verified. Nothing is written. The exit code is 1 where there is a problem.

    \b
    Examples:
      agent-core doctor
      agent-core doctor --quick --json
      agent-core doctor --shared
      agent-core doctor --store postgresql://localhost/runs --copied-from runs.db
    """
    if sum((quick, shared, copied_from is not None)) > 1:
        raise typer.BadParameter("--quick, --shared and --copied-from look at a thing each; run it once for each")
    from engine_shim.cli.doctor.command import examine_copy, examine_host
    from engine_shim.cli.output import Options

    options = Options(store, config, as_json)
    if copied_from is not None:
        return examine_copy(options, read_option(copied_from, "--copied-from"))
    return examine_host(options, quick=quick, shared=shared)


def demo(
    context: typer.Context,
    story: Annotated[
        Literal["trip", "injection", "crash"],
        typer.Argument(metavar="[STORY]", help="injection: a mail gives orders; crash: a process dies; else a trip."),
    ] = "trip",
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
      agent-core demo injection
      agent-core demo crash
      agent-core demo --serve
      agent-core demo --engine temporal
      agent-core demo --model ollama:qwen2.5:7b
    """
    shown, served = ("demo",), ("demo --serve",)
    told = dict.fromkeys(("story", "question", "engine", "store", "as_json"), shown)
    refuse_others(context, *(served if serve else shown), {**told, "port": served})
    if serve:
        check_extra("demo --serve")
        from engine_shim.cli.host.demo_serve import serve_demo

        return serve_demo(port, model)
    from engine_shim.cli.host.demo import show_demo

    return show_demo(story, model, question, store, engine, as_json=as_json)
