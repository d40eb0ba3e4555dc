"""Commands that drive runs: run, resume, decide."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_core.decisions import DECISIONS, Decision, Edit, decode_decision
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.control import Decisions, waiting_calls
from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.host import engine_of
from engine_shim.cli.live import drive, interrupted, report
from engine_shim.cli.output import Options
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import AGENT

Flow = Annotated[Path, typer.Argument(metavar="FLOW", help="A workflow definition, JSON or YAML.")]
AsJson = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout.")]
Store = Annotated[Path | None, typer.Option(help="The run store's file.", envvar="AGENT_CORE_STORE")]
Config = Annotated[Path | None, typer.Option(help="The host configuration.", envvar="AGENT_CORE_CONFIG")]

ITS_OWN = ("base_url", "api_key_env", "fallback_models")
"""Keys of an agent's config that are meant for the model that the file names, and for no other."""
Decide = Callable[[list[dict[str, Any]]], Decisions]


def run(
    file: Flow,
    given: Annotated[list[str] | None, typer.Option("--input", help="An input, name=value.")] = None,
    inputs: Annotated[str | None, typer.Option(help="A JSON file with all inputs, or - for stdin.")] = None,
    model: Annotated[str | None, typer.Option(help="Ask this model alone in every agent node instead.")] = None,
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Run a workflow."""
    workflow = load_workflow(file)
    external = read_inputs(workflow, given or [], inputs)
    if model:
        workflow = with_model(workflow, model)
    options, engine, run_id = Options(store, config, as_json), engine_of(config, store), new_run_id()
    result = drive(
        engine,
        workflow,
        lambda tell: engine.run(workflow, external=external, run_id=run_id, on_event=tell),
        on_interrupt=interrupted(run_id, options),
    )
    return report(result, workflow, options)


def resume(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Go on with a run that was paused, or whose process died."""
    return _go_on(run_id, None, Options(store, config, as_json))


def decide(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    word: Annotated[str, typer.Argument(metavar="approve|deny|edit|retry|skip|fail")],
    at: Annotated[str | None, typer.Option(help="STRAND:N, when more than one call waits.")] = None,
    message: Annotated[str, typer.Option(help="Why it is denied; the model reads it.")] = "",
    args: Annotated[str | None, typer.Option(help="The edited arguments, as a JSON object.")] = None,
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Decide on a call that waits, and go on with the run."""
    decision = read_decision(word, message, args)
    return _go_on(run_id, lambda waits: {_place(at, waits): decision}, Options(store, config, as_json))


def _go_on(run_id: str, decide: Decide | None, options: Options) -> int:
    engine = engine_of(options.config, options.store)
    workflow = engine.workflow(run_id)
    decisions = decide(waiting_calls(engine.store.journal.load(run_id))) if decide else None
    result = drive(
        engine,
        workflow,
        lambda tell: engine.resume(run_id, decisions=decisions, by=output.user(), on_event=tell),
        on_interrupt=interrupted(run_id, options),
    )
    return report(result, workflow, options)


def read_inputs(workflow: Workflow, given: list[str], source: str | None) -> dict[str, Any]:
    """The run's inputs: the file's, and those given one by one, which win."""
    external: dict[str, Any] = _read_json(source) if source else {}
    declared = (workflow.definition.inputs or {}).get("properties", {})
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals:
            raise typer.BadParameter(f"--input {entry!r}: write name=value")
        external[name] = _input(name, value, declared.get(name))
    return external


def _input(name: str, text: str, schema: Any) -> Any:
    """An input from the command line: a text where the definition allows one, else JSON."""
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    if kind == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        if "string" in kind:
            return text
        raise typer.BadParameter(f"--input {name}: {text!r} is not JSON of type {output.as_text(kind)}") from None


def with_model(workflow: Workflow, model: str) -> Workflow:
    """The same workflow with another model in every agent node, asked where its own name says, and no other."""
    data = workflow.as_json()
    for node in data["nodes"]:
        if node["tool"] == AGENT:
            kept = {key: value for key, value in node.get("config", {}).items() if key not in ITS_OWN}
            node["config"] = {**kept, "model": model}
    if "model" in data:
        data["model"] = model
    return load_workflow(data, base=workflow.base)


def read_decision(word: str, message: str, args: str | None) -> Decision:
    kind = DECISIONS.get(word)
    if kind is None:
        raise typer.BadParameter(f"{word!r} is no decision; there are {', '.join(DECISIONS)}")
    edited = None if args is None else _object("--args", args)
    if (kind is Edit) != (edited is not None):
        raise typer.BadParameter("edit needs --args with a JSON object, and no other decision takes them")
    return decode_decision({"decision": word, "message": message, "args": edited})


def _place(at: str | None, waits: list[dict[str, Any]]) -> tuple[str, int]:
    if at is None:
        if len(waits) == 1:
            return waits[0]["strand"], waits[0]["n"]
        if not waits:
            raise DecisionError("nothing waits in this run; if it stopped in the middle, `agent-core resume` goes on")
        places = ", ".join(f"{entry['strand']}:{entry['n']}" for entry in waits)
        raise DecisionError(f"several calls wait, choose one by --at: {places}")
    return place_of(at)


def place_of(at: str) -> tuple[str, int]:
    """The strand and record that STRAND:N names."""
    strand, colon, n = at.rpartition(":")
    if not colon or not n.isdecimal():
        raise typer.BadParameter(f"--at {at!r}: write STRAND:N")
    return strand, int(n)


def _read_json(source: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
        value = json.loads(text)
    except OSError as error:
        raise DefinitionError(f"the inputs cannot be read: {error.strerror}", where=source) from None
    except ValueError as error:
        raise DefinitionError(f"the inputs are not JSON: {error}", where=source) from None
    if not isinstance(value, dict):
        raise DefinitionError("the inputs must be a JSON object", where=source)
    return value


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{name}: {text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{name}: {text!r} is not a JSON object")
    return value
