"""Whether a body is one that an SDK's request types describe, without a key that they do not have."""

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

OPEN = (Any, object)
KINDS = ("type", "role")
"""Keys whose value says which of several types an object is."""


def check(value: Any, kind: Any, where: str = "body") -> None:
    """AssertionError, which names the place, unless the value is of a type: a TypedDict, a union of them, …

    pydantic would read iterables only as they are iterated, and pass over unknown keys.
    """
    origin, of = get_origin(kind), get_args(kind)
    if kind in OPEN:
        return
    if origin in (Annotated, Required, NotRequired):
        check(value, of[0], where)
    elif origin in (Union, UnionType):
        _check_one_of(value, of, where)
    elif origin is Literal:
        assert value in of, f"{where}: {value!r} is none of {of}"
    elif is_typeddict(kind):
        _check_object(value, kind, where)
    elif origin in (dict, Mapping):
        assert isinstance(value, dict), f"{where}: {value!r} is no object"
        for key, each in value.items():
            check(each, of[1], f"{where}.{key}")
    elif origin is not None:
        assert issubclass(origin, Iterable) or origin.__name__ == "SequenceNotStr", f"{where}: {kind}"
        assert isinstance(value, list | tuple), f"{where}: {value!r} is no list"
        for index, each in enumerate(value):
            check(each, of[0], f"{where}[{index}]")
    else:
        numbers = (int, float) if kind is float else (kind,)
        assert type(value) in numbers, f"{where}: {value!r} is no {kind.__name__}"


def _check_object(value: Any, kind: Any, where: str) -> None:
    assert isinstance(value, dict), f"{where}: {value!r} is no object"
    hints = get_type_hints(kind, include_extras=True)
    open_keys = getattr(kind, "__pydantic_config__", {}).get("extra") == "allow"
    unknown = value.keys() - hints.keys()
    assert open_keys or not unknown, f"{where}: {kind.__name__} has no {sorted(unknown)}"
    missing = {name for name, hint in hints.items() if get_origin(hint) is Required} - value.keys()
    assert not missing, f"{where}: {kind.__name__} wants {sorted(missing)}"
    for name in hints.keys() & value.keys():
        check(value[name], hints[name], f"{where}.{name}")


def _check_one_of(value: Any, kinds: Sequence[Any], where: str) -> None:
    fitting = [each for each in kinds if _may_be(value, each)]
    assert fitting, f"{where}: {value!r} is none of {[getattr(each, '__name__', each) for each in kinds]}"
    faults = []
    for each in fitting:
        try:
            return check(value, each, where)
        except AssertionError as fault:
            faults.append(str(fault))
    raise AssertionError(" or ".join(faults))


def _may_be(value: Any, kind: Any) -> bool:
    """Return whether an object says of itself that it is of a type, so that its faults are told of that one alone."""
    if kind in (None, NoneType):
        return value is None
    if not is_typeddict(kind) or not isinstance(value, dict):
        return isinstance(value, dict) == (is_typeddict(kind) or get_origin(kind) in (dict, Union, UnionType))
    hints = get_type_hints(kind)
    literals = {name: get_args(hints[name]) for name in KINDS if get_origin(hints.get(name)) is Literal}
    return all(value.get(name) in allowed for name, allowed in literals.items() if name in value)
