"""Event loops that wait for PostgreSQL themselves, in place of a thread of the database."""

import asyncio
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from utools.databases.postgres_database import PostgresDatabase


def watch_event_loops(patched: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each use of a database in an event loop is added, by the functions that led to it."""
    found: list[str] = []

    def watch(name: str) -> Callable[..., Any]:
        method = getattr(PostgresDatabase, name)

        def watched(self: PostgresDatabase, *args: Any, **kwargs: Any) -> Any:
            with suppress(RuntimeError):
                asyncio.get_running_loop()
                own = [each for each in traceback.extract_stack()[:-1] if "/site-packages/" not in each.filename]
                found.append(" > ".join(f"{Path(each.filename).name}:{each.name}" for each in own[-7:]))
            return method(self, *args, **kwargs)

        return watched

    for name in ("select", "writing", "snapshot"):
        patched.setattr(PostgresDatabase, name, watch(name))
    return found
