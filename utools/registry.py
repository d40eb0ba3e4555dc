"""ToolRegistry: find, describe, validate, execute and discover tools. An instance, never a global."""

import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from utools.call_results import (
    check_result,
    execute_whole,
    failure,
    for_the_model,
    is_cut_off,
    list_faults,
    lost_result,
)
from utools.callable_tool import MethodTool, bound_tool
from utools.calls.shared import SharedCalls
from utools.errors import DefinitionError, ResultError, ToolError, UnknownTool
from utools.host_policy import HostPolicy
from utools.left_out import LeftOut
from utools.schema.config_schema import ConfigSchema, author_keys, visible
from utools.schema.faults import Fault
from utools.threads import DaemonThreads
from utools.tool import Args, Tool, ToolContext, ToolResult, is_async
from utools.words.catalogue import ENGLISH, Words, words_in
from utools.words.text import leaves_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "utools.tools"
ReadDocument = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Reads a document, {uri} or {name, arguments}; ToolError, or an OSError, when it cannot be read."""


class ToolRegistry:
    """The tools of one host, and what their calls share. Threads and event loops may share the registry: tools are
    added at start, and when a source that was away is back.

    `policy` is the host's last word on each tool, `readers` read the documents of its MCP servers, by name. `origins`
    say where tools come from that are not built in, by code; `left_out` are sources and tools that cannot be used.
    Up to `threads` sync tools run at a time, among the 256 that a process runs.
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
        self._threads = DaemonThreads(threads, of_tools=True)
        for index, each in enumerate(map(bound_tool, tools)):
            _check_tool(each, f"tools/{index}")
            self.register(each, known_good=known_good)

    @classmethod
    def from_tools(cls, tools: "ToolRegistry | Iterable[Tool]", *, calls: SharedCalls | None = None) -> "ToolRegistry":
        """Return the registry itself, or a new one with these tools and calls. DefinitionError for what is neither."""
        if isinstance(tools, ToolRegistry):
            return tools
        if isinstance(tools, Iterable) and not isinstance(tools, str | bytes):
            return cls(tools, calls=calls)
        hint = f": write [{tools.code}]" if isinstance(tools, Tool) else ""
        given = {} if hint else {"value": tools}
        raise DefinitionError(f"must be a ToolRegistry, or a list of tools{hint}", where="registry", **given)

    def stricter(self, policy: HostPolicy) -> "ToolRegistry":
        """Return the same tools as a stricter policy binds them, also those that are registered later. What their calls
        share is the same."""
        found = ToolRegistry(calls=self.calls, policy=policy)
        found.readers, found.origins, found.left_out = self.readers, self.origins, self.left_out
        found._threads = self._threads
        for tool in self._given:
            found.register(tool)
        self._derived.append(found)
        return found

    def with_private(self, tool: Tool) -> "ToolRegistry":
        """Return the same tools, also those that are registered later, and one that only its own code finds: no list
        has it, and no glob fits it. It is the host's own, so that no policy binds it."""
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
        tool = bound_tool(tool)
        self._register(tool, known_good=known_good)
        self._given.append(tool)
        for each in self._derived:
            each.register(tool)

    def _register(self, tool: Tool, *, known_good: bool) -> None:
        _check_tool(tool, "tools")
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
            _check_examples(tool, schema, self.policy)
        self._schemas[tool.code] = schema
        self._tools = {**self._tools, tool.code: tool}  # a source that comes back is added while others read

    def get(self, code: str) -> Tool:
        """Return the tool of this code; UnknownTool, a KeyError, if there is none."""
        try:
            return self._tools[code]
        except KeyError:
            raise UnknownTool(code, self._tools, self.refusal(code)) from None

    def __contains__(self, code: str) -> bool:
        return code in self._tools

    def refusal(self, code: str) -> str | None:
        """Return why this host does not offer a tool: its policy refuses it, or its source, or the tool, is left out.

        For a glob: why nothing fits it.
        """
        if code in self._tools:
            return None
        is_glob = any(char in code for char in "*?[")
        for each in self.left_out if not is_glob or not self.matching([code]) else ():
            if each.covers(code) or (is_glob and fnmatchcase(f"{each.name}.x", code)):
                return f"there is no {code}, since {each.name} cannot be used: {each.why}"
        return self._refused.get(code)

    def refusal_for_models(self, code: str) -> str | None:
        """Return why no model may have a tool: this host does not offer it, or offers it to nodes alone."""
        if code in self and self.get(code).node_only:
            return f"{code} is for the nodes of workflows alone, and no model calls it: write a node with it"
        return self.refusal(code)

    def is_due_to_left_out(self, message: str) -> bool:
        """Return whether a fault is told by `refusal` of a source or tool that is left out: it is not its author's."""
        return any(each.why in message for each in self.left_out)

    def all(self) -> list[Tool]:
        """Return all tools, by code."""
        return [self._tools[code] for code in sorted(self._tools.keys() - self._private)]

    def for_models(self) -> list[Tool]:
        """Return the tools that a model may be shown, by code."""
        return [tool for tool in self.all() if not tool.node_only]

    def schema(self, code: str) -> ConfigSchema:
        """Return the compiled schema of a tool's arguments."""
        self.get(code)
        return self._schemas[code]

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """Return the codes that fit one of the globs (`mcp.files.*`), sorted."""
        globs = tuple(patterns)
        known = sorted(self._tools.keys() - self._private)
        return [code for code in known if any(fnmatchcase(code, glob) for glob in globs)]

    def definitions(self, allow: Sequence[str] = ("*",), deny: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Tools in function-calling shape, without what only authors may set; `deny` wins."""
        hidden = {*self.matching(deny), *(tool.code for tool in self.all() if tool.node_only)}
        return [self._definition(code) for code in self.matching(allow) if code not in hidden]

    def _definition(self, code: str) -> dict[str, Any]:
        schema = self._schemas[code].schema
        function = {
            "name": code,
            "description": self._tools[code].description,
            "parameters": visible(schema, author_keys(schema)),
        }
        return {"type": "function", "function": function}

    def validate(self, code: str, args: Any, words: Words = ENGLISH) -> list[Fault]:
        """Return the faults of `args`; empty when they are valid."""
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
            return failure(words.invalid_arguments.format(faults=list_faults(faults, words)))
        try:
            value = await self._call(tool, args, context)
        except ResultError as error:
            return lost_result(tool, args, context, error)
        except ToolError as error:
            return failure(for_the_model(error, context), transient=error.transient)
        except DefinitionError as error:  # in what an author set
            return failure(for_the_model(error, context))
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
            cut_off = any(map(is_cut_off, errors))
            text = scrub(describe(error, context.language), os.environ)
            return failure(text, transient=transient, cut_off=cut_off)
        try:
            return check_result(tool, value, context, self._outputs.get(tool.code))
        except ResultError as error:
            return lost_result(tool, args, context, error)

    async def _call(self, tool: Tool, args: Args, context: ToolContext) -> Any:
        if is_async(tool.execute):
            return await tool.execute(args, context)
        value = await self._threads.run(execute_whole, tool.execute, args, context)
        if isinstance(value, AsyncIterator):
            return [each async for each in value]
        return await value if inspect.isawaitable(value) else value

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


def _check_tool(tool: Any, where: str) -> None:
    """DefinitionError for what is no Tool, with what to write for a function."""
    if inspect.isfunction(tool) or inspect.ismethod(tool):
        kind = "method" if inspect.ismethod(tool) else "function"
        raise DefinitionError(f"{tool.__name__} is a {kind}: write @tool from utools above it", where=where)
    if isinstance(tool, MethodTool):
        raise tool.explain_unbound()
    if not isinstance(tool, Tool):
        raise DefinitionError("must be a Tool", where=where, value=tool)


def _check_examples(tool: Tool, schema: ConfigSchema, policy: HostPolicy) -> None:
    """DefinitionError for an example that no model could follow: its arguments are refused, or the author's."""
    where = f"tools.{tool.code}.examples"
    hidden = author_keys(schema.schema) | set(policy.presets.get(tool.code, ()))
    own = ConfigSchema(visible(schema.schema, hidden), foreign=True, where=where, known_good=True)
    for index, example in enumerate(tool.examples):
        if authored := sorted(hidden & set(example["args"])):
            raise DefinitionError(
                "is set by the author or the host, and shown to no model; leave it out",
                where=f"{where}/{index}/args/{authored[0]}",
            )
        for fault in own.faults(example["args"]):
            raise DefinitionError(fault.message, where=f"{where}/{index}/args")
