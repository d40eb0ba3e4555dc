"""The tools and the functions that a configuration names in Python files of the host."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from agent_core.errors import DefinitionError
from utools.annotations import read_signature
from utools.error_text import describe, raised_at
from utools.sources.python_object import load_module, load_object
from utools.tool import Tool


def load_tools(reference: str, base: Path, where: str) -> list[Tool]:
    """Return the tools that `module:name` or `file.py:name` names, or all that stand in `file.py`."""
    if reference.endswith(".py"):
        return _find_tools(load_module(reference, base, where, reference), where, reference)
    found = load_object(reference, base, where)
    if callable(found) and not isinstance(found, Tool):
        if inspect.isfunction(found) and read_signature(found).parameters:
            message = "takes arguments, so that it makes no tools; a function becomes a Tool by @tool"
            raise DefinitionError(message, where=where, value=reference)
        try:
            found = found()
        except DefinitionError:
            raise
        except (Exception, SystemExit) as error:  # the author's own code runs here, and may fail in any way
            message = f"cannot be loaded: {describe(error)}{raised_at(error)}"
            raise DefinitionError(message, where=where, value=reference) from error
    tools: list[Tool] = []
    for tool in found if isinstance(found, list | tuple) else (found,):
        if not isinstance(tool, Tool):
            message = "is not a Tool, a list of Tools, or a function without arguments that returns either"
            raise DefinitionError(f"{message}; a function becomes a Tool by @tool", where=where, value=reference)
        tools.append(tool)
    return tools


def _find_tools(module: ModuleType, where: str, reference: str) -> list[Tool]:
    """Return the tools of a file, in the order in which they stand there; those under a name with _ are its own."""
    found = {id(value): value for name, value in vars(module).items() if isinstance(value, Tool) and name[0] != "_"}
    if not found:
        raise DefinitionError("holds no Tool; a function becomes a Tool by @tool", where=where, value=reference)
    return list(found.values())


def load_functions(reference: str, base: Path, where: str) -> list[Tool]:
    """Return the functions that `module:name`, `file.py:name` or `file.py` names, as tools for nodes alone.

    A plain function reads: it may be called again after a crash. What writes is a function under `@tool`, which says
    so.
    """
    if not reference.endswith(".py"):
        return [_as_node_tool(load_object(reference, base, where), reference.rpartition(":")[2], where)]
    module = load_module(reference, base, where, reference)
    found = {name: value for name, value in vars(module).items() if name[0] != "_" and _is_own(value, module)}
    if not found:
        raise DefinitionError("holds no function of its own", where=where, value=reference)
    return [_as_node_tool(value, name, where) for name, value in found.items()]


def _is_own(value: Any, module: ModuleType) -> bool:
    """Return whether a file defines a function, or makes a Tool of one."""
    return isinstance(value, Tool) or (inspect.isfunction(value) and value.__module__ == module.__name__)


def _as_node_tool(found: Tool | Callable[..., Any], name: str, where: str) -> Tool:
    if isinstance(found, Tool):
        return replace(found, node_only=True)
    if not inspect.isfunction(found):
        raise DefinitionError("is no function", where=where, value=name)
    from utools.function_tool import from_function

    try:
        return from_function(found, effect="read", node_only=True)
    except DefinitionError as error:
        raise DefinitionError(error.message, where=f"{where}: {error.where}") from None
