"""The command `agent-core`."""

import sys
from collections.abc import Callable, Sequence

import typer

from agent_core.errors import AgentCoreError, DecisionError, DefinitionError
from engine_shim.cli import audit, describe, output, run
from engine_shim.cli.demo import demo
from engine_shim.errors import EngineError
from utools.errors import UnknownTool

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
COMMANDS: tuple[Callable[..., int], ...] = (
    run.run,
    run.resume,
    run.decide,
    demo,
    audit.runs,
    audit.show,
    audit.verify,
    audit.replay,
    describe.tools,
    describe.schema,
    describe.validate,
)
for command in COMMANDS:
    app.command()(command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    words = list(sys.argv[1:] if args is None else args)
    sys.exit(_run(words, as_json="--json" in words))


def _run(words: list[str], *, as_json: bool) -> int:
    try:
        code = app(words, standalone_mode=False)
        return code if isinstance(code, int) else output.OK
    except typer.TyperException as error:
        output.error(error.format_message(), kind="usage", where="", as_json=as_json)
        return output.USAGE
    except DefinitionError as error:
        output.error(str(error), kind="definition", where=error.where, as_json=as_json)
        return output.DEFINITION
    except (DecisionError, UnknownTool) as error:
        output.error(str(error), kind="usage", where="", as_json=as_json)
        return output.USAGE
    except (AgentCoreError, EngineError) as error:
        output.error(str(error), kind=type(error).__name__, where="", as_json=as_json)
        return output.FAILED
    except (typer.Abort, KeyboardInterrupt):
        output.error("interrupted; `agent-core resume RUN` goes on", kind="cancelled", where="", as_json=as_json)
        return output.FAILED
