"""ToolRegistry: find, describe, validate, execute and discover tools. An instance, never a global."""

import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from utools.calls.shared import SharedCalls
from utools.errors import DefinitionError, ResultError, ToolError, UnknownTool
from utools.host_policy import HostPolicy
from utools.left_out import LeftOut
from utools.schema.config_schema import ConfigSchema, author_keys, visible
from utools.schema.faults import Fault
from utools.schema.json_value import NotJson, as_json
from utools.threads import DaemonThreads
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult, is_async
from utools.words.catalogue import ENGLISH, Words, words_in
from utools.words.text import leaves_of, translate

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "utools.tools"
FAULTS_LISTED = 20
MARKS = ("transient", "permanent", "cut_off")
"""What a failure's metadata may tell the host: another try may help; the call was sent and no answer came back."""

ReadDocument = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Reads a document, {uri} or {name, arguments}; ToolError, or an OSError, when it cannot be read."""


class ToolRegistry:
    """The tools of one host, and what their calls share. Threads and event loops may share the registry: tools are
    added at start, and when a source that was away is back.

    `policy` is the host's last word on each tool, `readers` read the documents of its MCP servers, by name. `origins`
    say where tools come from that are not built in, by code; `left_out` are sources and tools that cannot be used.
    `known_good` says that a test has checked the tools' schemas, as it has the built-in ones'.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        threads: int = 32,
        calls: SharedCalls | None = None,
        policy: HostPolicy | None = None,
        known_good: bool = False,
    ) -> None:
        self.calls = calls or SharedCalls()
        self.policy = policy or HostPolicy()
        self.readers: dict[str, ReadDocument] = {}
        self.origins: dict[str, str] = {}
        self.left_out: list[LeftOut] = []
        self._refused: dict[str, str] = {}
        self._given: list[Tool] = []
        self._derived: list[ToolRegistry] = []
        self._private: frozenset[str] = frozenset()
        self._tools: dict[str, Tool] = {}
        self._schemas: dict[str, ConfigSchema] = {}
        self._outputs: dict[str, ConfigSchema] = {}
        self._threads = DaemonThreads(threads)
        for index, each in enumerate(tools):
            self._check_tool(each, f"tools/{index}")
            self.register(each, known_good=known_good)

    @classmethod
    def of(cls, tools: "ToolRegistry | Iterable[Tool]", *, calls: SharedCalls | None = None) -> "ToolRegistry":
        """The registry itself, or a new one with these tools and calls. DefinitionError for what is neither."""
        if isinstance(tools, ToolRegistry):
            return tools
        if isinstance(tools, Iterable) and not isinstance(tools, str | bytes):
            return cls(tools, calls=calls)
        hint = f": write [{tools.code}]" if isinstance(tools, Tool) else ""
        given = {} if hint else {"value": tools}
        raise DefinitionError(f"must be a ToolRegistry, or a list of tools{hint}", where="registry", **given)

    def stricter(self, policy: HostPolicy) -> "ToolRegistry":
        """The same tools as a stricter policy binds them, also those that are registered later. What their calls share
        is the same."""
        found = ToolRegistry(calls=self.calls, policy=policy)
        found.readers, found.origins, found.left_out = self.readers, self.origins, self.left_out
        found._threads = self._threads
        for tool in self._given:
            found.register(tool)
        self._derived.append(found)
        return found

    def with_private(self, tool: Tool) -> "ToolRegistry":
        """The same tools, also those that are registered later, and one that only its own code finds: no list has it,
        and no glob fits it. It is the host's own, so that no policy binds it."""
        found = copy(self)
        found._given, found._derived = [*self._given], []
        found._schemas, found._outputs = dict(self._schemas), dict(self._outputs)
        found._tools = {**self._tools, tool.code: tool}
        found._schemas[tool.code] = ConfigSchema(tool.config_schema, where=f"tools.{tool.code}", known_good=True)
        found._private = self._private | {tool.code}
        self._derived.append(found)
        return found

    def register(self, tool: Tool, *, known_good: bool = False) -> None:
        """Add a tool as the host's policy binds it, or leave it out where the policy refuses it.

        DefinitionError for a code that is taken, a schema that is not valid and a preset that the tool refuses.
        """
        self._register(tool, known_good=known_good)
        self._given.append(tool)
        for each in self._derived:
            each.register(tool)

    def _register(self, tool: Tool, *, known_good: bool) -> None:
        self._check_tool(tool, "tools")
        where = f"tools.{tool.code}"
        if tool.code in self._tools or tool.code in self._refused:
            raise DefinitionError("another tool already has this code", where=where)
        if refusal := self.policy.refusal(tool):
            self._refused[tool.code] = refusal
            return
        bound = self.policy.bind(tool)
        known_good, tool = known_good and bound is tool, bound
        schema = ConfigSchema(
            tool.config_schema, foreign=tool.foreign, where=f"{where}.config_schema", known_good=known_good
        )
        if tool.output_schema is not None:
            # foreign: an output may have more properties than its schema names
            output = ConfigSchema(
                tool.output_schema, foreign=True, where=f"{where}.output_schema", known_good=known_good
            )
            self._outputs[tool.code] = output
        if tool.examples:
            self._check_examples(tool, schema)
        self._schemas[tool.code] = schema
        self._tools = {**self._tools, tool.code: tool}  # a source that comes back is added while others read

    def _check_examples(self, tool: Tool, schema: ConfigSchema) -> None:
        """DefinitionError for an example that no model could follow: its arguments are refused, or the author's."""
        where = f"tools.{tool.code}.examples"
        hidden = author_keys(schema.schema) | set(self.policy.presets.get(tool.code, ()))
        own = ConfigSchema(visible(schema.schema, hidden), foreign=True, where=where, known_good=True)
        for index, example in enumerate(tool.examples):
            if authored := sorted(hidden & set(example["args"])):
                raise DefinitionError(
                    "is set by the author or the host, and shown to no model; leave it out",
                    where=f"{where}/{index}/args/{authored[0]}",
                )
            for fault in own.faults(example["args"]):
                raise DefinitionError(fault.message, where=f"{where}/{index}/args")

    @staticmethod
    def _check_tool(tool: Any, where: str) -> None:
        """DefinitionError for what is no Tool, with what to write for a function."""
        if inspect.isfunction(tool):
            raise DefinitionError(f"{tool.__name__} is a function: write @tool from utools above it", where=where)
        if not isinstance(tool, Tool):
            raise DefinitionError("must be a Tool", where=where, value=tool)

    def get(self, code: str) -> Tool:
        """The tool of this code; UnknownTool, a KeyError, if there is none."""
        try:
            return self._tools[code]
        except KeyError:
            raise UnknownTool(code, self._tools, self.refusal(code)) from None

    def __contains__(self, code: str) -> bool:
        return code in self._tools

    def refusal(self, code: str) -> str | None:
        """Why this host does not offer a tool: its policy refuses it, or its source, or the tool, is left out.

        For a glob: why nothing fits it.
        """
        if code in self._tools:
            return None
        is_glob = any(char in code for char in "*?[")
        for each in self.left_out if not is_glob or not self.matching([code]) else ():
            if each.covers(code) or (is_glob and fnmatchcase(f"{each.name}.x", code)):
                return f"there is no {code}, since {each.name} cannot be used: {each.why}"
        return self._refused.get(code)

    def is_due_to_left_out(self, message: str) -> bool:
        """Whether a fault is told by `refusal` of a source or tool that is left out: it is not its author's."""
        return any(each.why in message for each in self.left_out)

    def all(self) -> list[Tool]:
        """All tools, by code."""
        return [self._tools[code] for code in sorted(self._tools.keys() - self._private)]

    def schema(self, code: str) -> ConfigSchema:
        """The compiled schema of a tool's arguments."""
        self.get(code)
        return self._schemas[code]

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """The codes that fit one of the globs (`mcp.files.*`), sorted."""
        globs = tuple(patterns)
        known = sorted(self._tools.keys() - self._private)
        return [code for code in known if any(fnmatchcase(code, glob) for glob in globs)]

    def definitions(self, allow: Sequence[str] = ("*",), deny: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Tools in function-calling shape, without what only authors may set; `deny` wins."""
        denied = frozenset(self.matching(deny))
        return [self._definition(code) for code in self.matching(allow) if code not in denied]

    def _definition(self, code: str) -> dict[str, Any]:
        schema = self._schemas[code].schema
        function = {
            "name": code,
            "description": self._tools[code].description,
            "parameters": visible(schema, author_keys(schema)),
        }
        return {"type": "function", "function": function}

    def validate(self, code: str, args: Any, words: Words = ENGLISH) -> list[Fault]:
        """The faults of `args`; empty when they are valid."""
        return self.schema(code).faults(args, words)

    async def execute(
        self, code: str, args: Args, context: ToolContext | None = None, *, validated: bool = False
    ) -> ToolResult:
        """Validate and run. Every error becomes a failed result; only cancellation and Ctrl-C pass through.

        `validated` says that the caller has checked these args against the tool's schema.
        """
        from asyncio import CancelledError

        tool, context = self.get(code), context or ToolContext()
        words = words_in(context.language)
        if not validated and (faults := self.validate(code, args, words)):
            return _failure(words.invalid_arguments.format(faults=_list_faults(faults, words)))
        try:
            value = await self._call(tool, args, context)
        except ResultError as error:
            return _lost_result(tool, args, context, error)
        except ToolError as error:
            return _failure(_for_the_model(error, context), transient=error.transient)
        except DefinitionError as error:  # in what an author set
            return _failure(_for_the_model(error, context))
        except (CancelledError, KeyboardInterrupt):  # the host wants the call to end, the operator the process
            raise
        except BaseException as error:  # the edge to foreign code: no mistake in a tool may end the run
            from utools.error_text import describe, failed_at
            from utools.secrets.scrub import scrub

            errors = list(leaves_of(error))
            if any(isinstance(each, CancelledError | KeyboardInterrupt) for each in errors):
                raise
            transient = all(isinstance(each, TimeoutError | ConnectionError) for each in errors)
            if not transient:
                context.log.warning("the tool %s failed: %s", code, failed_at(error))
            cut_off = any(map(_is_cut_off, errors))
            text = scrub(describe(error, context.language), os.environ)
            return _failure(text, transient=transient, cut_off=cut_off)
        try:
            return self._check_result(tool, value, context)
        except ResultError as error:
            return _lost_result(tool, args, context, error)

    async def _call(self, tool: Tool, args: Args, context: ToolContext) -> Any:
        if is_async(tool.execute):
            return await tool.execute(args, context)
        value = await self._threads.run(_execute_whole, tool.execute, args, context)
        if isinstance(value, AsyncIterator):
            return [each async for each in value]
        return await value if inspect.isawaitable(value) else value

    def _check_result(self, tool: Tool, value: Any, context: ToolContext) -> ToolResult:
        """The result as plain JSON; ResultError for a success that cannot be kept."""
        result, words = value if isinstance(value, ToolResult) else ToolResult(output=value), words_in(context.language)
        error_text = None if result.error is None else _clean(_for_the_model(result.error, context))
        if not result.success and not error_text:
            error_text = words.failed_silently.format(tool=tool.code)
        metadata = _metadata_of(result)
        try:
            output = _to_json(result.output)
        except NotJson as error:
            if not result.success:
                return _failure(str(error_text), **{name: bool(metadata.get(name)) for name in MARKS})
            raise ResultError(words.not_json.format(tool=tool.code, reason=error.explain(words))) from None
        schema = self._outputs.get(tool.code)
        if result.success and schema and (faults := schema.faults(output, words)):
            raise ResultError(words.breaks_schema.format(tool=tool.code, faults=_list_faults(faults, words)))
        return ToolResult(result.success, output, error_text, metadata)

    def discover(self, entry_points: "Iterable[EntryPoint] | None" = None) -> list[str]:
        """Register the built-in tools that are not there yet, below the working directory, and those of installed
        packages (entry points `utools.tools`), or those of the given entries alone; returns the new codes.

        An entry is a Tool, a list of Tools, or a function that returns either. An entry that cannot be loaded or
        registered is a DefinitionError that names its package; if loading fails, nothing is registered.
        """
        from utools.discovery import BUILT_IN, installed_entries, origin_of, tools_of

        entries = [BUILT_IN, *installed_entries(ENTRY_POINTS)] if entry_points is None else entry_points
        known = {*self._tools, *self._refused}
        found = [
            (entry, each)
            for entry in entries
            for each in tools_of(entry)
            if entry is not BUILT_IN or each.code not in known
        ]
        for entry, each in found:
            try:
                self.register(each)
            except DefinitionError as error:
                raise DefinitionError(error.message, where=f"{origin_of(entry)}: {error.where}") from None
            if entry is not BUILT_IN:
                self.origins[each.code] = origin_of(entry)
        return [each.code for _, each in found]


def _is_cut_off(error: BaseException) -> bool:
    """Whether an error says that an answer did not come, so that the call may have been made."""
    is_lost = isinstance(error, TimeoutError | ConnectionError | EOFError)
    return is_lost and not isinstance(error, ConnectionRefusedError)


def _list_faults(faults: list[Fault], words: Words) -> str:
    more = len(faults) - FAULTS_LISTED
    listed = " ".join(each.message for each in faults[:FAULTS_LISTED])
    return words.more_faults.format(faults=listed, count=more) if more > 0 else listed


def _for_the_model(message: str | BaseException, context: ToolContext) -> str:
    """A tool's message about its failure, in the model's language, without paths and environment values of the host."""
    from utools.secrets.scrub import scrub_words

    return scrub_words(translate(message, context.language), os.environ)


def _execute_whole(execute: Execute, args: Args, context: ToolContext) -> Any:
    """What a sync tool gives; of a generator, which does its work when it is read, all items."""
    value = execute(args, context)
    return list(value) if isinstance(value, Iterator) else value


def _to_json(value: Any) -> Any:
    """The value as plain JSON; NotJson if it cannot be converted."""
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
    """A result's metadata as plain JSON; the marks alone where the rest is none: the output is not lost over it."""
    given: Any = result.metadata if isinstance(result.metadata, dict) else {}
    try:
        metadata: dict[str, Any] = _to_json(given)
        return metadata
    except NotJson:
        return {name: True for name in MARKS if given.get(name)}


def _lost_result(tool: Tool, args: Args, context: ToolContext, error: ResultError) -> ToolResult:
    """The result in place of one that cannot be kept.

    For a read, a failure. A write was made: a failure would have a model, or an edge for errors, make it again.
    """
    text = _for_the_model(error, context)
    if tool.effect_of(args) == "read":
        return _failure(text)
    context.log.warning("the tool %s was called, and its result could not be kept; the record says why", tool.code)
    return ToolResult(output=_clean(words_in(context.language).result_lost.format(reason=text)))


def _failure(error: str, **marks: bool) -> ToolResult:
    """A failure with those of the `MARKS` that hold."""
    return ToolResult(success=False, error=_clean(error), metadata={name: True for name in MARKS if marks.get(name)})


def _clean(text: str) -> str:
    return str(text).encode("utf-8", "replace").decode()
