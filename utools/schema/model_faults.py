"""What pydantic finds wrong with a value, in words for its author. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from utools.errors import DefinitionError
from utools.schema.faults import hint

Position = tuple[str | int, ...]
KnownKeys = Callable[[Position], Iterable[str]]
"""The keys that an object may have, by the position of one of them."""

TEXTS = {
    "string_type": "must be a text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length:,} items",
    "string_too_long": "must have at most {max_length:,} characters",
    "string_too_short": "must not be empty",
    "missing": "this key is required",
    "string_pattern_mismatch": "must match {pattern}",
    "union_tag_invalid": "must be {expected_tags}",
    "union_tag_not_found": "this key is required",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
}
"""Our words for a type of fault, or for a pattern; the fault's context fills them in."""
OURS = (("Value error, ", ""), ("Input should ", "must "))
"""How pydantic's text of any other fault begins, and how ours does."""
WITHOUT_VALUE = ("missing", "union_tag_not_found", "value_not_shown")
"""Faults whose text does not show the value: there is none, or it may be a secret, as any part of an object may."""
NOT_MADE = "default_factory_not_called"
"""A default that is made of other values, of which one is at fault, which is told itself."""


class ModelFault(NamedTuple):
    """One fault: its position as pydantic gives it, the value there, and what is wrong with it."""

    position: Position
    value: Any
    text: str


def keys_of(model: type[BaseModel]) -> KnownKeys:
    """Return the keys that a model and those within it take, by position."""

    def known_keys(position: Position) -> Iterable[str]:
        models = [model]
        for part in position[:-1]:
            fields = [each for one in models for name, each in one.model_fields.items() if part in (name, each.alias)]
            models = [inner for each in fields for inner in _models_in(each.annotation)] or models
        return [each.alias or name for one in models for name, each in one.model_fields.items()]

    return known_keys


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a value of this type is, or holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def find_model_faults(
    error: ValidationError, known_keys: KnownKeys, texts: Mapping[str, str] | None = None
) -> Iterator[ModelFault]:
    """Yield the faults of a value, in our words; `texts` are more of them, by type of fault."""
    for each in error.errors(include_url=False):
        if each["type"] == NOT_MADE:
            continue
        yield ModelFault(each["loc"], each["input"], explain_fault(each, known_keys, {**TEXTS, **(texts or {})}))


def explain_fault(fault: Any, known_keys: KnownKeys, texts: Mapping[str, str] = TEXTS) -> str:
    """Return what is wrong, with the value that is there, or the key that may be meant in place of an unknown one."""
    if fault["type"] == "extra_forbidden":
        return f"unknown key; {hint(str(fault['loc'][-1]), known_keys(fault['loc']))}"
    text = word_fault(fault, texts)
    is_whole_object = fault["type"] == "value_error" and isinstance(fault["input"], Mapping)
    if fault["type"] in WITHOUT_VALUE or is_whole_object:
        return text
    return str(DefinitionError(text, value=fault["input"]))


def _as_written(limit: Any) -> Any:
    """Return a limit as its author wrote it: 10000000, where pydantic has 10000000.0 of a number."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def word_fault(fault: Any, texts: Mapping[str, str] = TEXTS) -> str:
    """Return what is wrong, in our words: as `texts` have it by type, else pydantic's own with our beginning."""
    context = fault.get("ctx", {})
    if (named := texts.get(context.get("pattern", ""))) is not None:
        return named
    if fault["type"] == "string_type" and isinstance(fault["input"], int | float):
        return f"{texts['string_type']}; put it in quotes"
    if fault["type"] in texts:
        return texts[fault["type"]].format(**{key: _as_written(value) for key, value in context.items()})
    text: str = fault["msg"]
    for theirs, ours in OURS:
        text = f"{ours}{text.removeprefix(theirs)}" if text.startswith(theirs) else text
    return text
