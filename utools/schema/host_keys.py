"""HostKeys: keys of a host's configuration, of which a list or an object may have no value yet. Pure."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

NO_VALUE: Final = "has no value: say which, or leave the key out for all of them"


class HostKeys(BaseModel):
    """A list or an object without a value, as YAML has it of `env:`, is as if its key was left out. Those of `bounds`
    are refused: without them all is allowed, which whoever leaves one empty may not mean."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    bounds: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        empty = {name for name, each in cls.model_fields.items() if _is_empty(each.default)} - {*cls.bounds}
        return {key: value for key, value in data.items() if value is not None or key not in empty}

    @field_validator("*", mode="before")
    @classmethod
    def _check_bounds(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None and info.field_name in cls.bounds:
            raise PydanticCustomError("value_not_shown", NO_VALUE)
        return value


def _is_empty(default: Any) -> bool:
    """Return whether a key that is left out is an empty list or object, or one of whose keys none is set."""
    return default in ([], {}) or isinstance(default, BaseModel)
