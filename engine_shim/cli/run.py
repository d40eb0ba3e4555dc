"""Commands that drive runs: run, resume, decide."""

import asyncio
import getpass
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.decide import waiting
from agent_core.loop.effects import DECISIONS, Decision, Edit, decision_from
from engine_shim.cli import output
from engine_shim.cli.host import engine_of
from engine_shim.cli.view import View
from engine_shim.graph.definition import Workflow, load_workflow
from engine_shim.runs.runner import RunResult

AsJson = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout.")]
Store = Annotated[Path | None, typer.Option(help="The run store's file.", envvar="AGENT_CORE_STORE")]
Config = Annotated[Path | None, typer.Option(help="The host configuration.", envvar="AGENT_CORE_CONFIG")]


def run(
    file: Annotated[Path, typer.Argument(help="A workflow definition, JSON or YAML.")],
    given: Annotated[list[str] | None, typer.Option("--input", help="An input, name=value.")] = None,
    inputs: Annotated[str | None, typer.Option(help="A JSON file with all inputs, or - for stdin.")] = None,
    model: Annotated[str | None, typer.Option(help="Ask this model in every agent node instead.")] = None,
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Run a workflow."""
    workflow = load_workflow(file)
    external = read_inputs(workflow, given or [], inputs)
    if model:
        workflow = with_model(workflow, model)
    engine = engine_of(config, store)
    with View() as tell:
        result = asyncio.run(engine.run(workflow, external=external, on_event=tell))
    return report(result, as_json=as_json)


def resume(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Go on with a run whose process died."""
    engine = engine_of(config, store)
    with View() as tell:
        result = asyncio.run(engine.resume(run_id, on_event=tell))
    return report(result, as_json=as_json)


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
    engine = engine_of(config, store)
    place = _place(at, waiting(engine.store.journal.load(run_id)))
    with View() as tell:
        going_on = engine.resume(run_id, decisions={place: decision}, by=getpass.getuser(), on_event=tell)
        result = asyncio.run(going_on)
    return report(result, as_json=as_json)


def report(result: RunResult, *, as_json: bool) -> int:
    """Tell the result; returns the exit code."""
    if as_json:
        output.document(result.as_json())
    else:
        output.summary(result)
    return output.exit_code(result)


def read_inputs(workflow: Workflow, given: list[str], source: str | None) -> dict[str, Any]:
    """The run's inputs. A value is text, unless the definition says that the input has another type."""
    external: dict[str, Any] = _read_json(source) if source else {}
    declared = (workflow.definition.inputs or {}).get("properties", {})
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals:
            raise typer.BadParameter(f"--input {entry!r}: write name=value")
        kind = declared.get(name, {}).get("type", "string") if isinstance(declared.get(name, {}), dict) else "string"
        external[name] = value if kind == "string" else _value(name, value)
    return external


def with_model(workflow: Workflow, model: str) -> Workflow:
    """The same workflow with another model in every agent node."""
    data = workflow.as_json()
    for node in data["nodes"]:
        if node["tool"] == "agent_core":
            node["config"] = {**node.get("config", {}), "model": model}
    return load_workflow(data, base=workflow.base)


def read_decision(word: str, message: str, args: str | None) -> Decision:
    kind = DECISIONS.get(word)
    if kind is None:
        raise typer.BadParameter(f"{word!r} is no decision; there are {', '.join(DECISIONS)}")
    edited = _value("--args", args) if args else None
    if kind is Edit and not isinstance(edited, dict):
        raise typer.BadParameter("edit needs --args with a JSON object")
    return decision_from({"decision": word, "message": message, "args": edited})


def _place(at: str | None, waits: list[dict[str, Any]]) -> tuple[str, int]:
    if at is None:
        if len(waits) == 1:
            return waits[0]["strand"], waits[0]["n"]
        places = ", ".join(f"{entry['strand']}:{entry['n']}" for entry in waits)
        raise DecisionError(
            f"several calls wait, choose one by --at: {places}" if waits else "nothing waits in this run"
        )
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


def _value(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise typer.BadParameter(f"{name}: {text!r} is not JSON") from None
