"""Values of options and arguments that have their type already are taken as they are: typer loads pydantic for each.

That is most of what a command that lists or shows something has to load: without it, `agent-core runs` takes a third
less. The names with an underscore are typer's own; `tests/engine/cli/test_startup.py` notices if they change.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from typer._coercion import RuntimeParam, build_runtime_param
from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer.core import TyperOption


class Command(TyperCommand):
    """A command that takes such values as they are."""

    def get_params(self, ctx: Any) -> Any:
        return take_as_given(super().get_params(ctx))


def take_as_given(params: Sequence[Any]) -> Sequence[Any]:
    """Return options and arguments that take values as they are which have their type already."""
    for each in params:
        option = cast("TyperOption", each)  # or an argument, which is read alike
        described = option.type_descriptor
        option._runtime_param = _AsGiven(described.parameter_info, described.annotation)
    return params


class _AsGiven(RuntimeParam):
    """Reads a value: one that has its type already, or is one of the words to choose from, stays as it is."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = self.annotation
        if (kind in (str, int, bool) and type(value) is kind) or (type(value) is str and value in get_args(kind)):
            return value
        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)
