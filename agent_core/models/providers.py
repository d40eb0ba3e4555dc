"""Providers: the client for a model's name: a vendor's endpoint, a script, a recorded run, a local model."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent_core.errors import DefinitionError
from agent_core.models.apis import CHAT, choose_api, find_lacking, install_of, make_wire
from agent_core.models.client import ModelClient, ModelInfo
from agent_core.models.gguf import read_context_length
from agent_core.models.prices import cost
from agent_core.models.reach import ModelReach
from agent_core.models.scripted import ScriptedModel
from agent_core.models.vendors import (
    VENDORS,
    Vendor,
    is_near,
    is_vendor_url,
    model_info,
    normalize_url,
    vendor_url,
)
from utools.files.protected_paths import protect

if TYPE_CHECKING:
    from agent_core.journal.record import Tape

OFFLINE = {"scripted": "FILE.json", "replay": "RUN", "local": "FILE.gguf"}
"""The providers without an endpoint, and what follows their colon."""
Api = Literal["chat", "native"]
MAX_CLIENTS = 256
"""Clients that a process keeps; one that was not used for longest is made anew."""


@dataclass(frozen=True, slots=True)
class Providers:
    """The clients of one host; those of endpoints are the process's. Relative paths of scripts and models start from
    `base`.

    `base_urls` pairs an endpoint with the environment variable of its key, as the operator allows it: a key is sent
    to its own vendor, or to an endpoint paired with it, and nowhere else. `tape_of` gives a recorded run of the host's
    store, an empty tape where there is none. `reach` bounds the files and endpoints; without it, each may be named.
    """

    base: Path = field(default_factory=Path)
    base_urls: Mapping[str, str | None] = field(default_factory=dict)
    default_provider: str = "openai"
    clients: dict[tuple[str, ...], ModelClient] = field(default_factory=dict)
    tape_of: "Callable[[str], Tape] | None" = None
    reach: ModelReach | None = None

    def __call__(self, model: str, options: Mapping[str, Any]) -> ModelClient:
        """Return the client for `provider:name`; DefinitionError for what `check` finds, or a missing key."""
        provider, name = self._split(model)
        if options.get("extra"):
            self._check_extra(options["extra"])
        key = (provider, name, *(options.get(option) or "" for option in ("base_url", "api_key_env", "api")))
        if key not in self.clients:
            self.clients[key] = self._make(*key)
        return self.clients[key]

    def check(self, model: str, options: Mapping[str, Any]) -> None:
        """DefinitionError for an unknown provider, a missing or invalid file, and a forbidden base_url or key.

        No key is read, so the check works on a machine without keys.
        """
        provider, name = self._split(model)
        if provider == "local":
            read_context_length(self._model_file(name))
        elif provider in OFFLINE:
            self._offline(provider, name)
        else:
            from agent_core.models.endpoint.client import EndpointClient

            self._check_extra(options.get("extra") or {})
            url, _ = self._endpoint(provider, options.get("base_url") or "", options.get("api_key_env") or "")
            EndpointClient(
                name, make_wire(self._api(provider, url, options.get("api")), None), base_url=url, api_key=None
            )

    def explain_keyless(self, model: str, options: Mapping[str, Any]) -> str | None:
        """Return why an endpoint that may want a key gets none; None for one that gets a key, or that is in one's own
        network and paired with none.

        A vendor's own endpoint is not among them: without its key, no client is made for it.
        """
        provider, _ = self._split(model)
        if provider in OFFLINE:
            return None
        url, names = self._endpoint(provider, options.get("base_url") or "", options.get("api_key_env") or "")
        if any(map(os.environ.get, names)) or normalize_url(url) in VENDORS[provider].urls:
            return None
        if is_near(url) and not (options.get("api_key_env") or self._paired().get(normalize_url(url))):
            return None
        return f"no key is sent to {url}: {_explain_missing(names)}"

    def explain_missing_key(self, model: str, options: Mapping[str, Any]) -> str | None:
        """Return why the model's own vendor cannot be asked from here: its key is not set. None where no key is
        missing."""
        provider, _ = self._split(model)
        if provider in OFFLINE:
            return None
        url, names = self._endpoint(provider, options.get("base_url") or "", options.get("api_key_env") or "")
        vendor = VENDORS[provider]
        if any(map(os.environ.get, names)) or not vendor.needs_key or normalize_url(url) not in vendor.urls:
            return None
        return f"the model needs a key: set {' or '.join(names)}"

    def key_variables(self, model: str, options: Mapping[str, Any]) -> Sequence[str]:
        """Return the variables whose keys may be sent to the model's endpoint; the first that is set is used."""
        provider, _ = self._split(model)
        if provider in OFFLINE:
            return ()
        return self._endpoint(provider, options.get("base_url") or "", options.get("api_key_env") or "")[1]

    def info(self, model: str, options: Mapping[str, Any]) -> ModelInfo:
        """Return what is known of a model without asking it, and without a key: nothing behind an endpoint of one's
        own."""
        provider, name = self._split(model)
        if provider in OFFLINE:
            return self._offline(provider, name).info()
        url = self._url(provider, options)
        api = self._api(provider, url, options.get("api"))
        return replace(model_info(_vendor_at(provider, url), name), api=api)

    def explain_api(self, model: str, options: Mapping[str, Any]) -> str | None:
        """Return what to install so that a model is asked by its vendor's own API; None where nothing is lacking."""
        provider, _ = self._split(model)
        if provider in OFFLINE or options.get("api"):
            return None
        lacking = find_lacking(provider, self.info(model, options).api or CHAT)
        return None if lacking is None else f"{install_of(lacking)} has it asked by its vendor's own API"

    def is_priced(self, model: str, options: Mapping[str, Any]) -> bool:
        """Return whether the price of a reply is known; scripts and recorded runs give their own."""
        provider, name = self._split(model)
        if provider in OFFLINE:
            return provider != "local"
        vendor = _vendor_at(provider, self._url(provider, options))
        return vendor is not None and cost(vendor.prices, name, 1, 0, 1) is not None

    async def close(self) -> None:
        """Close all clients' connections in this event loop, once what is under way was answered.

        A later question opens new ones.
        """
        for client in self.clients.values():
            await client.close()

    def _split(self, model: str) -> tuple[str, str]:
        provider, colon, name = model.partition(":")
        if not colon:
            provider, name = self.default_provider, model
        if provider not in VENDORS and provider not in OFFLINE:
            raise DefinitionError(_explain_unknown(provider), where="model", value=model)
        return provider, name

    def _url(self, provider: str, options: Mapping[str, Any]) -> str:
        """Return the base URL that the options name, else the vendor's."""
        return options.get("base_url") or vendor_url(VENDORS[provider], os.environ)

    def _api(self, provider: str, url: str, asked: str | None) -> str:
        return choose_api(provider, asked, is_own=normalize_url(url) in VENDORS[provider].urls)

    def _check_extra(self, extra: Mapping[str, Any]) -> None:
        if self.reach is not None:
            self.reach.check_extra(extra)

    def _make(self, provider: str, name: str, base_url: str, api_key_env: str, api: str) -> ModelClient:
        if provider in OFFLINE:
            return self._offline(provider, name)
        url, names = self._endpoint(provider, base_url, api_key_env)
        key = next(filter(None, map(os.environ.get, names)), None)
        if missing := self.explain_missing_key(
            f"{provider}:{name}", {"base_url": base_url, "api_key_env": api_key_env}
        ):
            raise DefinitionError(missing, where="model")
        spoken = self._api(provider, url, api or None)
        return shared_client(name, url, key, _vendor_at(provider, url), _explain_missing(names), spoken)

    def _offline(self, provider: str, name: str) -> ModelClient:
        if provider == "scripted":
            return ScriptedModel.from_file(self._file("scripted", name))
        if provider == "local":
            from agent_core.models.local import local_model

            return local_model(self._model_file(name))
        key = (provider, name)
        if key not in self.clients:  # it is read once: a host checks its models where it may wait, and asks them later
            self.clients[key] = self._recorded(name)
        return self.clients[key]

    def _recorded(self, name: str) -> ModelClient:
        from agent_core.models.recorded import RecordedModel

        if tape := self.tape_of(name) if self.tape_of else {}:
            return RecordedModel(tape, name=f"replay:{name}")
        if (path := self._file("replay", name)).is_file():
            return RecordedModel.from_file(path)
        message = "there is no such recorded run; name a run of the store, or the file of a journal"
        raise DefinitionError(message, where="model", value=f"replay:{name}")

    def _model_file(self, name: str) -> Path:
        path = self._file("local", name)
        if not path.is_file():
            raise DefinitionError("there is no such model file", where="model", value=f"local:{name}")
        return path

    def _file(self, provider: str, name: str) -> Path:
        """Return the file that a model's name leads to, which no tool writes from now on."""
        path = self.base / name
        if self.reach is not None:
            path = self.reach.find_file(path, f"{provider}:{name}")
        protect(path)
        return path

    def _endpoint(self, provider: str, base_url: str, api_key_env: str) -> tuple[str, Sequence[str]]:
        """Return the model's base URL, and the variables whose keys may be sent there; the first that is set is
        used."""
        vendor = VENDORS[provider]
        url = base_url or vendor_url(vendor, os.environ)
        if self.reach is not None:
            self.reach.check_endpoint(url, is_chosen=bool(base_url))
        paired = self._paired()
        names: Sequence[str] = vendor.keys if is_vendor_url(vendor, url, os.environ) else ()
        if normalize_url(url) in paired:
            names = tuple(filter(None, (paired[normalize_url(url)],)))
        if not api_key_env:
            return url, names
        if api_key_env not in names:
            message = "this key may not be sent to this base_url; the operator pairs them in base_urls"
            raise DefinitionError(message, where="api_key_env", value=api_key_env)
        return url, (api_key_env,)

    def _paired(self) -> dict[str, str | None]:
        """Return the endpoints that the operator has paired with a key, each with its variable; None for one
        without."""
        return {normalize_url(endpoint): variable for endpoint, variable in self.base_urls.items()}


def create_model(
    model: str, *, base_url: str | None = None, api_key: str | None = None, api: Api | None = None
) -> ModelClient:
    """Return a client for `provider:name`. An `api_key` is sent to `base_url`, which the caller answers for.

    `api` says how the model is spoken to: `chat` completions, or its vendor's own (`native`); without it natively where
    that can be, else by chat completions.

    The same model, endpoint and key give the same client, in the whole process.
    """
    if api_key is None:
        return Providers()(model, {"base_url": base_url, "api": api})
    provider, colon, name = model.partition(":")
    if not colon or provider not in VENDORS:
        provider, name = "openai", model
    url = base_url or VENDORS[provider].urls[0]
    spoken = choose_api(provider, api, is_own=normalize_url(url) in VENDORS[provider].urls)
    return shared_client(name, url, api_key, _vendor_at(provider, url), "", spoken)


@lru_cache(maxsize=MAX_CLIENTS)
def shared_client(name: str, url: str, key: str | None, vendor: Vendor | None, keyless: str, api: str) -> ModelClient:
    """Return the process's client of one model at one endpoint with one key: it keeps connections, and what was
    learnt."""
    from agent_core.models.endpoint.client import EndpointClient

    return EndpointClient(name, make_wire(api, vendor), base_url=url, api_key=key, vendor=vendor, keyless=keyless)


def _vendor_at(provider: str, url: str) -> Vendor | None:
    """Return the vendor of an endpoint. `openai` is also the name for any other endpoint of that protocol."""
    vendor = VENDORS[provider]
    return None if provider == "openai" and normalize_url(url) not in vendor.urls else vendor


def _explain_missing(names: Sequence[str]) -> str:
    """Return why no key is sent, where these variables could have held one."""
    if not names:
        return "base_urls of the host's configuration pairs it with none"
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set"


def _explain_unknown(provider: str) -> str:
    names = [*VENDORS, *(f"{name}:{what}" for name, what in OFFLINE.items())]
    message = f"no such provider: {provider}; there are {', '.join(names)}"
    return f"{message}. For any other endpoint write openai:NAME with its base_url; a bare name must contain no colon"
