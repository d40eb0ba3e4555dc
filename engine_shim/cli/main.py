"""The command `agent-core`."""

import sys
import traceback
from collections.abc import Callable, Sequence

import typer

from agent_core.errors import AgentCoreError, Damaged, DecisionError, DefinitionError, Divergence, JournalError
from engine_shim.cli import audit, control, describe, output, run
from engine_shim.cli.demo import demo
from engine_shim.cli.diff import diff
from engine_shim.cli.eval import evaluate
from engine_shim.cli.retention import retention
from engine_shim.definition.errors import message_of
from engine_shim.errors import EngineError, RunBusy, RunNotFound
from utools.errors import UnknownTool

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
COMMANDS: tuple[Callable[..., int], ...] = (
    run.run,
    run.resume,
    run.decide,
    control.pause,
    control.cancel,
    control.fork,
    demo,
    audit.runs,
    audit.show,
    audit.verify,
    audit.replay,
    diff,
    evaluate,
    retention,
    describe.tools,
    describe.schema,
    describe.validate,
)
NAMES = {evaluate: "eval"}
"""Commands whose name is one of Python's own."""
for command in COMMANDS:
    app.command(NAMES.get(command))(command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    words = list(sys.argv[1:] if args is None else args)
    sys.exit(_run(words, as_json="--json" in words))


def _run(words: list[str], *, as_json: bool) -> int:
    try:
        code = app(words, standalone_mode=False)
        return code if isinstance(code, int) else output.OK
    except Exception as error:  # the outermost edge: whatever happens is told, and with --json as one document
        code, kind, where, message = _told(error)
        if kind == "internal":
            traceback.print_exception(error)
        if message:
            output.error(message, kind=kind, where=where, as_json=as_json)
        return code


def _told(error: Exception) -> tuple[int, str, str, str]:
    """The exit code, the kind, the place and the sentence of an error."""
    match error:
        case typer.TyperException():
            return output.USAGE, "usage", "", error.format_message()
        case DefinitionError():
            return output.DEFINITION, "definition", error.where, message_of(error)
        case DecisionError() | UnknownTool():
            return output.USAGE, "usage", "", str(error)
        case RunNotFound():
            return output.USAGE, "run_not_found", "", f"{error}; `agent-core runs` lists what it holds"
        case RunBusy():
            return output.FAILED, "busy", "", str(error)
        case Damaged():
            return output.AUDIT, "damaged", f"{error.path}:{error.n}", str(error)
        case Divergence():
            return output.AUDIT, "diverged", f"{error.strand}:{error.n}", str(error)
        case AgentCoreError() | EngineError():
            return output.FAILED, "journal" if isinstance(error, JournalError) else "failed", "", str(error)
        case typer.Abort():
            return output.FAILED, "aborted", "", "aborted"
        case _:
            return output.FAILED, "internal", "", f"a mistake in agent-core itself: {type(error).__name__}: {error}"
