"""A connection to PostgreSQL that notices when the server, or the network before it, is lost."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any, Final, NoReturn
from weakref import finalize, ref

import psycopg
from psycopg_pool import ConnectionPool

KEEPALIVE: Final = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""For libpq, in seconds and milliseconds: a network that carries nothing any more is noticed in half a minute."""
_GOING: Final = ("57P01", "57P02", "57P03", "53300", "25P03", "25006", "40001", "40P01")
"""It shuts down, crashed, starts, has no connection left, gave an idle transaction up, takes no writes since another
server does, or gave up one of two transactions that were in each other's way."""
_BRIEFLY: Final = (
    *("the database system is", "too many clients", "too many connections", "connection slots are reserved"),
    "terminating",
)
"""In a refusal to connect, which has no code."""

TAKES_WRITES: Final = "SELECT current_setting('transaction_read_only') = 'off'"
"""A replica takes none, nor does a server or a role that was set to read only."""
KEPT: Final = "-c agent_core.settings=kept"
"""An option of a session, from which one sees that the others were kept, too."""
_POOLER: Final = "a connection pooler before it keeps no settings of sessions; use the address of the server itself"
_NO_WRITES: Final = "it is a replica, or was set to read only; use the address of the server that takes writes"
_REFUSED: Final = ("unsupported startup parameter", "support command-line options")
"""By PgBouncer, and by the proxy of Amazon RDS."""


class Silent(psycopg.OperationalError):
    """A connection was given up on which nothing came any more."""


class Connection(psycopg.Connection[Any]):
    """A connection that is given up where a statement has no sign of life for `silence_s` seconds.

    A TCP connection may be half-open: what is between answers for a server that is gone. So `is_gone` is asked after
    `doubt_s` seconds of silence, once for each silence. `answered_at` is when it answered last.
    """

    silence_s = inf
    doubt_s = inf
    is_gone: Callable[[], bool] = staticmethod(lambda: False)
    answered_at = -inf

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        found = super().wait(self._within_silence(gen), *args, **options)
        self.answered_at = monotonic()
        return found

    def _within_silence(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        last, is_asked = monotonic(), False
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    last, is_asked = monotonic(), False
                elif monotonic() - last > self.silence_s:
                    self._give_up(last)
                elif not is_asked and monotonic() - last > self.doubt_s:
                    is_asked = True
                    if self.is_gone():
                        self._give_up(last)
                wanted = gen.send(ready)
        except StopIteration as stop:
            return stop.value

    def _give_up(self, last: float) -> NoReturn:
        self.pgconn.finish()
        raise Silent(f"the server gave no answer for {monotonic() - last:.1f} s")


@contextmanager
def closed_if_read_only(db: Connection) -> Iterator[None]:
    """Close a connection to a server that takes no writes: the next one may reach the server that does."""
    try:
        yield
    except psycopg.errors.ReadOnlySqlTransaction:
        db.close()
        raise


def close_with(owner: object, pool: "ConnectionPool[Connection]") -> "ConnectionPool[Connection]":
    """Close a pool when this process ends, if its owner is still there: its own end, which comes later, waits from
    Python 3.13 on for threads that run no more, and says so."""
    finalize(owner, _close, ref(pool), os.getpid())
    return pool


def _close(reference: "ref[ConnectionPool[Connection]]", process: int) -> None:
    if (pool := reference()) is not None and os.getpid() == process:
        pool.close()


def is_away(error: Exception) -> bool:
    """Return whether the server was lost or cannot be reached now, so that another try may help."""
    if not isinstance(error, psycopg.OperationalError | psycopg.errors.ReadOnlySqlTransaction):
        return False
    if error.sqlstate is not None:
        return error.sqlstate.startswith("08") or error.sqlstate in _GOING
    words = str(error)
    return "FATAL:" not in words or any(each in words for each in _BRIEFLY)


def check_settings(db: Connection) -> None:
    """Raise psycopg.NotSupportedError where the settings of a session were dropped: the schema of a tenant would be
    that of the host."""
    if db.execute("SELECT current_setting('agent_core.settings', true)").fetchone() != ("kept",):
        raise psycopg.NotSupportedError(f"our settings of the session were dropped: {_POOLER}")


def explain(error: Exception) -> str:
    """Return what an error says, in one line, and what to do where a pooler refused the settings of a session, or a
    server the writes."""
    why = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return f"{why}: {_NO_WRITES}"
    return f"{why}: {_POOLER}" if any(each in why for each in _REFUSED) else why
