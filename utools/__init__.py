"""Tools for language models: define, describe, validate and execute them."""

import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":
    raise ImportError("agent_core locks its files as POSIX systems do: on Windows run it in WSL")

from utools.decorator import tool as tool  # at once: the module utools.tool would take its name
from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from utools.callable_tool import FunctionTool as FunctionTool
    from utools.calls.shared import SharedCalls as SharedCalls
    from utools.calls.store import CallStore as CallStore
    from utools.calls.store import Reservation as Reservation
    from utools.context.store import ContextStore as ContextStore
    from utools.context.store import Summary as Summary
    from utools.context.store_memory import MemoryContextStore as MemoryContextStore
    from utools.context.store_sqlite import SqliteContextStore as SqliteContextStore
    from utools.context.summary import Summarised as Summarised
    from utools.defaults import default_registry as default_registry
    from utools.document import Document as Document
    from utools.errors import DatabaseAway as DatabaseAway
    from utools.errors import DatabaseError as DatabaseError
    from utools.errors import DefinitionError as DefinitionError
    from utools.errors import NetworkError as NetworkError
    from utools.errors import ResultError as ResultError
    from utools.errors import SandboxError as SandboxError
    from utools.errors import ToolError as ToolError
    from utools.errors import UnknownTool as UnknownTool
    from utools.errors import UtoolsError as UtoolsError
    from utools.host_policy import HostPolicy as HostPolicy
    from utools.problems import DefinitionErrors as DefinitionErrors
    from utools.problems import Problem as Problem
    from utools.registry import ToolRegistry as ToolRegistry
    from utools.schema.faults import Fault as Fault
    from utools.secrets.redaction import Redactor as Redactor
    from utools.threads import Threads as Threads
    from utools.tool import Progress as Progress
    from utools.tool import Tool as Tool
    from utools.tool import ToolContext as ToolContext
    from utools.tool import ToolResult as ToolResult

HOMES = {
    "utools.callable_tool": "FunctionTool",
    "utools.calls.shared": "SharedCalls",
    "utools.calls.store": "CallStore Reservation",
    "utools.context.store": "ContextStore Summary",
    "utools.context.store_memory": "MemoryContextStore",
    "utools.context.store_sqlite": "SqliteContextStore",
    "utools.context.summary": "Summarised",
    "utools.defaults": "default_registry",
    "utools.document": "Document",
    "utools.errors": (
        "DatabaseAway DatabaseError DefinitionError NetworkError ResultError SandboxError ToolError UnknownTool "
        "UtoolsError"
    ),
    "utools.host_policy": "HostPolicy",
    "utools.problems": "DefinitionErrors Problem",
    "utools.registry": "ToolRegistry",
    "utools.schema.faults": "Fault",
    "utools.secrets.redaction": "Redactor",
    "utools.threads": "Threads",
    "utools.tool": "Progress Tool ToolContext ToolResult",
}
"""The public names by their modules; each is imported when it is first used."""
__all__ = sorted(["tool", *" ".join(HOMES.values()).split()])
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
