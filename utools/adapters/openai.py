"""from_openai(): a function that is described as OpenAI's API has it, and a callable, as a Tool."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from utools.adapters.foreign import ForeignOptions, make_foreign
from utools.errors import DefinitionError
from utools.tool import Args, Tool, ToolContext


def from_openai(
    description: Mapping[str, Any], function: Callable[..., Any], **options: Unpack[ForeignOptions]
) -> Tool:
    """Return the Tool that calls `function(**arguments)`, sync or async.

    `description` is as chat completions have it ({"type": "function", "function": {name, description, parameters}}), as
    the Responses API has it, or the inner object alone. A function that fails raises; see `utools.ToolError`.
    DefinitionError for what is none of these.
    """
    given = description.get("function", description)
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        form = 'must be {"type": "function", "function": {"name": …, "parameters": …}}, or the inner object'
        raise DefinitionError(form, where="tools", value=description)
    if not callable(function):
        raise DefinitionError("must be a function", where=f"tools.{given['name']}", value=function)

    async def execute(args: Args, context: ToolContext) -> Any:
        return await function(**args)

    def execute_sync(args: Args, context: ToolContext) -> Any:
        return function(**args)

    chosen = execute if inspect.iscoroutinefunction(function) else execute_sync
    return make_foreign(given["name"], given.get("description"), given.get("parameters"), chosen, **options)
