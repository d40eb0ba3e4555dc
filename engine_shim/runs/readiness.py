"""Whether this host can go on with a recorded run: it is asked before a decision is recorded or anything acts."""

from collections.abc import Iterator
from pathlib import Path

from agent_core.effects import Json
from agent_core.journal.chain import is_finished
from agent_core.journal.record import Tape
from agent_core.run.secrets import Secrets
from engine_shim.definition.errors import message_of, refuse
from engine_shim.definition.model import read_definition
from engine_shim.errors import DefinitionError
from engine_shim.runs.models import HostModels
from engine_shim.runs.prepare import ROOT
from utools.errors import ToolError
from utools.registry import ToolRegistry


def check_host(tape: Tape, base: Path, registry: ToolRegistry, models: HostModels, secrets: Secrets) -> None:
    """DefinitionError when an unfinished run needs a tool, a model, a model's key or a secret that this host lacks."""
    if is_finished(tape, ROOT):
        return
    runs = [record for rows in tape.values() if (record := rows[0].record())["kind"] == "run_started"]
    _check_tools(runs, registry)
    definition = read_definition(tape[ROOT][0].record()["definition"])
    refuse(models.unaskable(definition, base))
    client_of = models.at(base)
    for path, config in _unfinished_agents(tape):
        try:
            client_of(config["model"], config)
        except DefinitionError as error:
            raise DefinitionError(message_of(error), where=f"{path}: {error.where}".removesuffix(": ")) from None
    for name in sorted(definition.secrets):
        try:
            secrets(name)
        except ToolError as error:
            raise DefinitionError(str(error), where="env", value=name) from None


def _check_tools(runs: list[Json], registry: ToolRegistry) -> None:
    needed = {code for record in runs for code in record["tools"]}
    if missing := sorted(needed - {tool.code for tool in registry.all()}):
        message = f"this host has no tool {missing[0]!r}, which the run needs"
        raise DefinitionError(f"{message}; was it started with another configuration?", where="host configuration")


def _unfinished_agents(tape: Tape) -> Iterator[tuple[str, Json]]:
    """Strand and config of each agent that has begun and not ended."""
    for path, rows in tape.items():
        first = rows[0].record()
        if first["kind"] == "run_started" and first["loop"] == "agent" and not is_finished(tape, path):
            yield path, first["config"]
