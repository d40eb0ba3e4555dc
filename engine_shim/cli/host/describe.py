"""The commands schema and validate: what a definition may be, and what is wrong with one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent_core.agents.catalog import SUFFIXES, is_agent
from agent_core.agents.fill import fill_agents
from agent_core.errors import DefinitionError
from engine_shim.cli import output
from engine_shim.cli.host.tools import tools_of
from engine_shim.cli.runs.other_model import asks_model, with_model
from engine_shim.definition.errors import Problem, gathering, problems_in
from engine_shim.definition.load import load_parts, load_workflow
from engine_shim.definition.model import AGENT, Definition
from engine_shim.definition.model_refs import known_config
from engine_shim.host.config import HostConfig
from engine_shim.host.find import NAME, load_host_config
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.definition_faults import find_faults
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.open_grants import open_grants
from engine_shim.testing.mark import is_test_file
from utools.document import read_document

if TYPE_CHECKING:
    from engine_shim.cli.host.read_prompt import Prompt

DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
    from agent_core.run.prepare import prepare_agent

    host = load_host_config(config, file)
    registry = tools_of(host)
    filled = fill_agents(workflow.nodes[name].config, build_catalog(host, registry))
    probe = {**known_config(filled), "response_format": "json_schema"}
    options = prepare_agent("schema", "agent", probe, {}, registry=registry, at="", base=workflow.base)["options"]
    output.document(options["step_schema"] if "step_schema" in options else options.get("tools", []))
    return output.OK


def validate_definitions(
    files: Sequence[Path], model: str | None, config: Path | None, *, show_prompt: bool, as_json: bool
) -> int:
    """Write what is wrong with definitions, and what their authors may not mean; with `show_prompt`, what their agents
    read, where nothing is wrong."""
    hosts = {file: load_host_config(config, file) for file in files}
    is_alone = len(hosts) == 1
    found = [_find_problems(file, host, model, is_alone=is_alone) for file, host in hosts.items()]
    problems, doubts = (list(dict.fromkeys(each for pair in found for each in pair[index])) for index in (0, 1))
    prompts: list[Prompt] = []
    if show_prompt and not problems:
        from engine_shim.cli.host.read_prompt import read_prompts

        shown = ((file, host) for file, host in hosts.items() if not (is_test_file(file) or _is_of_host(file, host)))
        prompts = [prompt for file, host in shown for prompt in read_prompts(file, host, tools_of(host))]
    if as_json:
        document: dict[str, Any] = {"ok": not problems, "problems": _masked(problems)}
        more = {"warnings": _masked(doubts), "prompts": [each._asdict() for each in prompts]}
        output.document(document | {key: value for key, value in more.items() if value})
        return output.DEFINITION if problems else output.OK
    for prompt in prompts:
        from engine_shim.cli.host.read_prompt import write_prompt

        write_prompt(prompt)
    for problem in problems:
        output.line(output.mask(str(problem)))
    if any(host.file is None for host in hosts.values()) and any(
        "no tool is called" in each.message for each in problems
    ):
        output.line(f"no {NAME} was found in {Path.cwd()} or above it: only the built-in tools are known")
    for doubt in doubts:
        output.line(output.mask(f"warning: {doubt}"))
    output.line(output.count(len(problems), "problem") if problems else "ok")
    return output.DEFINITION if problems else output.OK


def _is_of_host(file: Path, host: HostConfig) -> bool:
    """Return whether a file is the configuration itself, which was read for the workflows beside it, or an agent of the
    host."""
    if host.file is not None and file.resolve() == host.file.resolve():
        return True
    if file.suffix not in SUFFIXES or file.resolve().parent != (host.base / host.agents).resolve():
        return False
    try:
        return is_agent(file, read_document(file, "the agent").data)
    except DefinitionError:  # which the catalogue tells
        return True


def _masked(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [{**each.as_json(), "message": output.mask(each.message)} for each in problems]


def _find_problems(
    file: Path, host: HostConfig, model: str | None, *, is_alone: bool
) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Return what is wrong, and what the author may not mean; also of the tests of a workflow, and of the host's
    configuration and agents. Among others a workflow may ask no model."""
    try:
        if _is_of_host(file, host):
            build_catalog(host, tools_of(host))
            return (), ()
        if is_test_file(file):
            from engine_shim.testing.load import load_tests

            load_tests(file, host.file)
            return (), ()
        workflow, faults = load_parts(file)
        problems: list[Problem] = []
        with gathering(problems):
            registry = tools_of(host)
            catalog = build_catalog(host, registry)
        if workflow is None or problems:
            return [*problems, *faults], ()
        if model is not None and not faults and (is_alone or asks_model(workflow.definition)):
            workflow = with_model(workflow, model)
        found = find_faults(workflow, faults, HostCheck(open_grants(host, registry).own), catalog)
        return found.problems, found.warnings
    except DefinitionError as error:
        return problems_in(error), ()
