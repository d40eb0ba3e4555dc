"""AsGiven: a value of the command line that is taken as it is. The names with an underscore are typer's own."""

from typing import Any, get_args

from typer._coercion import RuntimeParam, build_runtime_param


class AsGiven(RuntimeParam):
    """Reads a value: one that has its type already, or is one of the words to choose from, stays as it is."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = self.annotation
        if (kind in (str, int, bool) and type(value) is kind) or (type(value) is str and value in get_args(kind)):
            return value
        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)
