"""Values of options and arguments that have their type already are taken as they are: typer loads pydantic for each.

That is most of what a command that lists or shows something has to load: without it, `agent-core runs` takes a third
less. A version of typer that has its own names otherwise reads all values its own way;
`tests/engine/cli/test_startup.py` notices.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer.core import TyperOption


class Command(TyperCommand):
    """A command that takes such values as they are."""

    def get_params(self, ctx: Any) -> Any:
        return take_as_given(super().get_params(ctx))


def take_as_given(params: Sequence[Any]) -> Sequence[Any]:
    """Return options and arguments that take values as they are which have their type already."""
    try:
        from engine_shim.cli.as_given import AsGiven

        for each in params:
            option = cast("TyperOption", each)  # or an argument, which is read alike
            described = option.type_descriptor
            option._runtime_param = AsGiven(described.parameter_info, described.annotation)
    except (ImportError, AttributeError, TypeError):  # another version of typer
        pass
    return params
