"""from_langchain(): a tool of LangChain as a Tool (package langchain-core)."""

from typing import Any, Unpack

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import Tool as SimpleTool
from langchain_core.utils.function_calling import convert_to_openai_function
from pydantic import ValidationError

from utools.adapters.foreign import ForeignOptions, make_foreign
from utools.errors import ToolError
from utools.function_tool import list_model_faults
from utools.tool import Args, Tool, ToolContext, ToolResult
from utools.words.catalogue import words_in


def from_langchain(tool: BaseTool, **options: Unpack[ForeignOptions]) -> Tool:
    """Return the Tool that calls a tool of LangChain, in its own coroutine where it has one.

    Its schema is the one that LangChain shows a model, without injected arguments. A `ToolException`, or an error that
    the tool handles itself, fails the call with its text. The content of a result is the output; an artifact goes to
    the host, as `artifact` of the result's metadata. A tool whose state or store LangGraph injects cannot be called.
    """
    is_message = _needs_message(tool)

    def explain(error: Exception, context: ToolContext) -> ToolError:
        if isinstance(error, ValidationError):
            words = words_in(context.language)
            return ToolError(words.invalid_arguments.format(faults=list_model_faults(error, words)))
        return ToolError(str(error))

    async def execute(args: Args, context: ToolContext) -> Any:
        try:
            return _read(await tool.arun(dict(args), tool_call_id=_call_id(context, is_message)))
        except (ToolException, ValidationError) as error:
            raise explain(error, context) from error

    def execute_sync(args: Args, context: ToolContext) -> Any:
        try:
            return _read(tool.run(dict(args), tool_call_id=_call_id(context, is_message)))
        except (ToolException, ValidationError) as error:
            raise explain(error, context) from error

    described = convert_to_openai_function(tool)
    chosen = execute if _has_coroutine(tool) else execute_sync
    return make_foreign(tool.name, described.get("description"), described.get("parameters"), chosen, **options)


def _needs_message(tool: BaseTool) -> bool:
    """Return whether a tool has to be called as by a message: only then it gives artifacts, says that it has handled an
    error, and gets the id of its call. Else its result comes as it is, rather than as a text."""
    handles = tool.handle_tool_error or tool.handle_validation_error
    fields = getattr(tool.args_schema, "model_fields", {}).values()
    injected = any(_is_call_id(each) for field in fields for each in field.metadata)
    return bool(handles) or injected or tool.response_format == "content_and_artifact"


def _is_call_id(mark: Any) -> bool:
    return isinstance(mark, InjectedToolCallId) or (isinstance(mark, type) and issubclass(mark, InjectedToolCallId))


def _has_coroutine(tool: BaseTool) -> bool:
    """Return whether a tool is async by itself; LangChain would call any other one in a thread of its own."""
    if isinstance(tool, StructuredTool | SimpleTool):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _call_id(context: ToolContext, is_message: bool) -> str | None:
    return (context.idempotency_key or "call") if is_message else None


def _read(answer: Any) -> Any:
    if not isinstance(answer, ToolMessage):
        return answer
    content = _join_texts(answer.content)
    if answer.status == "error":
        return ToolResult(False, error=str(content))
    return ToolResult(output=content, metadata={} if answer.artifact is None else {"artifact": answer.artifact})


def _join_texts(content: Any) -> Any:
    """Return blocks of text as one text; other content as it is."""
    if not isinstance(content, list):
        return content
    texts = [each if isinstance(each, str) else each.get("text") for each in content if _is_text(each)]
    return "\n".join(texts) if len(texts) == len(content) else content


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")
