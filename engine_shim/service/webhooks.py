"""Webhooks: tells those whom the operator names of runs that wait and end, signed as Standard Webhooks says."""

import asyncio
import logging
import os
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Final, TypeVar

import httpx2
import orjson
from standardwebhooks import Webhook

from agent_core.errors import JournalError
from agent_core.outputs import Json
from agent_core.run.blocking import run_blocking
from agent_core.statuses import RunStatus
from engine_shim.errors import DefinitionError, RunNotFound
from engine_shim.host.config import HostConfig, WebhookConfig
from engine_shim.intervals import WEBHOOK_INTERVAL_S
from engine_shim.service.deliveries import Deliveries, Delivery
from engine_shim.service.run_view import RunView
from engine_shim.store.database import Database
from utools.words.text import error_words

TIMEOUT_S: Final = 10.0
MAX_OUTPUTS: Final = 256 * 1024
"""Bytes of a run's outputs that are told; of larger ones, only that they are left out."""
PREFIX: Final = "whsec_"
View = Callable[[str], RunView]
T = TypeVar("T")
log = logging.getLogger("engine_shim")


class WebhookSender:
    """Tells one webhook what happens to the runs of one tenant, by the clock of its store. DefinitionError for a secret
    that is not set.

    `outcomes` counts the attempts by what came of them.
    """

    def __init__(
        self,
        hook: WebhookConfig,
        where: str,
        database: Database,
        view: View,
        *,
        clock: Callable[[], float],
        timeout: float = TIMEOUT_S,
    ) -> None:
        self._hook, self._view, self._clock, self._timeout = hook, view, clock, timeout
        self._signer = Webhook(read_secret(hook.secret_env, where))
        self._database = database
        self.outcomes = Counter({"delivered": 0, "postponed": 0, "given_up": 0})
        self._deliveries = Deliveries(database, sha256(hook.url.encode()).hexdigest()[:16], clock)

    async def run_forever(self) -> None:
        """Send due deliveries until cancelled."""
        await run_blocking(self._database, self._deliveries.begin)
        async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client:
            while True:
                if not await self.send_due(client):
                    await asyncio.sleep(WEBHOOK_INTERVAL_S)

    async def send_due(self, client: httpx2.AsyncClient) -> int:
        """Tell what is due; gives how much that was."""
        await run_blocking(self._database, self._deliveries.collect, self._is_wanted)
        due = await run_blocking(self._database, self._deliveries.claim)
        await asyncio.gather(*(self._send(client, delivery) for delivery in due))
        return len(due)

    def _is_wanted(self, run: str, status: RunStatus) -> bool:
        if status not in self._hook.statuses:
            return False
        try:
            workflow = self._view(run).workflow or ""
        except RunNotFound:  # it is gone, or another host's
            return False
        except JournalError:
            return self._hook.workflows == ["*"]
        return any(fnmatchcase(workflow, glob) for glob in self._hook.workflows)

    async def _send(self, client: httpx2.AsyncClient, delivery: Delivery) -> None:
        try:
            problem = await self._post(client, delivery)
        except RunNotFound:
            problem = None
        except Exception as error:  # a run that cannot be read must not keep the others from being told
            problem = error_words(error)
        if problem is None:
            await run_blocking(self._database, self._deliveries.finish, delivery.event)
            self.outcomes["delivered"] += 1
        elif await run_blocking(self._database, self._deliveries.postpone, delivery):
            self.outcomes["postponed"] += 1
            log.warning(
                "webhook %s %s; the delivery for run %s is sent again later", self._hook.url, problem, delivery.run
            )
        else:
            self.outcomes["given_up"] += 1
            log.error("webhook %s %s; the delivery for run %s (%s) is given up", *self._given_up(problem, delivery))

    async def _post(self, client: httpx2.AsyncClient, delivery: Delivery) -> str | None:
        """Return what is wrong with the answer, of which the status alone counts; None where it was taken."""
        view = await run_blocking(self._database, self._view, delivery.run)
        body = orjson.dumps(_describe(delivery, view))
        request = client.build_request("POST", self._hook.url, content=body, headers=self._sign(delivery, body))
        async with asyncio.timeout(self._timeout):  # all in all: each byte of an answer may come just in time
            answer = await client.send(request, stream=True)
            await answer.aclose()
        return None if answer.is_success else f"answered {answer.status_code}"

    def _given_up(self, problem: str, delivery: Delivery) -> tuple[str, str, str, str]:
        return self._hook.url, problem, delivery.run, delivery.status

    def _sign(self, delivery: Delivery, body: bytes) -> dict[str, str]:
        now = datetime.fromtimestamp(int(self._clock()), UTC)
        identity = f"{delivery.run}.{delivery.event}"
        return {
            "content-type": "application/json",
            "webhook-id": identity,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(identity, now, body.decode()),
        }


def open_senders(config: HostConfig, database: Database, view: View, clock: Callable[[], float]) -> list[WebhookSender]:
    """Return the senders of a host or tenant. DefinitionError for a secret that is not set."""
    return [
        WebhookSender(hook, config.at(f"webhooks/{at}/secret_env"), database, view, clock=clock)
        for at, hook in enumerate(config.webhooks)
    ]


def read_secret(variable: str, where: str) -> bytes:
    """Return the key in a variable: `whsec_` and base64, or a text that is taken as it is. DefinitionError without
    one."""
    text = os.environ.get(variable, "")
    if not text:
        told = f"{variable} is not set: set it, or put {variable}=… into .env beside the configuration"
        raise DefinitionError(told, where=where)
    if not text.startswith(PREFIX):
        return text.encode()
    try:
        return b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise DefinitionError("holds no base64 after whsec_", where=where, value=variable) from None


def _describe(delivery: Delivery, view: RunView) -> Json:
    """Return what is told of an event: the run's status then, and the run as it is now."""
    data = {**view.as_json(), "status": delivery.status}
    if len(orjson.dumps(data["outputs"])) > MAX_OUTPUTS:
        data["outputs"] = None
    return {"type": f"run.{delivery.status}", "timestamp": delivery.at.isoformat(), "data": data}
