"""The deadline of a call, for a tool in a thread, which cannot be stopped from outside."""

from collections.abc import Callable
from time import monotonic

from utools.errors import ToolError
from utools.tool import ToolContext

Check = Callable[[], None]


def deadline_check(context: ToolContext) -> Check:
    """Return a function to call now and then: it raises ToolError once the time of the call is over."""
    if context.deadline_s is None:
        return lambda: None
    end = monotonic() + context.deadline_s

    def check() -> None:
        if monotonic() >= end:
            raise ToolError("not done within {seconds:g} seconds; ask for less", seconds=context.deadline_s)

    return check
