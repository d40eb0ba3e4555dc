"""The end of a call's time, for a tool that works in a thread: nobody can stop it there but itself."""

from collections.abc import Callable
from time import monotonic

from utools.errors import ToolError
from utools.tool import ToolContext

Check = Callable[[], None]


def checking(context: ToolContext) -> Check:
    """Something to call now and then from here on: ToolError once the call's time is over, and its answer void."""
    if context.deadline_s is None:
        return lambda: None
    end = monotonic() + context.deadline_s

    def check() -> None:
        if monotonic() >= end:
            raise ToolError(f"not done within {context.deadline_s:g} seconds; ask for less")

    return check
