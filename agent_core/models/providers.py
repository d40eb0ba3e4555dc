"""Providers: the client for a model's name: a vendor's endpoint, a script, a recorded run, a local model."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent_core.errors import DefinitionError
from agent_core.models.abilities import find_abilities
from agent_core.models.apis import choose_api, find_lacking, install_of, make_wire
from agent_core.models.client import ModelClient, ModelInfo
from agent_core.models.endpoint.route import CONNECT_SECONDS, DIRECT, Route, check_header
from agent_core.models.gguf import read_context_length
from agent_core.models.named_endpoint import OFFLINE
from agent_core.models.prices import cost
from agent_core.models.scripted import ScriptedModel
from agent_core.models.targets import Target, Targets, check_named, explain_missing, vendor_at
from agent_core.models.vendors import VENDORS, Vendor, model_info, normalize_url
from utools.files.protected_paths import protect

if TYPE_CHECKING:
    import httpx2

    from agent_core.journal.record import Tape

Api = Literal["chat", "native"]
MAX_CLIENTS = 256
"""Clients that a process keeps; one that was not used for longest is made anew."""
OF_CLIENT = ("base_url", "api_key_env", "api")
"""The options that make a client another one."""


@dataclass(frozen=True, slots=True)
class Providers(Targets):
    """The clients of one host; those of endpoints are the process's. Relative paths of scripts and models start from
    `base`.

    `tape_of` gives a recorded run of the host's store, an empty tape where there is none; see `Targets` for the others.
    """

    clients: dict[tuple[str, ...], ModelClient] = field(default_factory=dict)
    tape_of: "Callable[[str], Tape] | None" = None

    def __call__(self, model: str, options: Mapping[str, Any]) -> ModelClient:
        """Return the client for `provider:name`; DefinitionError for what `check` finds, or a missing key."""
        if self.reach is not None and options.get("extra"):
            self.reach.check_extra(options["extra"])
        key = (model, *[options.get(option) or "" for option in OF_CLIENT])
        if key not in self.clients:
            self.clients[key] = self._make(model, options)
        return self.clients[key]

    def check(self, model: str, options: Mapping[str, Any]) -> None:
        """DefinitionError for an unknown provider, a missing or invalid file, and a forbidden base_url or key.

        No key is read, so the check works on a machine without keys.
        """
        provider, name = self.split(model)
        if provider == "local":
            read_context_length(self._model_file(name))
        elif provider in OFFLINE:
            self._offline(provider, name)
        else:
            from agent_core.models.endpoint.client import EndpointClient

            target = self.find(model, options)
            EndpointClient(name, make_wire(target.api, None), base_url=target.url, api_key=None)

    def explain_keyless(self, model: str, options: Mapping[str, Any]) -> str | None:
        """Return why an endpoint that may want a key gets none; see `find_keyless`."""
        is_named = bool(options.get("api_key_env"))
        return None if self._is_offline(model) else self.find_keyless(self.find(model, options), is_named=is_named)

    def explain_missing_key(self, model: str, options: Mapping[str, Any]) -> str | None:
        """Return why a model cannot be asked from here; see `find_missing_key`."""
        return None if self._is_offline(model) else self.find_missing_key(self.find(model, options))

    def key_variables(self, model: str, options: Mapping[str, Any]) -> Sequence[str]:
        """Return the variables whose keys may be sent to the model's endpoint; the first that is set is used."""
        return () if self._is_offline(model) else self.find(model, options).keys

    def info(self, model: str, options: Mapping[str, Any]) -> ModelInfo:
        """Return what is known of a model without asking it, and without a key: nothing behind an endpoint of one's
        own."""
        if self._is_offline(model):
            return self._offline(*self.split(model)).info()
        target = self.locate(model, options)
        info = replace(model_info(target.vendor, target.name), api=target.api)
        if target.vendor is None:
            return info
        able = find_abilities(target.provider, target.name, target.api)
        return replace(info, reasoning=able.reasoning, vision=able.vision, caching=able.caching)

    def explain_api(self, model: str, options: Mapping[str, Any]) -> str | None:
        """Return what to install so that a model is asked by its vendor's own API; None where nothing is lacking."""
        if self._is_offline(model) or options.get("api"):
            return None
        target = self.locate(model, options)
        if target.endpoint is not None and target.endpoint.api:
            return None
        lacking = find_lacking(target.provider, target.api)
        return None if lacking is None else f"{install_of(lacking)} has it asked by its vendor's own API"

    def is_priced(self, model: str, options: Mapping[str, Any]) -> bool:
        """Return whether the price of a reply is known; scripts and recorded runs give their own."""
        if self._is_offline(model):
            return self.split(model)[0] != "local"
        target = self.locate(model, options)
        return target.vendor is not None and cost(target.vendor.prices, target.name, 1, 0, 1) is not None

    async def close(self) -> None:
        """Close all clients' connections in this event loop, once what is under way was answered.

        A later question opens new ones.
        """
        for client in self.clients.values():
            await client.close()

    def _is_offline(self, model: str) -> bool:
        return self.split(model)[0] in OFFLINE

    def _make(self, model: str, options: Mapping[str, Any]) -> ModelClient:
        provider, name = self.split(model)
        if provider in OFFLINE:
            return self._offline(provider, name)
        target = self.find(model, options)
        if missing := self.find_missing_key(target):
            raise DefinitionError(missing, where="model")
        return find_client(target)

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


def create_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api: Api | None = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    proxy: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    client_cert: str | os.PathLike[str] | None = None,
    client_key: str | os.PathLike[str] | None = None,
    connect_timeout: float = CONNECT_SECONDS,
    read_timeout: float | None = None,
    max_connections: int | None = None,
    http_client: "httpx2.AsyncClient | None" = None,
) -> ModelClient:
    """Return a client for `provider:name`. An `api_key` is sent to `base_url`, which the caller answers for.

    `api` says how the model is asked: by `chat` completions, or by its vendor's own API (`native`); without it natively
    where that can be. `headers` and `query` go with each request; no message shows the headers' values. `proxy` is a
    URL, or `none` whatever the environment says. `ca`, `client_cert` and `client_key` are files in PEM. Times are in
    seconds: `read_timeout` is the longest silence within an answer. An `http_client` of one's own has its proxy,
    certificates and times itself, is of one event loop, and is closed by the caller. The same arguments give the same
    client, in the whole process. Raises DefinitionError for a name, a file or a proxy that cannot be used, and for a
    key that is not set.
    """
    route = Route(
        secret_headers=tuple((name, check_header(name, value, "headers")) for name, value in (headers or {}).items()),
        query=tuple((query or {}).items()),
        proxy=proxy,
        ca=None if ca is None else Path(ca),
        client_cert=None if client_cert is None else Path(client_cert),
        client_key=None if client_key is None else Path(client_key),
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_connections=max_connections,
        client=http_client,
    )
    route = DIRECT if route == DIRECT else route
    route.check()
    if api_key is None:
        providers, options = Providers(), {"base_url": base_url, "api": api}
        if route is DIRECT or providers.split(model)[0] in OFFLINE:
            return providers(model, options)
        target = providers.find(model, options)
        if missing := providers.find_missing_key(target):
            raise DefinitionError(missing, where="model")
        return find_client(target._replace(route=route))
    provider, colon, name = model.partition(":")
    if not colon or provider not in VENDORS:
        provider, name = "openai", model
    check_named(provider, name, model)
    url = base_url or VENDORS[provider].urls[0]
    spoken = choose_api(provider, api, is_own=normalize_url(url) in VENDORS[provider].urls)
    return find_client(Target(provider, name, url, (), spoken, vendor_at(provider, url), route=route), api_key)


def find_client(target: Target, key: str | None = None) -> ModelClient:
    """Return the process's client of one model at one endpoint with one key, that of the environment unless it is
    given: it keeps connections, and what was learnt."""
    named = target.endpoint
    keyless = "" if key else explain_missing(target.keys) if named is None or target.keys else named.keyless
    given = target.name, target.url, key or target.key, target.vendor, keyless, target.api, target.route
    return shared_client(*given)


@lru_cache(maxsize=MAX_CLIENTS)
def shared_client(
    name: str, url: str, key: str | None, vendor: Vendor | None, keyless: str, api: str, route: Route
) -> ModelClient:
    from agent_core.models.endpoint.client import EndpointClient

    is_own = vendor is not None and normalize_url(url) in vendor.urls
    wire = make_wire(api, vendor, is_own=is_own)
    return EndpointClient(name, wire, base_url=url, api_key=key, vendor=vendor, keyless=keyless, route=route)
