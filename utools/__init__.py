"""Tools for language models: define, describe, validate and execute them."""

from typing import TYPE_CHECKING

from utools.decorator import tool as tool  # at once: the module utools.tool would take its name
from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from utools.defaults import default_registry as default_registry
    from utools.errors import DefinitionError as DefinitionError
    from utools.errors import ToolError as ToolError
    from utools.registry import ToolRegistry as ToolRegistry
    from utools.schema.faults import Fault as Fault
    from utools.tool import Tool as Tool
    from utools.tool import ToolContext as ToolContext
    from utools.tool import ToolResult as ToolResult

HOMES = {
    "DefinitionError": "utools.errors",
    "Fault": "utools.schema.faults",
    "Tool": "utools.tool",
    "ToolContext": "utools.tool",
    "ToolError": "utools.errors",
    "ToolRegistry": "utools.registry",
    "ToolResult": "utools.tool",
    "default_registry": "utools.defaults",
}
"""The public names, each imported from its module when it is first used."""
__all__ = sorted([*HOMES, "tool"])
__getattr__, __dir__ = lazy_menu(__name__, HOMES)
