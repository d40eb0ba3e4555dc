"""What a tool gave, as a result that a journal can keep and a model can read."""

import os
from collections.abc import Iterator
from typing import Any

from utools.errors import ResultError
from utools.schema.config_schema import ConfigSchema
from utools.schema.faults import Fault
from utools.schema.json_value import NotJson, as_json
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult
from utools.words.catalogue import Words, words_in
from utools.words.text import translate

FAULTS_LISTED = 20
MARKS = ("transient", "permanent", "cut_off")
"""What a failure's metadata may tell the host: another try may help; the call was sent and no answer came back."""


def check_result(tool: Tool, value: Any, context: ToolContext, schema: ConfigSchema | None) -> ToolResult:
    """Return the result as plain JSON; ResultError for a success that cannot be kept, or breaks the schema of its
    outputs."""
    result, words = value if isinstance(value, ToolResult) else ToolResult(output=value), words_in(context.language)
    error_text = None if result.error is None else _clean(for_the_model(result.error, context))
    if not result.success and not error_text:
        error_text = words.failed_silently.format(tool=tool.code)
    metadata = _metadata_of(result)
    try:
        output = _to_json(result.output)
    except NotJson as error:
        if not result.success:
            return failure(str(error_text), **{name: bool(metadata.get(name)) for name in MARKS})
        raise ResultError(words.not_json.format(tool=tool.code, reason=error.explain(words))) from None
    if result.success and schema and (faults := schema.faults(output, words)):
        raise ResultError(words.breaks_schema.format(tool=tool.code, faults=list_faults(faults, words)))
    return ToolResult(result.success, output, error_text, metadata)


def is_cut_off(error: BaseException) -> bool:
    """Return whether an error says that an answer did not come, so that the call may have been made."""
    is_lost = isinstance(error, TimeoutError | ConnectionError | EOFError)
    return is_lost and not isinstance(error, ConnectionRefusedError)


def list_faults(faults: list[Fault], words: Words) -> str:
    more = len(faults) - FAULTS_LISTED
    listed = " ".join(each.message for each in faults[:FAULTS_LISTED])
    return words.more_faults.format(faults=listed, count=more) if more > 0 else listed


def for_the_model(message: str | BaseException, context: ToolContext) -> str:
    """Return a tool's message about its failure, in the model's language, without paths and environment values of the
    host."""
    from utools.secrets.scrub import scrub_words

    return scrub_words(translate(message, context.language), os.environ)


def execute_whole(execute: Execute, args: Args, context: ToolContext) -> Any:
    """Return what a sync tool gives; of a generator, which does its work when it is read, all items."""
    value = execute(args, context)
    return list(value) if isinstance(value, Iterator) else value


def _to_json(value: Any) -> Any:
    """Return the value as plain JSON; NotJson if it cannot be converted."""
    try:
        try:
            return as_json(value)
        except NotJson:
            from utools.schema.conversion import convert  # imports pydantic

            return as_json(value, convert=convert)
    except NotJson:
        raise
    except (Exception, SystemExit) as error:  # the author's own code runs here, and may fail in any way
        raise NotJson("reading", type=type(value).__name__, error=type(error).__name__) from None


def _metadata_of(result: ToolResult) -> dict[str, Any]:
    """Return a result's metadata as plain JSON; the marks alone where the rest is none: the output is not lost over
    it."""
    given: Any = result.metadata if isinstance(result.metadata, dict) else {}
    try:
        metadata: dict[str, Any] = _to_json(given)
        return metadata
    except NotJson:
        return {name: True for name in MARKS if given.get(name)}


def lost_result(tool: Tool, args: Args, context: ToolContext, error: ResultError) -> ToolResult:
    """Return the result in place of one that cannot be kept.

    For a read, a failure. A write was made: a failure would have a model, or an edge for errors, make it again.
    """
    text = for_the_model(error, context)
    if tool.effect_of(args) == "read":
        return failure(text)
    context.log.warning("the tool %s was called, and its result could not be kept; the record says why", tool.code)
    return ToolResult(output=_clean(words_in(context.language).result_lost.format(reason=text)))


def failure(error: str, **marks: bool) -> ToolResult:
    """Return a failure with those of the `MARKS` that hold."""
    return ToolResult(success=False, error=_clean(error), metadata={name: True for name in MARKS if marks.get(name)})


def _clean(text: str) -> str:
    return str(text).encode("utf-8", "replace").decode()
