"""The commands run, resume and decide: runs that are driven from here to their end."""

import errno
import logging
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any

import typer

from agent_core.decisions import DECISIONS, Approve, Decision, Deny, Done, Edit, decode_decision
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.control import Decisions, calls_for_person, waiting_calls
from agent_core.journal.path import read_place
from agent_core.outputs import WaitingCall
from agent_core.run.run_id import new_run_id
from agent_core.statuses import ENDED
from engine_shim.cli import output
from engine_shim.cli.engine import open_engine
from engine_shim.cli.output import Options
from engine_shim.cli.runs.ask import ask_arguments
from engine_shim.cli.runs.live import drive_run
from engine_shim.cli.runs.other_model import with_model
from engine_shim.cli.runs.summary import report
from engine_shim.definition.inputs import explain_unread, lists_inputs, unread_inputs
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import Definition
from engine_shim.definition.outputs import inputs_shape
from engine_shim.runs.controls import record_decisions
from utools.json_text import parse_json
from utools.schema.value_shape import type_of

log = logging.getLogger("engine_shim")
MakeDecisions = Callable[[list[WaitingCall]], Decisions]


def run_workflow(file: Path, pairs: list[str], inputs: str | None, model: str | None, options: Options) -> int:
    """Run a workflow from its file."""
    workflow = load_workflow(file)
    external = read_inputs(workflow, pairs, inputs)
    if model is not None:
        workflow = with_model(workflow, model)
    engine, run_id = open_engine(options, definition=file), new_run_id()
    result = drive_run(
        engine,
        workflow,
        run_id,
        lambda tell: engine.run(workflow, external=external, run_id=run_id, on_event=tell),
        options,
    )
    return report(result, workflow, options)


def resume_run(run_id: str, options: Options) -> int:
    """Resume a run."""
    return _resume(run_id, None, options)


def signal_run(run_id: str, name: str, data: str | None, options: Options) -> int:
    """Send a signal to a run, and resume the run if it waits for that."""
    value = None if data is None else _read_value("--data", data)
    engine = open_engine(options, run=run_id)
    if engine.send_signal(run_id, name, value, by=output.user()):
        return _resume(run_id, None, options)
    status = engine.status(run_id)
    engine.store.close()
    told = f"{run_id}  {status}; the first node that waits for {name} takes the signal"
    return output.answer({"run_id": run_id, "status": status}, told, as_json=options.as_json)


def _read_value(option: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is not JSON: {error}") from None


def decide_call(run_id: str, decision: Decision | None, at: str | None, options: Options) -> int:
    """Decide on a call that waits, and resume its run; without a decision the person edits the arguments."""

    return _resume(run_id, partial(_make_decisions, at, decision), options)


def record_decision(run_id: str, decision: Decision | None, at: str | None, options: Options) -> int:
    """Decide on a call that waits in an agent's run that another program drives, which goes on with it there."""
    engine = open_engine(options)
    calls = calls_for_person(waiting_calls(engine.store.journal.load(run_id)))
    store, secrets = engine.store, engine._grants.own.secrets
    record_decisions(store, secrets, run_id, _make_decisions(at, decision, calls), by=output.user())
    store.close()
    told = f"{run_id}  decided; the program that began it goes on with it"
    return output.answer({"run_id": run_id, "decided": True}, told, as_json=options.as_json)


def _make_decisions(at: str | None, decision: Decision | None, calls: list[WaitingCall]) -> Decisions:
    strand, n = _find_call(at, calls)
    return {(strand, n): decision or _ask_edit(next(filter(_is_at(strand, n), calls), None))}


def _is_at(strand: str, n: int) -> Callable[[WaitingCall], bool]:
    return lambda call: (call["strand"], call["n"]) == (strand, n)


def _ask_edit(call: WaitingCall | None) -> Decision:
    edited = ask_arguments(call) if call is not None else {}
    if edited is None:
        raise typer.Abort
    return Edit(edited)


def _resume(run_id: str, make_decisions: MakeDecisions | None, options: Options) -> int:
    engine = open_engine(options, run=run_id)
    workflow = engine.workflow(run_id)
    calls = calls_for_person(waiting_calls(engine.store.journal.load(run_id))) if make_decisions else []
    if make_decisions and not calls and (status := engine.status(run_id)) in ENDED:
        raise DecisionError(
            f"run {run_id} is {status}: nothing waits in it any more; `agent-core show` says who decided"
        )
    decisions = make_decisions(calls) if make_decisions else None
    waiting = {(call["strand"], call["n"]): call for call in calls}
    decided = [(waiting[slot], each) for slot, each in (decisions or {}).items() if slot in waiting]
    result = drive_run(
        engine,
        workflow,
        run_id,
        lambda tell: engine.resume(run_id, decisions=decisions, by=output.user(), on_event=tell),
        options,
        decided,
    )
    return report(result, workflow, options)


def read_inputs(workflow: Workflow, pairs: list[str], source: str | None) -> dict[str, Any]:
    """Return the run's inputs: those of the file, and the pairs name=value, which win."""
    external: dict[str, Any] = _read_json(source) if source else {}
    shape = inputs_shape(workflow.definition)
    given: set[str] = set()
    for entry in pairs:
        name, equals, value = entry.partition("=")
        if not equals:
            raise typer.BadParameter(f"--input {entry!r}: write name=value")
        if name in given:
            raise typer.BadParameter(f"--input {name} is given twice")
        given.add(name)
        external[name] = _read_input(name, value, shape.at(name).kinds())
    _check_read(workflow.definition, external, given)
    return external


def _check_read(definition: Definition, external: Mapping[str, Any], given: Set[str]) -> None:
    """BadParameter for a name=value that the inputs do not declare; a warning for one that nothing reads."""
    for name in unread_inputs(definition, external):
        what = f"--input {name}" if name in given else f"the input {name}"
        message = f"{what}: {explain_unread(definition, name)}"
        if name in given and lists_inputs(definition):
            raise typer.BadParameter(message)
        log.warning("%s", message)


def _read_input(name: str, text: str, kinds: Sequence[str]) -> Any:
    """Return an input from the command line: a text unless the definition allows something else, then JSON of that."""
    if not kinds or kinds == ["string"]:
        return text
    try:
        value = parse_json(text)
    except ValueError:
        if "string" in kinds:
            return text
        raise typer.BadParameter(f"--input {name}: {text!r} is not JSON of type {' or '.join(kinds)}") from None
    is_allowed = type_of(value) in (kinds if "integer" not in kinds else [*kinds, "number"])
    return value if is_allowed or "string" not in kinds else text


def read_decision(
    word: str, message: str, args: str | None, result: str | None, *, attended: bool = False
) -> Decision | None:
    """Return the decision of a command line. BadParameter for an unknown word; None for an edit that a person still
    writes."""
    kind = DECISIONS.get(word)
    if kind is None:
        raise typer.BadParameter(f"{word!r} is not a decision; there are {', '.join(DECISIONS)}")
    if message and kind is not Deny:
        told = "; the journal keeps who approved, not why" if kind is Approve else ""
        raise typer.BadParameter(f"--message goes with deny, and with no other decision{told}")
    edited = None if args is None else _read_edit(args)
    if kind is Edit and edited is None and attended:
        return None
    if (kind is Edit) != (edited is not None):
        raise typer.BadParameter("edit needs --args with a JSON object, and no other decision takes them")
    if (kind is Done) != (result is not None):
        raise typer.BadParameter("done needs --output with what the write gave, as JSON; no other decision takes it")
    output = None if result is None else _read_value("--output", result)
    return decode_decision({"decision": word, "message": message, "args": edited, "output": output})


def _find_call(at: str | None, calls: list[WaitingCall]) -> tuple[str, int]:
    """Return the strand and record of the call that `at` names, or of the only one that waits."""
    if at is None:
        if len(calls) == 1:
            return calls[0]["strand"], calls[0]["n"]
        if not calls:
            raise DecisionError(
                "no call waits for a decision; if the run stopped in the middle, `agent-core resume` continues it"
            )
        locations = ", ".join(f"{entry['strand']}:{entry['n']}" for entry in calls)
        raise DecisionError(f"several calls wait, choose one by --at: {locations}")
    return read_at(at)


def read_at(at: str) -> tuple[str, int]:
    """Return the strand and record that --at names. BadParameter for what is no place."""
    if (place := read_place(at)) is None:
        raise typer.BadParameter(f"--at {at!r}: write STRAND:N, as in flow/agent_core.1:4")
    return place


def _read_json(source: str) -> dict[str, Any]:
    try:
        value = parse_json(_read_stdin() if source == "-" else Path(source).read_text("utf-8-sig"))
    except OSError as error:
        raise DefinitionError(f"the inputs cannot be read: {error.strerror}", where=source) from None
    except ValueError as error:
        raise DefinitionError(f"the inputs are not JSON: {error}", where=source) from None
    if not isinstance(value, dict):
        raise DefinitionError("the inputs must be a JSON object", where=source)
    return value


def _read_stdin() -> str:
    """Return what comes on stdin, which is UTF-8 as all JSON is, whatever the locale. OSError where it is closed."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "stdin is closed")
    with_bytes = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if with_bytes is None else str(with_bytes.read(), "utf-8-sig")


def _read_edit(text: str) -> dict[str, Any]:
    """Return the arguments of --args; BadParameter for what is no JSON object."""
    try:
        value = parse_json(text)
    except ValueError as error:
        raise typer.BadParameter(f"--args: {text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"--args: {text!r} is not a JSON object")
    return value
