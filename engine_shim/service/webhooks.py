"""Webhooks: tells those whom the operator names of runs that wait and end."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from urllib.parse import urlsplit

import httpx2

from agent_core.errors import JournalError
from agent_core.outputs import Json
from agent_core.statuses import RunStatus
from engine_shim.errors import RunNotFound
from engine_shim.host.config import HostConfig
from engine_shim.host.notifications import WebhookConfig
from engine_shim.service.callbacks import CallbackSender
from engine_shim.service.deliveries import COLLECTED, Delivery
from engine_shim.service.event_sender import TIMEOUT_S, EventSender, Source
from engine_shim.service.run_view import RunView
from engine_shim.service.secrets import read_secret


class WebhookSender(EventSender):
    """Tells one webhook what happens to the runs of one tenant, by the clock of its store. `number` counts those of its
    URL, each of which is told by itself. DefinitionError for a secret that is not set."""

    def __init__(
        self, hook: WebhookConfig, where: str, source: Source, *, number: int = 0, timeout: float = TIMEOUT_S
    ) -> None:
        known = f"{hook.url}\n{number}" if number else hook.url
        name, secret = sha256(known.encode()).hexdigest()[:16], read_secret(hook.secret_env, where)
        super().__init__(source, name, secret, timeout)
        self._hook = hook

    def _begin(self) -> None:
        self._deliveries.begin()

    def _collect(self) -> bool:
        return self._deliveries.collect(self._is_wanted) == COLLECTED

    def _is_wanted(self, run: str, status: RunStatus) -> bool:
        if status not in self._hook.statuses:
            return False
        try:
            workflow = self._source.view(run).workflow or ""
        except RunNotFound:  # it is gone, or another host's
            return False
        except JournalError:
            return self._hook.workflows == ["*"]
        return any(fnmatchcase(workflow, glob) for glob in self._hook.workflows)

    def _describe(self, delivery: Delivery, view: RunView) -> Json:
        return self._with_links(delivery, view, "webhook") if self._hook.decision_links else view.as_json()

    async def _post(
        self, client: httpx2.AsyncClient, delivery: Delivery, headers: Mapping[str, str], body: bytes
    ) -> int:
        answer = await client.send(
            client.build_request("POST", self._hook.url, content=body, headers=headers), stream=True
        )
        await answer.aclose()
        return answer.status_code

    def _name(self, delivery: Delivery) -> str:
        """Return the host alone: with many services the rest of the URL is the secret."""
        return f"the webhook to {urlsplit(self._hook.url).hostname}"


def open_senders(config: HostConfig, source: Source) -> list[EventSender]:
    """Return the senders of a host or tenant. DefinitionError for a secret that is not set."""
    senders: list[EventSender] = []
    urls = [hook.url for hook in config.webhooks]
    for at, hook in enumerate(config.webhooks):
        number = urls[:at].count(hook.url)
        senders.append(WebhookSender(hook, config.at(f"webhooks/{at}/secret_env"), source, number=number))
    if config.callbacks is not None:
        senders.append(CallbackSender(config.callbacks, config.at("callbacks/secret_env"), source))
    return senders
