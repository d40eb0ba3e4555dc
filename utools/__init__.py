"""Tools for language models: define, describe, validate and execute them."""

from utools.decorator import tool
from utools.defaults import default_registry
from utools.errors import DefinitionError, ToolError
from utools.registry import ToolRegistry
from utools.schema.faults import Fault
from utools.tool import Tool, ToolContext, ToolResult

__all__ = [
    "DefinitionError",
    "Fault",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolRegistry",
    "ToolResult",
    "default_registry",
    "tool",
]
