"""The command eval add: a case made of a recorded run, at the end of a case file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_core.audit.replay import replay
from agent_core.errors import DefinitionError
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Tape
from agent_core.outputs import Json
from engine_shim.cli import output
from engine_shim.cli.records.recorded import find_recorded
from engine_shim.definition.model import ROOT
from engine_shim.evals.append import append_case
from engine_shim.evals.fillings import find_fillings
from engine_shim.evals.from_run import KnownTool, case_of_run, find_agent
from engine_shim.evals.load import OpenedCases, open_cases
from engine_shim.evals.suite import Suite
from engine_shim.runs.loops import LOOPS
from utools.databases.store_address import StoreAddress
from utools.files.atomic import changing

PURE = ("calculator", "echo")
"""Tools of the eval whose answers follow from their arguments alone."""
REDACTED = "[redacted:"


def add_case(
    run: str, file: Path, store: StoreAddress | None, *, name: str | None, strand: str | None, as_json: bool
) -> int:
    """Make a case of a run, append it to the file, and say what it expects."""
    run_id, tape = find_recorded(run, store).load()
    check_chains(run_id, tape)
    with changing(file):
        case = _add(run_id, tape, file, name, strand)
    if as_json:
        output.document({"file": str(file), "run_id": run_id, "case": case})
    else:
        _write_summary(case, file)
    return output.OK


def _add(run: str, tape: Tape, file: Path, name: str | None, strand: str | None) -> Json:
    """Append a case of a run to the file, and return it."""
    opened = open_cases(file) if file.exists() else OpenedCases(Suite([]), [], [], [])
    suite = opened.suite
    known = _known_tools(suite)
    path = find_agent(tape, strand)
    case = case_of_run(tape, path, name=name, known=known, with_agent=suite.agent is None)
    if suite.agent is not None:
        case |= find_fillings(tape, path, suite.agent.measured_keys, _outputs_of_nodes(run, tape))
    if case["name"] in [each.name for each in opened.labels]:
        message = "this file has a case of this name; give another by --name"
        raise DefinitionError(message, where=str(file), value=case["name"])
    append_case(file, case)
    return case


def _outputs_of_nodes(run: str, tape: Tape) -> Mapping[str, Any]:
    """Return what the nodes of a workflow gave in a recorded run, as its replay tells; nothing for what is no
    workflow."""
    rows = [row for rows in tape.values() for row in rows]
    outcome = replay(rows, run_id=run, loops=LOOPS).outputs.get(ROOT)
    return {} if outcome is None else outcome.nodes


def _known_tools(suite: Suite) -> dict[str, KnownTool]:
    registry = suite.build_registry({})
    return {
        tool.code: KnownTool(registry._schema(tool.code).schema, is_pure=tool.code in PURE) for tool in registry.all()
    }


def _write_summary(case: Json, file: Path) -> None:
    """What the case expects, and what its author has to look at."""
    output.line(f"added {case['name']} to {file}")
    for call in case.get("calls", ()):
        more = "  (optional: it failed)" if call.get("optional") else ""
        output.line(f"  calls    {call['tool']} {output.as_text(call['args'])}{more}")
    for refused in case.get("refused", ()):
        output.line(f"  refused  {refused['tool']}: {refused['reason']}")
    if "answer" in case:
        expected = {key: value for key, value in case["answer"].items() if key != "example"}
        output.line(f"  answer   {output.as_text(expected)}")
        output.line("Check the expected answer: each right answer must match it, and no wrong one.")
    if REDACTED in output.as_text(case):
        output.line("Secrets of the run are masked; where the case holds a mask, no call can match: edit it.")
