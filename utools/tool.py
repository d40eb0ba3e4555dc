"""Tool: a code, a description, a schema of the arguments, an effect, and something to execute."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, cast

from utools.errors import DefinitionError, ToolError
from utools.lazy_pattern import lazy_compile

if TYPE_CHECKING:
    import logging

    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=Any, covariant=True)
else:  # typing_extensions would take as long to import as the rest of this package
    from typing import TypeVar

    Deps = TypeVar("Deps", covariant=True)

Effect = Literal["read", "write", "nested"]
Args = dict[str, Any]
Check = Callable[[Args], None]

CODE = lazy_compile(r"[A-Za-z0-9_.:\-]{1,128}")
EFFECTS: tuple[Effect, ...] = ("read", "write", "nested")
EXAMPLE_KEYS = frozenset({"user", "args", "output", "answer"})


class Progress(Protocol):
    """Reports to the host how far a tool has come; `fraction` is 0 to 1."""

    def __call__(self, text: str, fraction: float | None = None) -> None: ...


def _not_allowed(name: str) -> str:
    raise ToolError(
        "the secret {name} is not allowed by the operator; "
        "to allow it, add {name} to the environment variable AGENT_CORE_SECRET_ENV",
        name=name,
    )


def _return_unchanged(text: str) -> str:
    """Return the `clean` of a run that has no secrets."""
    return text


def _ignore_progress(text: str, fraction: float | None = None) -> None:
    """The `progress` of a run without a listener."""


def _never() -> bool:
    """The `is_let_go` of a call whose process does not end before it."""
    return False


@cache
def _logger() -> "logging.Logger":
    import logging

    return logging.getLogger("utools")


@dataclass(frozen=True)
class ToolContext(Generic[Deps]):
    """The surroundings of a call: its run and strand, its deadline, the services of its host.

    A parameter annotated `ToolContext` is given one by the host; no model sees it. `ToolContext[Deps]` says of which
    type `deps` is: type checkers then check `context.deps.shop`, and a call fails in a run that was given none. The
    type of what is given is not checked.

    Attributes:
        run_id: The run that the call is in.
        strand: Its strand in the journal.
        n: The number of the call's record in that strand.
        deadline_s: How many seconds the call may take; None for any number.
        idempotency_key: The same for every attempt of one call, for services that recognise repetitions.
        secret: `secret(name)` returns a secret's value, or raises ToolError if the operator does not allow it.
        progress: `progress(text, fraction=None)` shows how far the call has come; `fraction` is 0 to 1.
        clean: `clean(text)` returns the text without secrets. A tool that cuts a text, or searches in it, cleans it
            first, because half a secret is not recognised later.
        log: A logger of the call.
        language: The language of the model that reads the result: en or zh.
        clock: The time that waits go by, that of the run's store, in seconds since 1970; None for this machine's.
        is_let_go: `is_let_go()` says of a call that is cancelled whether only its process ends: then another attempt
            comes, and what the call has started elsewhere may go on.
        deps: The object that the program gave for this run, such as a database session; None where it gave none.

    Example:
        ```python
        import asyncio

        from utools import ToolContext, ToolRegistry, tool


        @tool(effect="read")
        def stock(article: str, context: ToolContext[dict[str, int]]) -> int:
            '''Count an article.'''
            return context.deps[article]


        context = ToolContext(deps={"A-17": 12})
        assert stock("A-17", context) == 12
        result = asyncio.run(ToolRegistry([stock]).execute("stock", {"article": "A-17"}, context))
        assert result.output == 12
        ```
    """

    run_id: str = ""
    strand: str = ""
    n: int = 0
    deadline_s: float | None = None
    idempotency_key: str = ""
    secret: Callable[[str], str] = field(default=_not_allowed, repr=False)
    progress: Progress = field(default=_ignore_progress, repr=False)
    clean: Callable[[str], str] = field(default=_return_unchanged, repr=False)
    log: "logging.Logger | logging.LoggerAdapter[Any]" = field(default_factory=_logger, repr=False)
    language: str = "en"
    clock: Callable[[], float] | None = field(default=None, repr=False)
    is_let_go: Callable[[], bool] = field(default=_never, repr=False)
    deps: Deps = field(default=cast(Any, None), repr=False, compare=False)


Execute = Callable[[Args, ToolContext[Any]], Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call.

    A tool may return any JSON value in its place; `execute` of a registry always gives one.

    Attributes:
        success: Whether the call did what it was asked.
        output: What the tool gave, as JSON.
        error: What went wrong, in words that the model reads; None after a success.
        metadata: For the host, never for the model. Its `usage` ({requests, input_tokens, output_tokens, estimated,
            cost}) is what a successful call spent on models.

    Example:
        ```python
        from utools import ToolResult

        found = ToolResult(output={"pieces": 12})
        missing = ToolResult(success=False, error="there is no article A-99")
        assert (found.success, missing.output) == (True, None)
        ```
    """

    success: bool = True
    output: Any = None
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """Something that a model may call. `@tool` makes one of a typed function.

    Attributes:
        code: The name that workflows and models call it by: 1 to 128 of A-Z, a-z, 0-9, `_`, `-`, `.`, `:`.
        description: What a model reads of it.
        config_schema: A JSON Schema (2020-12) of the arguments, checked when the tool is registered.
        execute: `execute(args, context)`, sync or async, returns a ToolResult or any JSON value. A sync one runs in a
            thread.
        effect: "read", "write" or "nested"; a pure function of the arguments that returns one of these; or that
            function as data: `{"argument": "op", "read": ["load"]}` reads when `op` is one of those and writes
            otherwise; with `"default": "load"` it reads as well when `op` is not given.
        idempotent: Whether the same call may be made twice without harm.
        output_schema: A JSON Schema of what it gives; None for anything.
        foreign: Whether the schema is taken as it is written, where it comes from elsewhere.
        cache: `{"ttl": seconds}` lets the host cache the answers of reads; refused where the effect is another.
        fingerprint: Tells versions apart of a definition that was written elsewhere.
        check: `check(args)` raises DefinitionError, whose `where` is the argument, for what is certain to fail. Before
            a run it gets those arguments that are known, maybe none.
        examples: Show a model how the tool is used, in words that a person would use: each is {user, args, output,
            answer}, so what is asked, the call, what it gives, and the answer that is made of it.
        inward: Whether the tool only works on what it is given, and keeps it in the run: a workflow's node may give it
            texts in which secrets are masked, which any other tool would take for values.
        node_only: Whether only the nodes of workflows call it, and no model ever sees it.
        awaits: Whether its result is {signal, until}: its node waits for one of the two, and gives what has come.

    Raises:
        DefinitionError: An attribute that no tool can have; `where` names it.

    Example:
        ```python
        from utools import Tool, ToolRegistry


        def count(args, context):
            return {"article": args["article"], "pieces": 12}


        stock = Tool(
            code="stock",
            description="Count an article.",
            config_schema={"type": "object", "properties": {"article": {"type": "string"}}, "required": ["article"]},
            execute=count,
            effect="read",
        )
        assert ToolRegistry([stock]).validate("stock", {}) != []
        ```
    """

    code: str
    description: str
    config_schema: dict[str, Any]
    execute: Execute = field(repr=False)
    effect: Effect | Callable[[Args], Effect] | Mapping[str, Any] = "write"
    idempotent: bool = False
    output_schema: dict[str, Any] | None = None
    foreign: bool = False
    cache: Mapping[str, Any] | None = None
    fingerprint: str | None = None
    check: Check | None = field(default=None, repr=False)
    examples: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    inward: bool = False
    node_only: bool = False
    awaits: bool = False

    def __post_init__(self) -> None:
        where = f"tools.{self.code}"
        if not isinstance(self.code, str) or not CODE.fullmatch(self.code):
            allowed = "a code is 1 to 128 letters (A-Z, a-z), digits, or any of _ - . :"
            raise DefinitionError(allowed, where="tools", value=self.code)
        if not isinstance(self.description, str):
            raise DefinitionError("must be a text", where=f"{where}.description", value=self.description)
        if not isinstance(self.config_schema, dict):
            raise DefinitionError(
                "must be a JSON Schema object", where=f"{where}.config_schema", value=self.config_schema
            )
        types = self.config_schema.get("type", "object")
        named = types if isinstance(types, list) else [types]
        if named and all(each in ("array", "string", "number", "integer", "boolean", "null") for each in named):
            message = "must be object: calls give arguments by name"
            raise DefinitionError(message, where=f"{where}.config_schema/type", value=types)
        if not callable(self.execute):
            raise DefinitionError("must be a function (args, context)", where=f"{where}.execute", value=self.execute)
        _check_effect(self.effect, where=f"{where}.effect")
        ttl = 1 if self.cache is None else self.cache.get("ttl") if isinstance(self.cache, Mapping) else None
        if not isinstance(ttl, int | float) or isinstance(ttl, bool) or not ttl > 0:
            raise DefinitionError("must be {'ttl': seconds}", where=f"{where}.cache", value=self.cache)
        if self.cache is not None and isinstance(self.effect, str) and self.effect != "read":
            message = "only answers of reads are cached: take it out, or give the tool the effect read"
            raise DefinitionError(message, where=f"{where}.cache", value=self.effect)
        if isinstance(self.output_schema, type):
            name = self.output_schema.__name__
            message = f"is a class; give its schema, such as {name}.model_json_schema(mode='serialization')"
            raise DefinitionError(message, where=f"{where}.output_schema")
        if self.check is not None and not callable(self.check):
            raise DefinitionError("must be a function of the arguments", where=f"{where}.check", value=self.check)
        if not isinstance(self.idempotent, bool):
            raise DefinitionError("must be True or False", where=f"{where}.idempotent", value=self.idempotent)
        if not isinstance(self.examples, list | tuple):
            raise DefinitionError("must be a list of examples", where=f"{where}.examples", value=self.examples)
        for index, example in enumerate(self.examples):
            _check_example(example, where=f"{where}.examples/{index}")

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of the project's own: a model that is not small calls it without an example."""
        return getattr(self.execute, "__module__", "").startswith("utools.builtin")

    def effect_of(self, args: Args) -> Effect:
        """Return the effect of one call.

        Args:
            args: The arguments of the call.

        Returns:
            "read", "write" or "nested"; "write" where the effect cannot be determined.
        """
        effect: Any = self.effect
        if isinstance(effect, Mapping):
            chosen = args.get(effect["argument"], effect.get("default")) if isinstance(args, dict) else None
            return "read" if isinstance(chosen, str) and chosen in effect["read"] else "write"
        if not isinstance(effect, str):
            try:
                effect = effect(args)
            except (
                Exception,
                SystemExit,
            ):  # the tool author's code; a mistake in it must not make a write look like a read
                return "write"
        for known in EFFECTS:
            if known == effect:
                return known
        return "write"


def name_as_words(code: str) -> str:
    """Return the description of a tool whose author gave none."""
    return code.replace("_", " ")


def _check_example(example: Any, *, where: str) -> None:
    if not isinstance(example, Mapping) or set(example) != EXAMPLE_KEYS:
        raise DefinitionError(f"must be an object with {', '.join(sorted(EXAMPLE_KEYS))}", where=where, value=example)
    if not isinstance(example["user"], str) or not isinstance(example["args"], dict):
        raise DefinitionError("user must be a text, and args an object", where=where, value=example)


def _check_effect(effect: Any, *, where: str) -> None:
    if isinstance(effect, Mapping):
        reads = effect.get("read")
        strings = isinstance(reads, list | tuple) and all(isinstance(each, str) for each in reads)
        keys = set(effect) - {"default"}
        if keys != {"argument", "read"} or not isinstance(effect["argument"], str) or not strings:
            form = "must be {'argument': NAME, 'read': [VALUE, …]}, with 'default': VALUE where it may be left out"
            raise DefinitionError(form, where=where, value=effect)
    elif not callable(effect) and effect not in EFFECTS:
        raise DefinitionError("must be read, write, nested or a function of the args", where=where, value=effect)


def is_async(execute: Execute) -> bool:
    """Return whether calling `execute` returns something to await rather than the result."""
    call = getattr(type(execute), "__call__", None)  # noqa: B004 - an object may have an async __call__
    return inspect.iscoroutinefunction(execute) or inspect.iscoroutinefunction(call)
