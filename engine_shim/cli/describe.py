"""Commands that describe: tools, schema, validate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from agent_core.errors import DefinitionError
from agent_core.node import CODE as AGENT
from agent_core.prepare import prepare_agent
from engine_shim.cli import output
from engine_shim.cli.host import HostConfig, foreign_of, host_config, registry_of
from engine_shim.cli.run import AsJson, Config, Flow
from engine_shim.graph.definition import Definition, load_workflow
from engine_shim.graph.problem import Problem, problems_in
from engine_shim.graph.validate import known_config
from engine_shim.graph.validate import validate as find_problems
from engine_shim.graph.warnings import warnings
from engine_shim.runs.models import HostModels

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def tools(
    action: Annotated[str | None, typer.Argument(metavar="[show|approve]")] = None,
    code: Annotated[str | None, typer.Argument(metavar="[CODE|SOURCE]")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """List the tools of this host, `show CODE` one with its schema, or `approve [SOURCE]` what an MCP server or another
    host offers now."""
    if action == "approve":
        return _approved(code, config, as_json=as_json)
    registry = registry_of(*host_config(config))
    if action == "show" and code:
        tool = registry.get(code)
        schema = registry.schema(code).schema
        output.document({"code": tool.code, "description": tool.description, "config_schema": schema})
        return output.OK
    if action is not None:
        raise typer.BadParameter("write `tools`, `tools show CODE`, or `tools approve [SOURCE]`")
    if as_json:
        output.document([{"code": tool.code, "description": tool.description} for tool in registry.all()])
        return output.OK
    width = max(len(tool.code) for tool in registry.all())
    for tool in registry.all():
        output.line(f"{tool.code:<{width}}  {' '.join(tool.description.split())[:100]}")
    return output.OK


def _approved(name: str | None, config: Path | None, *, as_json: bool) -> int:
    """Approve anew what these sources, or all, offer; tells what that changed."""
    sources = [source for source in foreign_of(*host_config(config)) if name is None or name in source.names]
    if not sources:
        why = f"there is no such source: {name}" if name else "no MCP server and no other host is configured"
        raise typer.BadParameter(why)
    found = [change for source in sources for change in (source.approve(name) if name else source.approve())]
    told = [{"source": each.source, "tool": each.tool, "kind": each.kind} for each in found]
    if as_json:
        output.document({"approved": told})
        return output.OK
    for each in told:
        output.line(f"{each['kind']:<8} {each['source']}: {each['tool']}")
    output.line(f"approved; {output.counted(len(told), 'change')}")
    return output.OK


def schema(
    file: Annotated[Path | None, typer.Argument(metavar="[FLOW]")] = None,
    node: Annotated[str | None, typer.Option(help="The agent node whose legal next step is wanted.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Print the JSON Schema of definitions, or of the legal next step of FLOW's agent node; with `protocol: tools`,
    the functions that it may call."""
    if file is None:
        output.document({"$schema": DIALECT, **Definition.model_json_schema(by_alias=True)})
        return output.OK
    workflow = load_workflow(file)
    agents = [each.id for each in workflow.definition.nodes if each.tool == AGENT]
    name = node or (agents[0] if len(agents) == 1 else None)
    if name not in agents:
        raise typer.BadParameter(f"choose an agent node of {file} by --node; there are {', '.join(agents) or 'none'}")
    probe = {**known_config(workflow.nodes[name]), "response_format": "json_schema"}
    registry = registry_of(*host_config(config))
    options = prepare_agent("schema", "agent", probe, {}, registry=registry, at="", base=workflow.base)["options"]
    output.document(options["step_schema"] if "step_schema" in options else options.get("tools", []))
    return output.OK


def validate(file: Flow, config: Config = None, as_json: AsJson = False) -> int:
    """Find what is wrong with a definition without running it."""
    problems, doubts = _problems(file, *host_config(config))
    if as_json:
        told = {"ok": not problems, "problems": [{"where": p.where, "message": p.message} for p in problems]}
        doubtful = [{"where": each.where, "message": each.message} for each in doubts]
        output.document({**told, "warnings": doubtful} if doubtful else told)
        return output.DEFINITION if problems else output.OK
    for problem in problems:
        output.line(str(problem))
    for doubt in doubts:
        output.line(f"warning: {doubt}")
    output.line(output.counted(len(problems), "problem") if problems else "ok")
    return output.DEFINITION if problems else output.OK


def _problems(file: Path, host: HostConfig, base: Path) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """What is wrong, and what may not be meant."""
    models = HostModels(base_urls=host.base_urls, default_provider=host.default_provider)
    try:
        workflow = load_workflow(file)
        found = [*find_problems(workflow, registry_of(host, base)), *models.problems(workflow)]
        return found, list(warnings(workflow, models.priced(workflow.base)))
    except DefinitionError as error:
        return problems_in(error), ()
