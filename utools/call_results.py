"""What a tool gave, as a result that a journal can keep and a model can read."""

import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from time import monotonic
from typing import Any, Final

from utools.errors import ResultError
from utools.schema.config_schema import ConfigSchema
from utools.schema.faults import Fault
from utools.schema.json_value import NotJson, as_json
from utools.threads import Threads
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult
from utools.words.catalogue import Words, words_in
from utools.words.text import translate

FAULTS_LISTED = 20
FINISHED: Final = frozenset({str, int, float, bool, type(None), dict, list, ToolResult})
"""Types of what tools give as a rule, of which nothing is left to be done."""
MOST_YIELDED: Final = 1_000_000
BETWEEN_TURNS: Final = 1000
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
    return _read_items(value, context) if isinstance(value, Iterator) else value


async def finish(value: Any, threads: Threads, context: ToolContext) -> Any:
    """Return what a tool gave when the work is done that it has left: a generator is read, a coroutine awaited."""
    while True:
        if hasattr(value, "__anext__"):
            value = await _read_async_items(value)
        elif hasattr(value, "__next__"):
            value = await threads.run(partial(_read_items, value, context))
        elif hasattr(value, "__await__"):
            value = await value
        else:
            return value


def _read_items(items: Iterator[Any], context: ToolContext) -> list[Any]:
    """Return all items. TimeoutError once the call's time is over: nobody waits for them any more, and they may have no
    end."""
    ends = None if context.deadline_s is None else monotonic() + context.deadline_s
    found: list[Any] = []
    try:
        for each in items:
            found.append(each)
            _check_count(found)
            if ends is not None and monotonic() > ends:
                raise TimeoutError
    finally:
        if close := getattr(items, "close", None):  # a generator ends what it has opened
            close()
    return found


async def _read_async_items(items: AsyncIterator[Any]) -> list[Any]:
    """Return all items; the event loop has its turn meanwhile, however fast they come."""
    from asyncio import sleep

    found: list[Any] = []
    try:
        async for each in items:
            found.append(each)
            _check_count(found)
            if len(found) % BETWEEN_TURNS == 0:
                await sleep(0)
    finally:
        if close := getattr(items, "aclose", None):
            await close()
    return found


def _check_count(found: list[Any]) -> None:
    """ResultError for more items than a result may have: whatever gives them has worked already."""
    if len(found) > MOST_YIELDED:
        raise ResultError("it gives more than {most} items", most=MOST_YIELDED)


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
