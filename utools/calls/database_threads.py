"""DatabaseThreads: what blocks on a PostgreSQL database, in threads, with its errors as tools have them."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from utools.errors import DatabaseAway, DatabaseError, ToolError
from utools.threads import DaemonThreads

THREADS: Final = 8
T = TypeVar("T")


class DatabaseThreads:
    """A few threads for one store; several event loops may share them."""

    def __init__(self) -> None:
        self._threads = DaemonThreads(THREADS)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """`function(*args)` in a thread. ToolError for what is wrong with the database, transient while it is away."""
        try:
            return await self._threads.run(function, *args)
        except DatabaseError as error:
            is_away = isinstance(error, DatabaseAway)
            raise ToolError(
                "the database of this host cannot be used: {error}", error=str(error), transient=is_away
            ) from error


def encode(text: str) -> bytes:
    """Any text as bytes: PostgreSQL's own texts have neither NUL nor half surrogates."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """Return the text of bytes from `encode`."""
    return data.decode("utf-8", "surrogatepass")
