"""EventSender: tells a receiver what happens to runs, signed as Standard Webhooks says, until the receiver takes it."""

import asyncio
import logging
from abc import ABC, abstractmethod
from asyncio import TaskGroup
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx2
import orjson
from standardwebhooks import Webhook

from agent_core.errors import JournalError
from agent_core.outputs import Json
from agent_core.run.blocking import run_blocking
from engine_shim.errors import RunNotFound
from engine_shim.intervals import WEBHOOK_INTERVAL_S
from engine_shim.service.decision_links import DecisionLinks
from engine_shim.service.deliveries import AT_ONCE, Deliveries, Delivery
from engine_shim.service.run_view import RunView
from engine_shim.store.database import Database
from engine_shim.store.run_store import DatabaseRunStore
from utools.words.text import error_words

TIMEOUT_S: Final = 10.0
MAX_OUTPUTS: Final = 256 * 1024
"""Bytes of a run's outputs that are told; of larger ones, only that they are left out."""
View = Callable[[str], RunView]
Clock = Callable[[], float]
log = logging.getLogger("engine_shim")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the events of a tenant's runs are, the clock of their store, and the links that decide about calls."""

    store: DatabaseRunStore
    view: View
    clock: Clock
    links: DecisionLinks | None = None
    tenant: str | None = None

    @property
    def database(self) -> Database:
        return self.store.database


class EventSender(ABC):
    """Sends the deliveries of one hook, up to `at_once` together. `outcomes` counts the attempts by what came of
    them."""

    at_once = AT_ONCE

    def __init__(self, source: Source, hook: str, secret: bytes, timeout: float) -> None:
        self._source, self._timeout, self._signer = source, timeout, Webhook(secret)
        self.outcomes = Counter({"delivered": 0, "postponed": 0, "given_up": 0})
        self._deliveries = Deliveries(source.database, hook, source.clock)
        self._under_way = 0

    async def run_forever(self) -> None:
        """Send due deliveries until cancelled. Raises what the store does."""
        await run_blocking(self._source.database, self._begin)
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client, TaskGroup() as sending:
                while True:
                    if not await self.send_due(client, sending):
                        await asyncio.sleep(WEBHOOK_INTERVAL_S)
        except ExceptionGroup as group:  # a server counts, and logs in a line, that its store is away
            raise group.exceptions[-1] from None

    async def send_due(self, client: httpx2.AsyncClient, sending: TaskGroup) -> int:
        """Begin to tell what is due, while no more than `at_once` are under way; gives how much that was. None waits
        for another one, whose receiver may hang."""
        has_more = True
        while has_more:
            has_more = await run_blocking(self._source.database, self._collect)
            await asyncio.sleep(0)
        room = self.at_once - self._under_way
        due = await run_blocking(self._source.database, self._deliveries.claim, room) if room else []
        for delivery in due:
            self._under_way += 1
            sending.create_task(self._send(client, delivery)).add_done_callback(self._count_end)
        return len(due)

    def _count_end(self, sent: object) -> None:
        self._under_way -= 1

    @abstractmethod
    def _begin(self) -> None:
        """Begin to collect events."""

    @abstractmethod
    def _collect(self) -> bool:
        """Make deliveries of the events since the last time; whether there may be more of them."""

    @abstractmethod
    def _describe(self, delivery: Delivery, view: RunView) -> Json:
        """Return what is told of a run in an event."""

    @abstractmethod
    async def _post(
        self, client: httpx2.AsyncClient, delivery: Delivery, headers: Mapping[str, str], body: bytes
    ) -> int | None:
        """Return the status that the receiver answers, of whose answer nothing else counts; None without a receiver."""

    @abstractmethod
    def _name(self, delivery: Delivery) -> str:
        """Return who is told, for the log."""

    async def _send(self, client: httpx2.AsyncClient, delivery: Delivery) -> None:
        try:
            await self._send_and_note(client, delivery)
        except JournalError as error:  # it stays claimed for a while, and is due again
            log.warning(
                "%s: what became of run %s's delivery is not noted: %s", self._name(delivery), delivery.run, error
            )

    async def _send_and_note(self, client: httpx2.AsyncClient, delivery: Delivery) -> None:
        try:
            problem = await self._try(client, delivery)
        except RunNotFound:
            problem = None
        except Exception as error:  # a run that cannot be read must not keep the others from being told
            problem = error_words(error)
        if problem is None:
            await run_blocking(self._source.database, self._deliveries.finish, delivery)
            self.outcomes["delivered"] += 1
            return
        name, run = self._name(delivery), delivery.run
        if await run_blocking(self._source.database, self._deliveries.postpone, delivery):
            self.outcomes["postponed"] += 1
            log.warning("%s %s; the delivery for run %s is sent again later", name, problem, run)
        else:
            self.outcomes["given_up"] += 1
            log.error("%s %s; the delivery for run %s (%s) is given up", name, problem, run, delivery.status)

    async def _try(self, client: httpx2.AsyncClient, delivery: Delivery) -> str | None:
        """Return what is wrong with the answer; None where the delivery was taken."""
        body = await run_blocking(self._source.database, self._write, delivery)
        async with asyncio.timeout(self._timeout):  # all in all: each byte of an answer may come just in time
            status = await self._post(client, delivery, self._sign(delivery, body), body)
        return None if status is None or 200 <= status < 300 else f"answered {status}"

    def _write(self, delivery: Delivery) -> bytes:
        """Return what is told of an event: the run's status then, and the run as it is now."""
        data = {**self._describe(delivery, self._source.view(delivery.run)), "status": delivery.status}
        if len(orjson.dumps(data["outputs"])) > MAX_OUTPUTS:
            data["outputs"] = None
        return orjson.dumps({"type": f"run.{delivery.status}", "timestamp": delivery.at.isoformat(), "data": data})

    def _with_links(self, delivery: Delivery, view: RunView, by: str) -> Json:
        """Return a run whose waiting calls come with links, which a repeated delivery has as well."""
        links, data = self._source.links, view.as_json()
        if links is None:
            return data
        expires = int(delivery.at.timestamp()) + links.lifetime
        return {**data, "waiting": links.add_to(view.waiting, view.run_id, expires, by, self._source.tenant)}

    def _sign(self, delivery: Delivery, body: bytes) -> dict[str, str]:
        now = datetime.fromtimestamp(int(self._source.clock()), UTC)
        identity = f"{delivery.run}.{delivery.event}"
        return {
            "content-type": "application/json",
            "webhook-id": identity,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(identity, now, body.decode()),
        }
