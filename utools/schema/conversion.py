"""The JSON of what is no plain JSON: pydantic's conversions, and those of rows, mappings and arrays."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from utools.schema.json_value import NotJson


def convert(value: Any, pointer: str) -> Any:
    """Return a list, an object, a text or a number that stands for `value`; NotJson if nothing does.

    What it gives may itself hold what is not JSON: too large a number, NaN.
    """
    name = type(value).__name__
    if isinstance(value, Iterator):  # it may never end, or run more of the tool
        raise NotJson("type", pointer, type=name)
    try:
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json", fallback=_convert_unknown)
        return to_jsonable_python(value, by_alias=False, fallback=_convert_unknown)
    except NotJson:
        raise NotJson("type", pointer, type=name) from None
    except Exception as error:  # the author's own code runs here, and its text may hold anything
        raise NotJson("conversion", pointer, type=name, error=type(error).__name__) from None


def _convert_unknown(value: Any) -> Any:
    """Return what pydantic does not know: a mapping, such as sqlite3.Row, and an array or number of an array
    library."""
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118 - a row iterates over its values
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotJson("type", type=type(value).__name__)
