"""ToolRegistry: find, describe, validate, execute and discover tools. An instance, never a global."""

import inspect
import os
from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

import orjson

from utools.call_arguments import own_arguments
from utools.call_results import (
    FINISHED,
    check_result,
    execute_whole,
    failure,
    finish,
    for_the_model,
    is_cut_off,
    list_faults,
    lost_result,
)
from utools.callable_tool import MethodTool, bound_tool
from utools.calls.shared import SharedCalls
from utools.errors import DefinitionError, ResultError, ToolError
from utools.host_policy import HostPolicy
from utools.schema.compiled import prepare_schema
from utools.schema.config_schema import ConfigSchema, visible
from utools.schema.faults import Fault
from utools.schema.json_value import NotJson, as_json
from utools.threads import DaemonThreads
from utools.tool import Args, Tool, ToolContext, ToolResult, is_async
from utools.tool_lookup import ToolLookup
from utools.words.catalogue import ENGLISH, Words, words_in
from utools.words.text import leaves_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "utools.tools"


class ToolRegistry(ToolLookup):
    """The tools of one host, and what their calls share. Threads and event loops may share the registry.

    Args:
        tools: Tools to register.
        threads: How many of its sync tools run at a time, among the 256 that a process runs.
        calls: Cached answers and rate limits, where other registries share them.
        policy: The host's last word on each tool: presets, and tools that are not offered.
        known_good: Whether a test has checked the tools' schemas, as it has the built-in ones'.

    Raises:
        DefinitionError: Something that is no tool, or that `register` refuses.

    Example:
        ```python
        import asyncio

        from utools import ToolRegistry, tool


        @tool(effect="read")
        def stock(article: str) -> int:
            '''Count an article.'''
            return 12


        registry = ToolRegistry([stock])
        assert [fault.pointer for fault in registry.validate("stock", {})] == ["/article"]
        assert asyncio.run(registry.execute("stock", {"article": "A-17"})).output == 12
        ```
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
        super().__init__(calls, policy)
        self._derived: list[ToolRegistry] = []
        self._outputs: dict[str, ConfigSchema] = {}
        self._threads = DaemonThreads(threads, of_tools=True)
        for index, each in enumerate(map(bound_tool, tools)):
            _check_tool(each, f"tools/{index}")
            self.register(each, known_good=known_good)

    @classmethod
    def from_tools(
        cls, tools: "ToolRegistry | Iterable[Tool]", *, calls: SharedCalls | None = None, where: str = "registry"
    ) -> "ToolRegistry":
        """Return the registry itself, or a new one with these tools.

        Args:
            tools: A registry, or tools.
            calls: What the calls of a new registry share.
            where: The parameter that an error names.

        Raises:
            DefinitionError: What is neither.
        """
        if isinstance(tools, ToolRegistry | Iterable) and not isinstance(tools, str | bytes):
            return tools if isinstance(tools, ToolRegistry) else cls(tools, calls=calls)
        hint, given = (f": write [{tools.code}]", {}) if isinstance(tools, Tool) else ("", {"value": tools})
        raise DefinitionError(f"must be a ToolRegistry, or a list of tools{hint}", where=where, **given)

    def _stricter(self, policy: HostPolicy) -> "ToolRegistry":
        """Return the same tools as a stricter policy binds them, also those that are registered later. What their calls
        share is the same."""
        found = ToolRegistry(calls=self._calls, policy=policy)
        found._readers, found._origins, found._left_out = self._readers, self._origins, self._left_out
        found._threads = self._threads
        for tool, known_good in self._given:
            found.register(tool, known_good=known_good)
        self._derived.append(found)
        return found

    def _with_private(self, tool: Tool) -> "ToolRegistry":
        """Return the same tools, also those that are registered later, and one that only its own code finds: no list
        has it, and no glob fits it. It is the host's own, so that no policy binds it."""
        found = copy(self)
        found._given, found._derived = [*self._given], []
        found._schemas, found._outputs = dict(self._schemas), dict(self._outputs)
        found._tools = {**self._tools, tool.code: tool}
        found._schemas[tool.code] = prepare_schema(tool.config_schema, where=f"tools.{tool.code}", known_good=True)
        found._private = self._private | {tool.code}
        self._derived.append(found)
        return found

    def register(self, tool: Tool, *, known_good: bool = False) -> None:
        """Add a tool as the host's policy binds it, or leave it out where the policy refuses it.

        Args:
            tool: The tool; of a method, that of an instance.
            known_good: Whether a test has checked its schemas.

        Raises:
            DefinitionError: A code that is taken, a schema that is not valid, or a preset that the tool refuses.
        """
        tool = bound_tool(tool)
        self._register(tool, known_good=known_good)
        self._given.append((tool, known_good))
        for each in self._derived:
            each.register(tool, known_good=known_good)

    def _register(self, tool: Tool, *, known_good: bool) -> None:
        _check_tool(tool, "tools")
        where = f"tools.{tool.code}"
        if tool.code in self._tools or tool.code in self._refused:
            raise DefinitionError(f"another tool already has this code{self._name_holder(tool.code)}", where=where)
        if refusal := self._policy.refusal(tool):
            self._refused[tool.code] = refusal
            return
        bound = self._policy.bind(tool)
        known_good, tool = known_good and bound is tool, bound
        schema = prepare_schema(
            tool.config_schema, foreign=tool.foreign, where=f"{where}.config_schema", known_good=known_good
        )
        if tool.output_schema is not None:
            # foreign: an output may have more properties than its schema names
            output = prepare_schema(
                tool.output_schema, foreign=True, where=f"{where}.output_schema", known_good=known_good
            )
            self._outputs[tool.code] = output
        if not known_good:
            _check_texts(tool)
        if tool.examples and not known_good:
            _check_examples(tool, schema, self._policy)
        self._schemas[tool.code] = schema
        self._tools = {**self._tools, tool.code: tool}  # a source that comes back is added while others read

    def validate(self, code: str, args: Any, words: Words = ENGLISH) -> list[Fault]:
        """Check the arguments of a call against the tool's schema.

        Args:
            code: The tool's code.
            args: The arguments.
            words: The language of the faults; English by default.

        Returns:
            The faults; empty for valid arguments.

        Raises:
            UnknownTool: No tool has this code.
        """
        return self._schema(code).faults(args, words)

    async def execute(
        self, code: str, args: Args, context: ToolContext | None = None, *, validated: bool = False
    ) -> ToolResult:
        """Check the arguments and call the tool. Only cancellation and Ctrl-C pass through.

        Args:
            code: The tool's code.
            args: The arguments.
            context: The surroundings of the call.
            validated: Whether the caller has checked these arguments against the tool's schema.

        Returns:
            The result; what the tool raises, and faults of the arguments, are a failed one.

        Raises:
            UnknownTool: No tool has this code.
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
        args = own_arguments(args, self._schemas[tool.code].schema)
        if is_async(tool.execute):
            value = await tool.execute(args, context)
        else:
            value = await self._threads.run(execute_whole, tool.execute, args, context)
        return value if type(value) in FINISHED else await finish(value, self._threads, context)

    def discover(self, entry_points: "Iterable[EntryPoint] | None" = None) -> list[str]:
        """Register the built-in tools that are not there yet, and those of installed packages.

        Args:
            entry_points: Entries to take the tools of, instead: each loads a Tool, a list of Tools, or a function that
                returns either. By default those of the group `utools.tools`.

        Returns:
            The new codes. The built-in tools work below the working directory.

        Raises:
            DefinitionError: An entry that cannot be loaded or registered; it names the package. If loading fails,
                nothing is registered.
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
                self._origins[each.code] = origin_of(entry)
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


def _check_texts(tool: Tool) -> None:
    """DefinitionError for what a model would be shown, and no journal holds."""
    examples = [dict(example) for example in tool.examples]
    for name, shown in (("description", tool.description), ("examples", examples)):
        try:
            as_json(shown, convert=_write_plainly)
        except NotJson as error:
            raise DefinitionError(str(error), where=f"tools.{tool.code}.{name}") from None


def _write_plainly(value: Any, pointer: str) -> Any:
    """Return what the JSON of a date, a UUID and the like holds; NotJson for what has none."""
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError:
        raise NotJson("type", pointer, type=type(value).__name__) from None


def _check_examples(tool: Tool, schema: ConfigSchema, policy: HostPolicy) -> None:
    """DefinitionError for an example that no model could follow: its arguments are refused, or the author's."""
    where = f"tools.{tool.code}.examples"
    hidden, preset = schema.author_keys, set(policy.presets.get(tool.code, ()))
    own = prepare_schema(visible(schema.schema, hidden | preset), foreign=True, where=where, known_good=True)
    for index, example in enumerate(tool.examples):
        if preset & set(example["args"]):  # the tool's author knew no host; this one shows other examples, or none
            continue
        if authored := sorted(hidden & set(example["args"])):
            raise DefinitionError(
                "is set by the author, and shown to no model; leave it out",
                where=f"{where}/{index}/args/{authored[0]}",
            )
        for fault in own.faults(example["args"]):
            raise DefinitionError(fault.message, where=f"{where}/{index}/args")
