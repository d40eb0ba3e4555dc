"""RunTrigger: wakes a task once its run need wait no more, without a worker."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from agent_core.journal.store import Journal
from agent_core.run.arguments import journal_at
from engine_shim.plugins.airflow.attempts import waits_for_else
from engine_shim.plugins.airflow.hooks import AgentStoreHook


class RunTrigger(BaseTrigger):  # type: ignore[misc,unused-ignore]
    """Looks into the store every `interval` seconds, and fires once something else waits in the run than `waiting`, as
    (strand, n), its records cannot be read any more, or it is `until`, a time in ISO 8601. A store that is away is
    looked into again."""

    def __init__(
        self,
        run_id: str,
        waiting: Sequence[Sequence[Any]],
        interval: float,
        store_conn_id: str | None = None,
        journal: str | None = None,
        until: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.run_id, self.waiting, self.interval = run_id, [list(each) for each in waiting], interval
        self.store_conn_id, self.journal, self.until = store_conn_id, journal, until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments, as Airflow keeps them."""
        names = ("run_id", "waiting", "interval", "store_conn_id", "journal", "until")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, once the run need wait no more."""
        journal = await sync_to_async(open_store)(self.store_conn_id, self.journal)
        due = None if self.until is None else datetime.fromisoformat(self.until)
        await asyncio.sleep(self.interval)  # Airflow fails a task that goes on before its executor told that it rests
        while not await self._is_awake(journal, due):  # noqa: ASYNC110  # other processes write the journal
            await asyncio.sleep(self.interval)
        yield TriggerEvent({"run_id": self.run_id})  # type: ignore[no-untyped-call,unused-ignore]

    async def _is_awake(self, journal: Journal, due: datetime | None) -> bool:
        if due is not None and datetime.now(UTC) >= due:
            return True
        return await waits_for_else(self.run_id, self.waiting, journal, self.log)


def open_store(store_conn_id: str | None, journal: str | None) -> Journal:
    """Return the journal that an operator names: by a connection, or by a file's path or URL."""
    return journal_at(journal) if journal is not None else AgentStoreHook(store_conn_id or "").get_conn()
