"""Commands that describe: tools, schema, validate."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_core.errors import DefinitionError
from agent_core.run.prepare import prepare_agent
from engine_shim.cli import output
from engine_shim.cli.host import HostConfig, foreign_of, host_config, registry_of
from engine_shim.cli.run import AsJson, Config, Flow
from engine_shim.definition.errors import Problem, problems_in
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import AGENT, Definition
from engine_shim.definition.model_refs import known_config
from engine_shim.definition.validate import validate as find_problems
from engine_shim.definition.warnings import find_warnings
from engine_shim.runs.models import HostModels
from utools.tool import Tool

BRIEF = 100
"""Characters of a description in a list."""
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
        output.document(_shown(registry.get(code), registry.schema(code).schema))
        return output.OK
    if action is not None:
        raise typer.BadParameter("write `tools`, `tools show CODE`, or `tools approve [SOURCE]`")
    if as_json:
        output.document([{"code": tool.code, "description": tool.description} for tool in registry.all()])
        return output.OK
    width = max(len(tool.code) for tool in registry.all())
    for tool in registry.all():
        output.line(f"{tool.code:<{width}}  {_brief(tool.description)}".rstrip())
    return output.OK


def _shown(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    """All that is known of a tool."""
    effect = "depends on its arguments" if callable(tool.effect) else tool.effect
    told = {"code": tool.code, "description": tool.description, "effect": effect, "idempotent": tool.idempotent}
    more = {"output_schema": tool.output_schema, "fingerprint": tool.fingerprint}
    return {**told, "config_schema": schema, **{key: value for key, value in more.items() if value is not None}}


def _brief(description: str) -> str:
    """The first sentence, or as many words of it as a line holds."""
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z`])|\n\s*\n", description.strip(), maxsplit=1)[0]
    text = " ".join(sentence.split())
    if len(text) <= BRIEF:
        return text
    return f"{text[: BRIEF - 1].rsplit(' ', 1)[0].rstrip(' ,;:')}…"


def _approved(name: str | None, config: Path | None, *, as_json: bool) -> int:
    """Approve anew what these sources, or all, offer; tells what that changed."""
    sources = foreign_of(*host_config(config))
    named = [(each, [key for key in each.names if name in (None, key, f"{each.where}/{key}")]) for each in sources]
    if not any(keys for _, keys in named):
        known = ", ".join(f"{each.where}/{key}" for each in sources for key in each.names)
        why = f"there is no such source: {name}; there are {known}"
        raise typer.BadParameter(why if known else "no MCP server and no other host is configured")
    found = [change for source, keys in named if keys for change in source.approve(*keys)]
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
        found = [
            *find_problems(workflow, registry_of(host, base)),
            *models.problems(workflow.definition, workflow.base),
        ]
        return found, list(find_warnings(workflow.definition, models.is_priced(workflow.base)))
    except DefinitionError as error:
        return problems_in(error), ()
