"""from_toolset(): the tools of a toolset of pydantic-ai as Tools (package pydantic-ai-slim)."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_ai.usage import RunUsage

from utools.adapters.foreign import make_foreign
from utools.errors import DefinitionError, ToolError
from utools.function_tool import list_model_faults
from utools.tool import Args, Effect, Tool, ToolContext, ToolResult
from utools.words.catalogue import words_in


async def from_toolset(
    toolset: AbstractToolset[Any], *, deps: Any = None, effect: Effect | Mapping[str, Effect] = "write"
) -> list[Tool]:
    """Return the tools that a toolset offers now, such as `FunctionToolset([…])` or one of an MCP server.

    Each call gets a `RunContext` with `deps`, and no messages. `effect` is that of all tools, or of some by name; the
    others write. `ModelRetry` and `ToolFailed` fail a call with their text. The returned value of a `ToolReturn` is the
    output, with `content` beside it where that is a text; its metadata go to the host. DefinitionError for a tool that
    pydantic-ai itself does not execute, or asks a person about: `approval` of the node's config asks.
    """
    context = RunContext(deps=deps, model=TestModel(), usage=RunUsage())
    made: list[Tool] = []
    async with toolset:
        for name, tool in (await toolset.get_tools(context)).items():
            if tool.tool_def.kind != "function":
                message = f"pydantic-ai does not execute it at once, its kind is {tool.tool_def.kind}; filter it out"
                raise DefinitionError(message, where=f"tools.{name}")
            made.append(_make_tool(toolset, name, tool, context, effect))
    return made


def _make_tool(
    toolset: AbstractToolset[Any],
    name: str,
    tool: ToolsetTool[Any],
    context: RunContext[Any],
    effect: Effect | Mapping[str, Effect],
) -> Tool:
    async def execute(args: Args, call: ToolContext) -> Any:
        run = replace(context, tool_name=name, tool_call_id=call.idempotency_key or "call")
        try:
            async with toolset:
                given = await _validate(tool, args, run)
                return _read(await toolset.call_tool(name, given, run, tool))
        except ValidationError as error:
            words = words_in(call.language)
            text = words.invalid_arguments.format(faults=list_model_faults(error, words))
            raise ToolError(text) from error
        except (ModelRetry, ToolFailed) as error:
            raise ToolError(error.message) from error
        except (ApprovalRequired, CallDeferred) as error:
            message = "pydantic-ai defers this call, and nothing here continues it; ask a person by `approval` instead"
            raise DefinitionError(message, where=f"tools.{name}") from error

    chosen: Effect = effect if isinstance(effect, str) else effect.get(name, "write")
    about = tool.tool_def
    return make_foreign(name, about.description, about.parameters_json_schema, execute, effect=chosen)


async def _validate(tool: ToolsetTool[Any], args: Args, run: RunContext[Any]) -> dict[str, Any]:
    """Return the arguments as the tool's function takes them: models, dates and the like."""
    given: dict[str, Any] = tool.args_validator.validate_python(dict(args))
    if tool.args_validator_func is not None:
        checked = tool.args_validator_func(run, **given)
        if inspect.isawaitable(checked):
            await checked
    return given


def _read(answer: Any) -> Any:
    if not isinstance(answer, ToolReturn):
        return answer
    output, content = answer.return_value, _read_content(answer.content)
    if content:
        output = {"result": output, "content": content}
    return ToolResult(output=output, metadata=answer.metadata if isinstance(answer.metadata, dict) else {})


def _read_content(content: str | Sequence[Any] | None) -> str:
    parts = [content] if isinstance(content, str) else content or ()
    return "\n".join(each for each in parts if isinstance(each, str))
