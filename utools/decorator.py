"""`@tool`: makes a Tool of a typed function."""

from collections.abc import Callable, Mapping
from typing import Any, overload

from utools.tool import Args, Effect, Tool


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    code: str | None = None,
    description: str | None = None,
    effect: Effect | Callable[[Args], Effect] | Mapping[str, Any] = "write",
    idempotent: bool = False,
    output_schema: dict[str, Any] | None = None,
    cache: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    code: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a Tool of a typed function, sync or async: `@tool`, or `@tool(code=…, effect="read", …)`.

    The schema comes from the signature, the description from the docstring, whose Google-style `Args:`
    describe the parameters. A parameter annotated `ToolContext` is passed by the host and not part of the
    schema. The function gets values of its annotated types. Raises DefinitionError for a signature that
    cannot be described.
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        from utools.function_tool import from_function  # imports pydantic, which a hand-written Tool does without

        return from_function(function, code=code, description=description, **options)

    return decorate if function is None else decorate(function)
