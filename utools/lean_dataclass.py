"""dataclass: the standard library's for classes with slots, whose methods are written when they are first used. Pure.

Python 3.11 takes half a millisecond to write the methods of a class, and a command makes instances of one class in
three that it loads: they were a quarter of what it took to start. What the methods do is what the standard library's
do; `tests/tools/test_lean_dataclass.py` compares them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard_dataclass
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, Literal

Method = Callable[..., Any]
Write = Callable[[type[Any], bool], Method]


class _Factory:
    """Stands for a value that is made where none is given."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY: Final = _Factory()


def _write_init(cls: type[Any], frozen: bool) -> Method:
    """`__init__`: the fields in their order, those that are `kw_only` last."""
    every = fields(cls)
    taken = [each for each in every if each.init]
    positional, named = [each for each in taken if not each.kw_only], [each for each in taken if each.kw_only]
    parameters = ["self", *map(_parameter, positional), *(["*"] if named else []), *map(_parameter, named)]
    lines = [_assignment(each, frozen) for each in every if each.init or _has_default(each)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    values: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": FACTORY}
    values |= {f"_default_{each.name}": each.default for each in every}
    values |= {f"_make_{each.name}": each.default_factory for each in every}
    written = _compile(cls, "__init__", parameters, lines or ["pass"], values)
    written.__annotations__ = {**{each.name: each.type for each in taken}, "return": None}
    return written


def _parameter(field: "Field[Any]") -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_FACTORY"
    return field.name if field.default is MISSING else f"{field.name}=_default_{field.name}"


def _assignment(field: "Field[Any]", frozen: bool) -> str:
    name, value = field.name, field.name
    if not field.init:
        value = f"_default_{name}" if field.default_factory is MISSING else f"_make_{name}()"
    elif field.default_factory is not MISSING:
        value = f"_make_{name}() if {name} is _FACTORY else {name}"
    return f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"


def _has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _write_repr(cls: type[Any], frozen: bool) -> Method:
    shown = ", ".join(f"{each.name}={{self.{each.name}!r}}" for each in fields(cls) if each.repr)
    line = f'return self.__class__.__qualname__ + f"({shown})"'
    return recursive_repr("...")(_compile(cls, "__repr__", ["self"], [line]))


def _write_eq(cls: type[Any], frozen: bool) -> Method:
    compared = [each.name for each in fields(cls) if each.compare]
    same = f" return {_tuple('self', compared)} == {_tuple('other', compared)}"
    lines = ["if other.__class__ is self.__class__:", same, "return NotImplemented"]
    return _compile(cls, "__eq__", ["self", "other"], lines)


def _write_hash(cls: type[Any], frozen: bool) -> Method:
    hashed = [each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)]
    return _compile(cls, "__hash__", ["self"], [f"return hash({_tuple('self', hashed)})"])


def _tuple(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _compile(
    cls: type[Any], name: str, parameters: list[str], lines: list[str], values: dict[str, Any] | None = None
) -> Method:
    names = {"__name__": cls.__module__, **(values or {})}
    exec("\n".join([f"def {name}({', '.join(parameters)}):", *(f" {line}" for line in lines)]), names)
    written: Method = names[name]
    written.__qualname__ = f"{cls.__qualname__}.{name}"
    return written


class _Unwritten:
    """A method that is written when somebody looks for it, and stands in its class from then on."""

    __slots__ = ("_cls", "_frozen", "_name", "_write")

    def __init__(self, cls: type[Any], name: str, write: Write, frozen: bool) -> None:
        self._cls, self._name, self._write, self._frozen = cls, name, write, frozen

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        written: Any = self._write(self._cls, self._frozen)
        setattr(self._cls, self._name, written)
        return written.__get__(instance, owner)


WRITERS: Final[Mapping[str, Write]] = {"__init__": _write_init, "__repr__": _write_repr, "__eq__": _write_eq}


def _methods(cls: type[Any], defined: frozenset[str], frozen: bool, eq: bool) -> Iterator[tuple[str, Any]]:
    """Yield what a class gets that does not define it itself."""
    for name, write in WRITERS.items():
        if name not in defined and (eq or name != "__eq__"):
            yield name, _Unwritten(cls, name, write, frozen)
    if eq and "__hash__" not in defined:
        yield "__hash__", _Unwritten(cls, "__hash__", _write_hash, frozen) if frozen else None
    if frozen:
        yield from FROZEN.items()


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


FROZEN: Final[Mapping[str, Method]] = {
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
"""What all frozen classes share."""


def _make(cls: type[Any], *, slots: Literal[True], frozen: bool = False, eq: bool = True) -> type[Any]:
    defined = frozenset(vars(cls))
    if vars(cls).get("__hash__", MISSING) is None and "__eq__" in defined:
        defined -= {"__hash__"}  # Python's own, for a class that says when two are equal
    made = standard_dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    for name, method in _methods(made, defined, frozen, eq):
        setattr(made, name, method)
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(**options: bool) -> Callable[[type[Any]], type[Any]]:
        return partial(_make, **options)
