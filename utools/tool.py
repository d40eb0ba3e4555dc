"""Tool: a code, a description, a schema of the arguments, an effect, and something to execute."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, cast

from utools.errors import DefinitionError, ToolError

if TYPE_CHECKING:
    import logging

    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=Any, covariant=True)
else:  # typing_extensions would take as long to import as the rest of this package
    from typing import TypeVar

    Deps = TypeVar("Deps", covariant=True)

Effect = Literal["read", "write", "nested"]
Args = dict[str, Any]
Execute = Callable[[Args, "ToolContext[Any]"], Any]
Check = Callable[[Args], None]

CODE = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")
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


def _logger() -> "logging.Logger":
    import logging

    return logging.getLogger("utools")


@dataclass(frozen=True)
class ToolContext(Generic[Deps]):
    """The surroundings of a call: its run and strand, its deadline, the services of its host.

    `deps` is the object that the program gave for this run, such as a database session: None where it gave none.
    `secret(name)` returns a secret's value or raises ToolError. `deadline_s` is how many seconds the call may take.
    `idempotency_key` is the same for every attempt of one call. `clean(text)` returns the text without secrets: a tool
    that cuts a text, or searches in it, cleans it first, because half a secret is not recognised later. `language` is
    that of the model which reads the result: en or zh. `clock()` is the time that waits go by, that of the run's
    store, in seconds since 1970; None where that is this machine's. `is_let_go()` says of a call that is cancelled
    whether only its process ends: then another attempt comes, and what the call has started elsewhere may go on.
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


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: a JSON `output`, or an `error` text for the model; `metadata` is for the host.

    Its `usage` ({requests, input_tokens, output_tokens, estimated, cost}) is what a successful call spent on models.
    """

    success: bool = True
    output: Any = None
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """Something a model may call.

    `config_schema` is a JSON Schema (2020-12) of the arguments, checked when the tool is registered; with `foreign`
    it is taken as it is written. `execute(args, context)`, sync or async, returns a ToolResult or any JSON value; a
    sync one runs in a thread. `effect` is "read", "write" or "nested", a pure function of the args that returns one
    of these, or that function as data: `{"argument": "op", "read": ["load"]}` reads when `op` is one of those and
    writes otherwise; with `"default": "load"` it reads as well when `op` is not given.

    `cache` (`{"ttl": seconds}`) lets the host cache the answers of reads. `fingerprint` tells versions of a definition
    apart that was written elsewhere. `check(args)` raises DefinitionError, whose `where` is the argument, for what is
    certain to fail; before a run it gets those arguments that are known, maybe none. `examples` show a model how the
    tool is used, in words that a person would use: each is {user, args, output, answer}: what is asked, the call, what
    it gives, and the answer that is made of it. An `inward` tool only works on what it is given, and keeps it in the
    run: a workflow's node may give it texts in which secrets are masked, which any other tool would take for values.
    A `node_only` tool is called by the nodes of workflows, and no model ever sees it. The result of a tool that
    `awaits` is {signal, until}: its node waits for one of the two, and gives what has come.
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
        if not isinstance(self.config_schema, dict):
            raise DefinitionError(
                "must be a JSON Schema object", where=f"{where}.config_schema", value=self.config_schema
            )
        if not callable(self.execute):
            raise DefinitionError("must be a function (args, context)", where=f"{where}.execute", value=self.execute)
        _check_effect(self.effect, where=f"{where}.effect")
        ttl = self.cache.get("ttl") if self.cache is not None else 1
        if not isinstance(ttl, int | float) or isinstance(ttl, bool) or not ttl > 0:
            raise DefinitionError("must be {'ttl': seconds}", where=f"{where}.cache", value=self.cache)
        for index, example in enumerate(self.examples):
            _check_example(example, where=f"{where}.examples/{index}")

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of the project's own: a model that is not small calls it without an example."""
        return getattr(self.execute, "__module__", "").startswith("utools.builtin")

    def effect_of(self, args: Args) -> Effect:
        """Return the effect of a call with these args; an effect that cannot be determined counts as a write."""
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
