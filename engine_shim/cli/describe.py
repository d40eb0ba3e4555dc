"""The commands tools, schema and validate: what this host offers, and what a definition may be."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from agent_core.errors import DefinitionError
from agent_core.run.prepare import prepare_agent
from engine_shim.cli import output
from engine_shim.definition.errors import Problem, problems_in
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import AGENT, Definition
from engine_shim.definition.model_refs import known_config
from engine_shim.definition.validate import examine
from engine_shim.definition.warnings import find_warnings
from engine_shim.host.config import HostConfig
from engine_shim.host.find import load_host_config
from engine_shim.host.registry import build_registry, pinned_sources
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.models import HostModels
from engine_shim.runs.prepare import with_runs
from utools.registry import ToolRegistry
from utools.tool import Tool

BRIEF = 100
"""Characters of a description in a list."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def list_tools(config: Path | None, *, as_json: bool) -> int:
    """List the tools of this host."""
    registry = _tools_of(load_host_config(config))
    if as_json:
        output.document([{"code": tool.code, "description": tool.description} for tool in registry.all()])
        return output.OK
    width = max(len(tool.code) for tool in registry.all())
    for tool in registry.all():
        output.line(f"{tool.code:<{width}}  {_shorten(tool.description)}".rstrip())
    return output.OK


def show_tool(code: str, config: Path | None) -> int:
    """Write all that is known of one tool."""
    registry = _tools_of(load_host_config(config))
    output.document(_tool_as_data(registry.get(code), registry.schema(code).schema))
    return output.OK


def _tools_of(host: HostConfig) -> ToolRegistry:
    """All tools of a host, those that are runs too."""
    return with_runs(build_registry(host), None)


def _tool_as_data(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    """All that is known of a tool."""
    effect = "depends on its arguments" if callable(tool.effect) else tool.effect
    fields = {"code": tool.code, "description": tool.description, "effect": effect, "idempotent": tool.idempotent}
    more = {"output_schema": tool.output_schema, "fingerprint": tool.fingerprint}
    return {**fields, "config_schema": schema, **{key: value for key, value in more.items() if value is not None}}


def _shorten(description: str) -> str:
    """The first sentence, or as many words of it as a line holds."""
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z`])|\n\s*\n", description.strip(), maxsplit=1)[0]
    text = " ".join(sentence.split())
    if len(text) <= BRIEF:
        return text
    return f"{text[: BRIEF - 1].rsplit(' ', 1)[0].rstrip(' ,;:')}…"


def approve_tools(name: str | None, config: Path | None, *, as_json: bool) -> int:
    """Approve anew what these sources, or all, offer, and write what that changed."""
    sources = pinned_sources(load_host_config(config))
    chosen = [(each, [key for key in each.names if name in (None, key, f"{each.where}/{key}")]) for each in sources]
    if not any(keys for _, keys in chosen):
        known = ", ".join(f"{each.where}/{key}" for each in sources for key in each.names)
        why = f"there is no such source: {name}; there are {known}"
        raise typer.BadParameter(why if known else "no MCP server and no other host is configured")
    found = [change for source, keys in chosen if keys for change in source.approve(*keys)]
    changes = [{"source": each.source, "tool": each.tool, "kind": each.kind} for each in found]
    if as_json:
        output.document({"approved": changes})
        return output.OK
    for change in changes:
        output.line(f"{change['kind']:<8} {change['source']}: {change['tool']}")
    output.line(f"approved; {output.count(len(changes), 'change')}")
    return output.OK


def show_definition_schema() -> int:
    """Write the JSON Schema of definitions."""
    output.document({"$schema": DIALECT, **Definition.model_json_schema(by_alias=True)})
    return output.OK


def show_step_schema(file: Path, node: str | None, config: Path | None) -> int:
    """Write the JSON Schema of an agent's legal next step, or the functions that it may call."""
    workflow = load_workflow(file)
    agents = [each.id for each in workflow.definition.nodes if each.tool == AGENT]
    name = node or (agents[0] if len(agents) == 1 else None)
    if name not in agents:
        raise typer.BadParameter(f"choose an agent node of {file} by --node; there are {', '.join(agents) or 'none'}")
    probe = {**known_config(workflow.nodes[name].config), "response_format": "json_schema"}
    registry = _tools_of(load_host_config(config, file))
    options = prepare_agent("schema", "agent", probe, {}, registry=registry, at="", base=workflow.base)["options"]
    output.document(options["step_schema"] if "step_schema" in options else options.get("tools", []))
    return output.OK


def validate_definition(file: Path, config: Path | None, *, as_json: bool) -> int:
    """Write what is wrong with a definition, and what its author may not mean."""
    problems, doubts = _find_problems(file, load_host_config(config, file))
    if as_json:
        document = {"ok": not problems, "problems": _masked(problems)}
        output.document({**document, "warnings": _masked(doubts)} if doubts else document)
        return output.DEFINITION if problems else output.OK
    for problem in problems:
        output.line(output.mask(str(problem)))
    for doubt in doubts:
        output.line(output.mask(f"warning: {doubt}"))
    output.line(output.count(len(problems), "problem") if problems else "ok")
    return output.DEFINITION if problems else output.OK


def _masked(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [{**each.as_json(), "message": output.mask(each.message)} for each in problems]


def _find_problems(file: Path, host: HostConfig) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """What is wrong, and what the author may not mean."""
    models = HostModels(base_urls=host.base_urls, default_provider=host.default_provider)
    try:
        workflow, registry = load_workflow(file), _tools_of(host)
        found, check = examine(workflow, registry), HostCheck(registry, host.secrets(), models)
        doubts = map(workflow.locate, find_warnings(workflow.definition, models.is_priced(workflow.base)))
        problems = [*found.problems, *check.problems(workflow, found.invoked)]
        return problems, [*doubts, *found.warnings, *check.warnings(workflow, found.invoked)]
    except DefinitionError as error:
        return problems_in(error), ()
