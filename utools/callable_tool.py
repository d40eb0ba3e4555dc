"""FunctionTool: a Tool that is still called as the function that it was made of, and binds as a method does."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from utools.annotations import find_annotated, read_annotations
from utools.errors import DefinitionError
from utools.tool import Execute, Tool

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R = TypeVar("R", covariant=True)
LOOKS = (
    *("__module__", "__name__", "__qualname__", "__doc__"),
    *("__code__", "__defaults__", "__kwdefaults__"),  # by which inspect knows a coroutine function
)


@dataclass(frozen=True, eq=False)
class FunctionTool(Tool, Generic[P, R]):
    """A Tool of a function, as `@tool` makes it: models call it by its schema, programs as the function itself.

    It has the function's name, docstring and signature.

    Attributes:
        function: The function as it was written, or bound to its instance.

    Example:
        ```python
        from utools import tool


        @tool(effect="read")
        def double(number: int) -> int:
            '''Double a number.'''
            return 2 * number


        assert double(4) == 8
        assert double.config_schema["required"] == ["number"]
        ```
    """

    function: Callable[P, R] = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._look_like_function()

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        return self.function(*args, **options)

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(
        self: "FunctionTool[Concatenate[S, Q], R]", instance: S, owner: type | None = None, /
    ) -> "FunctionTool[Q, R]": ...
    @overload
    def __get__(self, instance: object, owner: type | None = None, /) -> Self: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        """Return this tool: only a method's is another one for each instance."""
        return self

    def __setstate__(self, state: list[Any]) -> None:
        for each, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)
        self._look_like_function()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return its name, or its instance and its name, where it is found by them, as pickle finds a function."""
        if _find_global(self) is self:
            return self.__dict__["__qualname__"]
        if isinstance(self.function, MethodType):
            name = self.function.__name__
            if _is_same(getattr(self.function.__self__, name, None), self):
                return getattr, (self.function.__self__, name)
        return super().__reduce_ex__(protocol)

    def _look_like_function(self) -> None:
        looks = {name: getattr(self.function, name) for name in LOOKS if hasattr(self.function, name)}
        annotations = read_annotations(find_annotated(self.function))
        self.__dict__.update(looks, __annotations__=annotations, __wrapped__=self.function)


@dataclass(frozen=True, eq=False)
class MethodTool(FunctionTool[P, R]):
    """A tool of a method, as its class has it: each instance gives a tool of its own, and no host takes this one.

    `make_execute` makes the `execute` of the method once it is bound.
    """

    make_execute: Callable[[Callable[..., Any]], Execute] = field(kw_only=True, repr=False)

    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        """Return the tool of an instance."""
        return self if instance is None else self._bind(instance)

    def _bind(self, holder: object) -> FunctionTool[..., R]:
        function: Callable[..., R] = self.function.__get__(holder, type(holder))
        options = {each.name: getattr(self, each.name) for each in fields(Tool)}
        return FunctionTool(**{**options, "execute": self.make_execute(function)}, function=function)

    def explain_unbound(self) -> DefinitionError:
        """Return the error of a host that is given the method without an instance."""
        owner, _, name = str(self.__dict__["__qualname__"]).rpartition(".")
        owner = owner.rpartition(".")[2]
        return DefinitionError(
            f"{owner}.{name} is a method, and has no instance to be called on; "
            f"give the tool of an instance, such as {owner}(…).{name}",
            where=f"tools.{self.code}",
        )


@dataclass(frozen=True, eq=False)
class ClassTool(MethodTool[Concatenate[type[Any], P], R]):
    """A tool of a classmethod: each class gives a tool of its own."""

    def __get__(  # type: ignore[override]  # it is never unbound
        self, instance: object, owner: type | None = None, /
    ) -> FunctionTool[P, R]:
        """Return the tool of a class."""
        bound: FunctionTool[P, R] = self._bind(owner or type(instance))  # type: ignore[assignment]
        return bound


def bound_tool(given: Any) -> Any:
    """Return a bound method of a tool, as a classmethod above `@tool` gives it, as a tool; anything else as it is."""
    if isinstance(given, MethodType) and isinstance(given.__func__, MethodTool):
        return given.__func__.__get__(given.__self__)
    return given


def _find_global(tool: FunctionTool[..., Any]) -> Any:
    looks = tool.__dict__
    try:
        return attrgetter(looks["__qualname__"])(sys.modules[looks["__module__"]])
    except (AttributeError, KeyError):
        return None


def _is_same(found: Any, tool: FunctionTool[..., Any]) -> bool:
    """Return whether a tool that is bound anew is what this one is."""
    names = [each.name for each in fields(Tool) if each.name != "execute"]
    return isinstance(found, FunctionTool) and all(getattr(found, name) is getattr(tool, name) for name in names)
