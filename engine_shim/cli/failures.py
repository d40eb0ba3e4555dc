"""Failures of a command: the exit code, the kind, the place and the message of each error."""

import errno
import re
import sys
import traceback
from typing import Any

import typer
from pydantic import ValidationError

from agent_core.agents.errors import AgentNotFound
from agent_core.errors import AgentCoreError, Damaged, DecisionError, DefinitionError, Divergence, JournalError
from engine_shim.cli import output, terminal
from engine_shim.definition.errors import DefinitionErrors, message_of
from engine_shim.errors import EngineError, PageDamaged, RunBusy, RunNotFound, WritesRepeated
from utools.error_text import describe
from utools.errors import ToolError, UnknownTool
from utools.schema.model_faults import word_fault

OF_THE_MACHINE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP)
"""Why a file cannot be reached that nobody but its operator can mend."""
OFFERED = 5
"""So many of what may be given are named."""


def report(error: Exception, *, as_json: bool) -> int:
    """Write what went wrong; returns the exit code."""
    code, kind, where, message = _describe(error)
    where, message = output.mask(where), output.mask(message)
    if kind == "internal":
        sys.stderr.write(terminal.visible("".join(traceback.format_exception(error))))
    if message and as_json and isinstance(error, DefinitionErrors):
        place = {
            key: output.mask(value) if isinstance(value, str) else value
            for key, value in error.problems[0].as_json().items()
        }
        output.error_document({"kind": kind, **place, "message": message})
    elif message:
        output.error(message, kind=kind, where=where, as_json=as_json)
    return code


def _describe(error: Exception) -> tuple[int, str, str, str]:
    match error:
        case typer.TyperException():
            return output.USAGE, "usage", "", _describe_usage(error)
        case DefinitionError():
            return output.DEFINITION, "definition", error.where, message_of(error)
        case DecisionError() | UnknownTool() | AgentNotFound():
            return output.USAGE, "usage", "", str(error)
        case RunNotFound():
            told = "verify --all` checks the store" if error.gone else "runs` lists what it holds"
            return output.USAGE, "run_not_found", "", f"{error}; `agent-core {told}"
        case WritesRepeated():
            return output.USAGE, "writes_repeated", "", f"{error}; --repeat-writes allows it"
        case RunBusy():
            return output.FAILED, "busy", "", str(error)
        case Damaged():
            return output.AUDIT, "damaged", f"{error.path}:{error.n}", str(error)
        case PageDamaged():
            return output.AUDIT, "damaged", "", str(error)
        case Divergence():
            return output.AUDIT, "diverged", f"{error.strand}:{error.n}", str(error)
        case AgentCoreError() | EngineError() | ToolError():  # that of a store of conversations which is away
            return output.FAILED, "journal" if isinstance(error, JournalError) else "failed", "", str(error)
        case OSError(filename=str(path), errno=int(number)) if number in OF_THE_MACHINE:
            return output.FAILED, "failed", "", f"{path}: {error.strerror}"
        case typer.Abort():
            return output.FAILED, "aborted", "", "aborted"
        case _:
            return output.FAILED, "internal", "", f"a mistake in agent-core itself: {describe(error)}"


def _describe_usage(error: typer.TyperException) -> str:
    """Return what is wrong with a command line: the name of an argument or option first, and pydantic's fault in our
    words."""
    if not isinstance(error, typer.BadParameter):
        return error.format_message()
    if not error.message:
        return _describe_missing(error)
    message, found = error.message, error.__cause__
    if isinstance(found, ValidationError):
        message = "; ".join(_describe_value(each) for each in found.errors(include_url=False))
    name = error.param.get_error_hint().replace("'", "") if error.param is not None else ""
    return f"{name}: {message}" if name else message


def _describe_missing(error: typer.BadParameter) -> str:
    """Return what is missing, how the command is used, and what may be given: what the shell would offer."""
    said, context = " ".join(error.format_message().removesuffix(".").split()), error.ctx
    if context is None or error.param is None:
        return said
    offered = [each.value for each in error.param.shell_complete(context, "") if each.value not in said]
    more = ", …" if len(offered) > OFFERED else ""
    here = f"; there {'is' if len(offered) == 1 else 'are'} {', '.join(offered[:OFFERED])}{more}" if offered else ""
    usage = re.sub(r"\{([^}]*)\}", r"\1", " ".join(context.get_usage().split()))
    return f"{said}{here}. {usage}"


def _describe_value(fault: Any) -> str:
    text, value = word_fault(fault).removesuffix("."), repr(fault["input"])
    return text if value in text else f"{text} (got {value})"
