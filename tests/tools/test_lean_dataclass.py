"""dataclass of ours: the same classes as the standard library's, whose methods are written when they are needed."""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from dataclasses import dataclass as standard
from typing import Any

import pytest

from utools.lean_dataclass import dataclass as lean

Make = Callable[..., Any]
OPTIONS: list[dict[str, Any]] = [
    {"frozen": True, "slots": True},
    {"slots": True},
    {"slots": True, "eq": False},
]
METHODS = ("__init__", "__repr__", "__eq__", "__hash__")


def shapes(make: Make) -> dict[str, Any]:
    """Return classes of every shape that the packages have, made by one of both."""

    @make
    class Empty:
        """Nothing."""

    @make
    class Plain:
        """Two values, and one that is not compared and not shown."""

        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list, compare=False, repr=False)

    @make
    class Named:
        """One that is given by name, and comes before another."""

        a: int = field(default=1, kw_only=True)
        b: int

    @make
    class Counted:
        """Values that nobody gives."""

        a: int
        b: int = field(init=False, default=7)
        c: list[int] = field(init=False, default_factory=list)

    @make
    class Hashed:
        """One value is not hashed, though compared."""

        a: int
        b: list[int] = field(default_factory=list, hash=False)

    @make
    class Checked:
        """It looks at what it was given, and says itself when two are equal and how it is shown."""

        a: int

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError(self.a)

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "checked"

    @make
    class Inner:
        """The class that the next is made of."""

        a: int

    @make
    class Outer(Inner):
        """A value beside those of its class."""

        b: int = 2

    return {cls.__name__: cls for cls in (Empty, Plain, Named, Counted, Hashed, Checked, Inner, Outer)}


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Empty", (), {}),
    ("Empty", (1,), {}),
    ("Plain", (1,), {}),
    ("Plain", (1, "x", [2]), {}),
    ("Plain", (), {"b": "x"}),
    ("Plain", (1,), {"d": 2}),
    ("Named", (2,), {}),
    ("Named", (2,), {"a": 3}),
    ("Named", (2, 3), {}),
    ("Counted", (1,), {}),
    ("Counted", (1, 2), {}),
    ("Hashed", (1,), {}),
    ("Hashed", (1, [2]), {}),
    ("Checked", (1,), {}),
    ("Checked", (-1,), {}),
    ("Inner", (1,), {}),
    ("Outer", (1,), {}),
    ("Outer", (1, 3), {}),
]


def attempt(act: Callable[[], Any]) -> Any:
    """Return what an act gives, or the error that it raises."""
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def behaviour(cls: Any, given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Return all that can be seen of an instance."""
    made = attempt(lambda: cls(*given, **named))
    if isinstance(made, tuple):
        return [made]
    acts: list[Callable[[], Any]] = [
        lambda: repr(made),
        lambda: made == cls(*given, **named),
        lambda: made == object(),
        lambda: cls.__hash__ is None or (hash(made) == hash(made), hash(made) == hash(cls(*given, **named))),
        lambda: asdict(made),
        lambda: repr(replace(made)),
        lambda: repr(copy.copy(made)),
        lambda: repr(copy.deepcopy(made)),
        lambda: setattr(made, "a", 9) if fields(made) else None,
        lambda: delattr(made, "a") if fields(made) else None,
        lambda: hasattr(made, "__dict__"),
    ]
    return [attempt(act) for act in acts]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("name", "given", "named"), CALLS)
def test_instances_behave_as_the_standard_librarys(
    options: dict[str, Any], name: str, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, theirs = shapes(lean(**options))[name], shapes(standard(**options))[name]
    assert behaviour(ours, given, named) == behaviour(theirs, given, named)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_look_as_the_standard_librarys(options: dict[str, Any]) -> None:
    ours, theirs = shapes(lean(**options)), shapes(standard(**options))
    for name, cls in ours.items():
        other = theirs[name]
        assert str(inspect.signature(cls)) == str(inspect.signature(other))
        assert [each.name for each in fields(cls)] == [each.name for each in fields(other)]
        assert cls.__match_args__ == other.__match_args__
        assert cls.__doc__ == other.__doc__
        assert cls.__init__.__qualname__ == other.__init__.__qualname__
        assert (cls.__hash__ is None) == (other.__hash__ is None)


@lean(frozen=True, slots=True)
class Kept:
    """One that is pickled."""

    a: int
    b: str = "b"


def test_an_instance_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


def test_a_method_is_written_when_it_is_used_and_no_sooner() -> None:
    cls = shapes(lean(frozen=True, slots=True))["Plain"]
    kinds = {name: type(vars(cls)[name]).__name__ for name in METHODS}
    assert set(kinds.values()) == {"_Unwritten"}
    cls(1)
    assert [name for name in METHODS if type(vars(cls)[name]).__name__ == "function"] == ["__init__"]
    assert cls(1) == cls(1)
    assert type(vars(cls)["__repr__"]).__name__ == "_Unwritten"


def test_a_frozen_instance_stays_as_it_is() -> None:
    for name in ("a", "other"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(Kept(1), name, 2)
