"""Callbacks: tells the caller of a run when it waits and ends, at the URL that the caller named for it."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from agent_core.outputs import Json
from agent_core.run.blocking import run_blocking
from engine_shim.errors import DefinitionError
from engine_shim.host.notifications import CallbackConfig
from engine_shim.service.deliveries import Delivery
from engine_shim.service.event_sender import TIMEOUT_S, EventSender, Source
from engine_shim.service.run_view import RunView
from engine_shim.service.secrets import read_secret
from engine_shim.store.callbacks import HOOK, RunCallback, read_callback, replace_callback, save_callback
from engine_shim.store.run_store import DatabaseRunStore
from utools.errors import NetworkError
from utools.net.transport import fetch

WHERE = "callback_url"


@dataclass(frozen=True, slots=True)
class Callback:
    """The URL at which the caller of a run wants to be told of it."""

    store: DatabaseRunStore
    target: RunCallback

    def note(self, run: str) -> None:
        """Keep it for a run that is about to begin."""
        save_callback(self.store.contents, run, self.target)

    def replace(self, run: str, by: str) -> None:
        """Keep it for a run that has begun, in place of another one. DefinitionError if another caller began the
        run."""
        if self.store.submitter(run) != by:
            raise DefinitionError("the run of this key is another caller's, who alone is told of it", where=WHERE)
        replace_callback(self.store.contents, run, self.target, self.store.clock.read())


def check_callback(config: CallbackConfig | None, url: str) -> None:
    """DefinitionError for a URL that the host does not call."""
    if config is None:
        message = (
            "this host calls no URL of a caller; `callbacks` of its configuration names the hosts that it may call"
        )
        raise DefinitionError(message, where=WHERE)
    try:
        config.open_guard().for_token(url)
    except NetworkError as error:
        raise DefinitionError(str(error), where=WHERE) from None


class CallbackSender(EventSender):
    """Tells the callers of one tenant's runs, each at its own URL. DefinitionError for a secret that is not set.

    A URL comes from a caller: it is checked anew at each attempt, and so is each address that is connected to.
    """

    at_once = 100  # they have receivers of their own, some of which may hang

    def __init__(self, config: CallbackConfig, where: str, source: Source, *, timeout: float = TIMEOUT_S) -> None:
        super().__init__(source, HOOK, read_secret(config.secret_env, where), timeout)
        self._has_links, self._guard = config.decision_links, config.open_guard()

    def _begin(self) -> None:
        """Nothing: each event of a run with a callback makes its delivery."""

    def _collect(self) -> bool:
        return False

    def _describe(self, delivery: Delivery, view: RunView) -> Json:
        callback = self._find(delivery) if self._has_links else None
        if callback is None or not callback.decides:
            return view.as_json()
        return self._with_links(delivery, view, view.submitted_by or "callback")

    async def _post(
        self, client: httpx2.AsyncClient, delivery: Delivery, headers: Mapping[str, str], body: bytes
    ) -> int | None:
        callback = await run_blocking(self._source.database, self._find, delivery)
        if callback is None:  # the run was deleted meanwhile
            return None
        guard = self._guard.for_token(callback.url)
        answer = await fetch(guard, "POST", callback.url, headers=headers, content=body, limit=0, redirects=0)
        return answer.status

    def _find(self, delivery: Delivery) -> RunCallback | None:
        return read_callback(self._source.store.contents, delivery.run)

    def _name(self, delivery: Delivery) -> str:
        return "the callback"
