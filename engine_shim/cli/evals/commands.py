"""The commands eval and test: their options and help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from engine_shim.cli.completion import complete_cases, complete_recorded
from engine_shim.cli.parameters import AsJson, Config, Flows, Verbose, refuse_others, take_address

Cases = Annotated[
    Path,
    typer.Argument(
        metavar="CASES|add", help="A case file, or seed-scenarios, or `add`.", autocompletion=complete_cases
    ),
]
Run = Annotated[
    str | None,
    typer.Argument(metavar="[RUN|FILE]", help="With add: the recorded run.", autocompletion=complete_recorded),
]
Model = Annotated[str | None, typer.Option(metavar="<model>", help="The model to measure, e.g. openai:gpt-4o-mini.")]
Compare = Annotated[str | None, typer.Option(metavar="<model>", help="Another model, side by side with the first.")]
CompareSet = Annotated[
    list[str] | None,
    typer.Option("--compare-set", metavar="<key=value>", help="A key as for --set, side by side with the first."),
]
Only = Annotated[list[str] | None, typer.Option(metavar="<case>", help="Only of this category or name, or pattern.")]
Repeat = Annotated[int, typer.Option(metavar="<n>", min=1, help="How often each case is run, with another seed.")]
Concurrency = Annotated[int, typer.Option(metavar="<n>", min=1, help="How many cases run at once.")]
Protocol = Annotated[Literal["json", "tools"] | None, typer.Option(help="The dialect.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="<key=value>", help="A key of the agent's config; again for each.")
]
MinRight = Annotated[
    float, typer.Option(metavar="<share>", min=0, max=1, help="Exit with 1 if a smaller share is right.")
]
Kept = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|URL", help="Keep every run in this store; with add, take it from there.", callback=take_address
    ),
]
To = Annotated[Path, typer.Option(help="With add: the case file, made if it is missing.")]
Name = Annotated[str | None, typer.Option(help="With add: the case's name.")]
Strand = Annotated[str | None, typer.Option(help="With add: the agent, where several ran.")]
OnlyNamed = Annotated[list[str] | None, typer.Option(metavar="<case>", help="Only cases of this name, or pattern.")]
Junit = Annotated[Path | None, typer.Option(metavar="<file>", help="Also write the results as JUnit's XML.")]


def evaluate(
    context: typer.Context,
    cases: Cases,
    run: Run = None,
    model: Model = None,
    compare: Compare = None,
    compare_set: CompareSet = None,
    only: Only = None,
    repeat: Repeat = 1,
    concurrency: Concurrency = 1,
    protocol: Protocol = None,
    settings: Settings = None,
    min_right: MinRight = 0.0,
    store: Kept = None,
    to: To = Path("cases.yaml"),
    name: Name = None,
    strand: Strand = None,
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
    _check_words(cases, run, model)
    added, measured = ("eval add",), ("eval CASES",)
    measuring = ("compare", "compare_set", "only", "repeat", "concurrency", "protocol", "settings", "min_right")
    forms = {**dict.fromkeys(("to", "name", "strand"), added), **dict.fromkeys((*measuring, "config"), measured)}
    refuse_others(context, *(added if str(cases) == "add" else measured), forms)
    if str(cases) == "add" and run is not None:
        from engine_shim.cli.evals.add import add_case

        return add_case(run, to, store, name=name, strand=strand, as_json=as_json)
    from engine_shim.cli.evals.eval import Evaluation, evaluate_model, read_variants

    variants = read_variants(model or "", settings or [], protocol, compare, compare_set or [])
    options = Evaluation(variants, only or [], repeat, concurrency, store, config, min_right)
    return evaluate_model(cases, options, as_json=as_json)


def _check_words(cases: Path, run: str | None, model: str | None) -> None:
    """BadParameter for what belongs to the other form of the command, or is missing in this one."""
    if str(cases) == "add":
        if run is None or model is not None:
            raise typer.BadParameter("write `eval add RUN [--to CASES]`; a case named add is ./add")
    elif run is not None:
        raise typer.BadParameter(f"{run!r}: a run belongs to `eval add RUN`")
    elif model is None:
        raise typer.BadParameter("name the model to measure: --model PROVIDER:NAME")


def run_tests(
    flows: Flows,
    only: OnlyNamed = None,
    junit: Junit = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Test workflows offline, by the cases in FLOW.test.yaml.

    Replies stand in for the models, mocks for the tools. A case says what a run is given, and which path, outputs,
    calls and refusals must come. A call that writes is made by a mock alone.

    \b
    Examples:
      agent-core test flow.yaml
      agent-core test *.test.yaml --junit report.xml
      agent-core test flow.yaml --only 'few*'
    """
    from engine_shim.cli.evals.test import test_flows

    return test_flows(flows, only or [], junit, config, as_json=as_json)
