"""`@tool`: makes a Tool of a typed function."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from utools.errors import DefinitionError
from utools.tool import Args, Check, Effect

if TYPE_CHECKING:
    from utools.callable_tool import ClassTool, FunctionTool

P = ParamSpec("P")
R = TypeVar("R")


class Decorator(Protocol):
    """What `@tool(…)` gives: it makes a Tool of the function below it."""

    @overload
    def __call__(self, function: Callable[Concatenate[type[Any], P], R], /) -> "ClassTool[P, R]": ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> "FunctionTool[P, R]": ...


@overload
def tool(function: Callable[Concatenate[type[Any], P], R], /) -> "ClassTool[P, R]": ...
@overload
def tool(function: Callable[P, R], /) -> "FunctionTool[P, R]": ...
@overload
def tool(
    *,
    code: str | None = None,
    description: str | None = None,
    effect: Effect | Callable[[Args], Effect] | Mapping[str, Any] = "write",
    idempotent: bool = False,
    output_schema: dict[str, Any] | None = None,
    cache: Mapping[str, Any] | None = None,
    check: Check | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    node_only: bool = False,
) -> Decorator: ...
def tool(
    function: Any = None,
    /,
    *,
    code: str | None = None,
    description: str | None = None,
    effect: Effect | Callable[[Args], Effect] | Mapping[str, Any] = "write",
    idempotent: bool = False,
    output_schema: dict[str, Any] | None = None,
    cache: Mapping[str, Any] | None = None,
    check: Check | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    node_only: bool = False,
    **unknown: Any,
) -> Any:
    """Make a tool of a typed function, sync or async: `@tool`, or `@tool(code=…, effect="read", …)`.

    The schema comes from the signature, the description from the docstring, whose Google-style `Args:`
    describe the parameters. A parameter annotated `ToolContext` is passed by the host and not part of the
    schema. The function gets values of its annotated types, and returns JSON, or what becomes JSON: dataclasses,
    pydantic models, dates.

    The Tool is still called as the function was. In a class it is a method: `Desk().stock` is the tool of that
    instance, and its schema has no `self`; `@tool` stands above or below `@staticmethod` and `@classmethod`. A
    `functools.partial` and an object that can be called become tools by `tool(…)(value)`.

    Args:
        function: The function, where `@tool` stands without options.
        code: The name that workflows and models call it by; else the function's.
        description: What the model reads of it; else the docstring.
        effect: read, write or nested; a function of the arguments that returns one of them; or that function as
            data, {"argument": "op", "read": ["load"]}. A write is never repeated without a person's word.
        idempotent: Whether the same call may be made twice without harm.
        output_schema: A JSON Schema of what it returns.
        cache: {"ttl": seconds}: how long the host may keep its answers, where it reads.
        check: check(args) raises DefinitionError for arguments that are certain to fail, before a run.
        examples: What a model may be shown: {"user": "How many A-17 are there?", "args": {"article": "A-17"},
            "output": {"pieces": 12}, "answer": "There are 12."}
        node_only: Whether only the nodes of workflows call it, and no model ever sees it.
        unknown: Options that `@tool` does not have; each is refused.

    Returns:
        The FunctionTool; with options, what makes it of the function below.

    Raises:
        DefinitionError: A signature that cannot be described, or an unknown option.

    Example:
        ```python
        from utools import tool


        @tool(effect="read")
        def stock(article: str, place: str = "north") -> dict[str, int]:
            '''Count an article.

            Args:
                article: Its number, such as A-17.
                place: The warehouse.
            '''
            return {"pieces": 12}


        assert stock("A-17") == {"pieces": 12}
        assert stock.config_schema["required"] == ["article"]
        ```
    """
    if unknown:
        raise _explain_unknown(next(iter(unknown)))

    frame = sys._getframe(1)

    def decorate(function: Any) -> "FunctionTool[..., Any]":
        from utools.function_tool import from_function  # imports pydantic, which a hand-written Tool does without

        return from_function(
            function,
            code=code,
            description=description,
            scope=_names_around(function, frame),
            effect=effect,
            idempotent=idempotent,
            output_schema=output_schema,
            cache=cache,
            check=check,
            examples=examples,
            node_only=node_only,
        )

    return decorate if function is None else decorate(function)


def _names_around(function: Any, frame: FrameType) -> Mapping[str, Any] | None:
    """Return the names that are known where `@tool` stands, if the function is written there."""
    written_there = getattr(inspect.unwrap(function), "__globals__", None) is frame.f_globals
    return frame.f_locals if written_there else None


def _explain_unknown(option: str) -> DefinitionError:
    from utools.schema.faults import hint

    names = [each.name for each in inspect.signature(tool).parameters.values() if each.kind is each.KEYWORD_ONLY]
    return DefinitionError(f"@tool has no option {option!r}; {hint(option, names)}")
