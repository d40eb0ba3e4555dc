"""The commands about models, tools and definitions: their options and help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from engine_shim.cli.completion import complete_cases, complete_flow, complete_recorded, complete_tool, complete_words
from engine_shim.cli.parameters import AsJson, Config, Flow, Verbose


def init(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to; here if it is left out.")] = Path(),
    as_json: AsJson = False,
) -> int:
    """Write a workflow, a tool and a test to begin with.

    \b
    Examples:
      agent-core init my-desk
      agent-core init
    """
    from engine_shim.cli.init import write_project

    return write_project(directory, as_json=as_json)


def evaluate(
    cases: Annotated[
        Path,
        typer.Argument(
            metavar="CASES|add", help="A case file, or seed-scenarios, or `add`.", autocompletion=complete_cases
        ),
    ],
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE]", help="With add: the recorded run.", autocompletion=complete_recorded),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="<model>", help="The model to measure, e.g. openai:gpt-4o-mini.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="<model>", help="Another model, side by side with the first.")
    ] = None,
    compare_set: Annotated[
        list[str] | None,
        typer.Option("--compare-set", metavar="<key=value>", help="A key as for --set, side by side with the first."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="<case>", help="Only of this category or name, or pattern.")
    ] = None,
    repeat: Annotated[
        int, typer.Option(metavar="<n>", min=1, help="How often each case is run, with another seed.")
    ] = 1,
    concurrency: Annotated[int, typer.Option(metavar="<n>", min=1, help="How many cases run at once.")] = 1,
    protocol: Annotated[Literal["json", "tools"] | None, typer.Option(help="The dialect.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="<key=value>", help="A key of the agent's config; again for each."),
    ] = None,
    min_right: Annotated[
        float, typer.Option(metavar="<share>", min=0, max=1, help="Exit with 1 if a smaller share is right.")
    ] = 0.0,
    store: Annotated[
        Path | None, typer.Option(help="Keep every run in this store; with add, take it from there.")
    ] = None,
    to: Annotated[Path, typer.Option(help="With add: the case file, made if it is missing.")] = Path("cases.yaml"),
    name: Annotated[str | None, typer.Option(help="With add: the case's name.")] = None,
    strand: Annotated[str | None, typer.Option(help="With add: the agent, where several ran.")] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Measure a model on cases, or two side by side. `add RUN` makes a case of a recorded run.

    Tool choice, arguments, several steps, recovery from errors, answers, refusals, tokens. The cases use canned tools,
    or those of your host or workflow. seed-scenarios ships with the package.

    \b
    Examples:
      agent-core eval seed-scenarios --model ollama:qwen2.5:7b
      agent-core eval cases.yaml --model openai:gpt-4o-mini --min-right 0.95
      agent-core eval cases.yaml --model qwen:qwen-plus --compare qwen:qwen-max
      agent-core eval cases.yaml --model M --compare-set prompts=small
      agent-core eval add last --to cases.yaml
    """
    if str(cases) == "add":
        from engine_shim.cli.eval_add import add_case

        if run is None or model is not None:
            raise typer.BadParameter("write `eval add RUN [--to CASES]`; a case named add is ./add")
        return add_case(run, to, store, name=name, strand=strand, as_json=as_json)
    if run is not None:
        raise typer.BadParameter(f"{run!r}: a run belongs to `eval add RUN`")
    if model is None:
        raise typer.BadParameter("name the model to measure: --model PROVIDER:NAME")
    from engine_shim.cli.eval import Evaluation, evaluate_model, read_variant, variants_of

    chosen = {**({"protocol": protocol} if protocol else {}), **read_variant(settings or [])}
    variants = variants_of(model, chosen, compare, read_variant(compare_set or [], "--compare-set"))
    options = Evaluation(variants, only or [], repeat, concurrency, store, config, min_right)
    return evaluate_model(cases, options, as_json=as_json)


def tools(
    action: Annotated[
        str | None, typer.Argument(metavar="[show|approve]", autocompletion=complete_words("show", "approve"))
    ] = None,
    code: Annotated[str | None, typer.Argument(metavar="[CODE|SOURCE]", autocompletion=complete_tool)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With approve: do not ask.")] = False,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """List the tools of this host, and which of them write. `show CODE` prints one with its schema, `approve [SOURCE]`
    shows what an MCP server or another host offers otherwise than was approved, asks, and approves it.

    \b
    Examples:
      agent-core tools
      agent-core tools show calculator
      agent-core tools approve mcp_servers/github
    """
    from engine_shim.cli.tools import approve_tools, list_tools, show_tool

    if action == "approve":
        return approve_tools(code, config, yes=yes, as_json=as_json)
    if action == "show" and code:
        return show_tool(code, config)
    if action is not None:
        raise typer.BadParameter("write `tools`, `tools show CODE`, or `tools approve [SOURCE]`")
    return list_tools(config, as_json=as_json)


def schema(
    file: Annotated[Path | None, typer.Argument(metavar="[FLOW]", autocompletion=complete_flow)] = None,
    node: Annotated[str | None, typer.Option(help="The agent node whose legal next step is wanted.")] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Print the JSON Schema of definitions, or of an agent's step. With FLOW, the legal next step of its agent node, or
    with `protocol: tools` the functions that it may call.

    \b
    Examples:
      agent-core schema
      agent-core schema flow.yaml --node agent_core
    """
    from engine_shim.cli.describe import show_definition_schema, show_step_schema

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
    from engine_shim.cli.graph import draw_graph

    return draw_graph(file, mermaid=mermaid)


def validate(file: Flow, config: Config = None, verbose: Verbose = False, as_json: AsJson = False) -> int:
    """Find what is wrong with a definition without running it.

    \b
    Examples:
      agent-core validate flow.yaml
    """
    from engine_shim.cli.describe import validate_definition

    return validate_definition(file, config, as_json=as_json)
