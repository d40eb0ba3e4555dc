"""Targets: where a model is asked by its name, by which API, and with whose key."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from agent_core.errors import DefinitionError
from agent_core.models.abilities import find_abilities
from agent_core.models.apis import choose_api
from agent_core.models.endpoint.route import DIRECT, Route
from agent_core.models.named_endpoint import OFFLINE, NamedEndpoint
from agent_core.models.reach import ModelReach
from agent_core.models.vendors import VENDORS, Vendor, is_near, is_vendor_url, normalize_url, vendor_url
from utools.problems import Problem, message_of


class Target(NamedTuple):
    """Where one model is asked.

    `provider` is whose API it has, and `name` the model's own; `keys` are the variables whose keys may be sent to
    `url`: the first that is set is used. `vendor` is None for an endpoint that no table has, `endpoint` one of the
    host's own.
    """

    provider: str
    name: str
    url: str
    keys: Sequence[str]
    api: str
    vendor: Vendor | None
    endpoint: NamedEndpoint | None = None
    route: Route = DIRECT

    @property
    def key(self) -> str | None:
        return next(filter(None, map(os.environ.get, self.keys)), None)


@dataclass(frozen=True, slots=True)
class Targets:
    """The endpoints of one host. Relative paths start from `base`.

    `base_urls` pairs an endpoint with the environment variable of its key, as the operator allows it: a key is sent
    to its own vendor, or to an endpoint paired with it, and nowhere else. `endpoints` are those of the host's own, by
    name, whose files start from `home`. `reach` bounds the files and endpoints; without it, each may be named.
    """

    base: Path = field(default_factory=Path)
    base_urls: Mapping[str, str | None] = field(default_factory=dict)
    default_provider: str = "openai"
    endpoints: Mapping[str, NamedEndpoint] = field(default_factory=dict)
    home: Path = field(default_factory=Path)
    reach: ModelReach | None = None

    def split(self, model: str) -> tuple[str, str]:
        """Return what stands before the first colon of a model's name, and behind it. DefinitionError for what is
        neither a provider nor an endpoint."""
        if not isinstance(model, str):
            raise DefinitionError("must be a text, such as openai:gpt-4o-mini", where="model", value=model)
        provider, colon, name = model.partition(":")
        if not colon:
            provider, name = self.default_provider, model
        if provider not in VENDORS and provider not in OFFLINE and provider not in self.endpoints:
            raise DefinitionError(self._explain_unknown(provider), where="model", value=model)
        check_named(provider, name, model)
        return provider, name

    def locate(self, model: str, options: Mapping[str, Any]) -> Target:
        """Return where a model is that is behind an endpoint, whether or not it may be asked."""
        provider, name = self.split(model)
        if (endpoint := self.endpoints.get(provider)) is not None:
            own = tuple(filter(None, [endpoint.api_key_env]))
            api = choose_api(endpoint.vendor_name, options.get("api") or endpoint.api, is_own=False)
            return Target(endpoint.vendor_name, name, endpoint.url_of(name), own, api, endpoint.vendor, endpoint)
        vendor = VENDORS[provider]
        url = options.get("base_url") or vendor_url(vendor, os.environ)
        keys = self._keys_of(vendor, url)
        api = choose_api(provider, options.get("api") or None, is_own=normalize_url(url) in vendor.urls)
        return Target(provider, name, url, keys, api, vendor_at(provider, url))

    def find(self, model: str, options: Mapping[str, Any]) -> Target:
        """Return where a model is asked that is behind an endpoint. DefinitionError for one that may not be, or not
        with these options."""
        target = self.locate(model, options)
        if self.reach is not None:
            self.reach.check_extra(options.get("extra") or {})
        _check_reasoning(target, options.get("reasoning"))
        if target.endpoint is not None:
            return self._open_named(target, model, options)
        if self.reach is not None:
            self.reach.check_endpoint(target.url, is_chosen=bool(options.get("base_url")))
        variable = options.get("api_key_env")
        if not variable:
            return target
        if variable not in target.keys:
            message = "this key may not be sent to this base_url; the operator pairs them in base_urls"
            raise DefinitionError(message, where="api_key_env", value=variable)
        return target._replace(keys=(variable,))

    def find_keyless(self, target: Target, *, is_named: bool) -> str | None:
        """Return why an endpoint that may want a key gets none; None for one that gets a key, or that is in one's own
        network, paired with none and with none `is_named`.

        A vendor's own endpoint is not among them: without its key, no client is made for it.
        """
        if target.endpoint is not None or target.key or normalize_url(target.url) in VENDORS[target.provider].urls:
            return None
        if is_near(target.url) and not (is_named or self._paired().get(normalize_url(target.url))):
            return None
        return f"no key is sent to {target.url}: {explain_missing(target.keys)}"

    def find_missing_key(self, target: Target) -> str | None:
        """Return why a model cannot be asked from here: a key is not set that its vendor, or the host's own endpoint,
        wants. None where none is missing."""
        if target.endpoint is not None:
            missing = target.endpoint.missing
            return f"its endpoint needs what is not set: {', '.join(missing)}" if missing else None
        vendor = VENDORS[target.provider]
        if target.key or not vendor.needs_key or normalize_url(target.url) not in vendor.urls:
            return None
        return f"the model needs a key: set {' or '.join(target.keys)}"

    def _open_named(self, target: Target, model: str, options: Mapping[str, Any]) -> Target:
        """Return a target at an endpoint of the host's own, with the way to it."""
        name, endpoint = self.split(model)[0], target.endpoint
        assert endpoint is not None
        if self.reach is not None:
            self.reach.check_name(name)
        for option in ("base_url", "api_key_env"):
            if options.get(option):
                message = f"the endpoint {name} has its own; leave {option} out"
                raise DefinitionError(message, where=option, value=options[option])
        endpoint.check_model(name, target.name)
        try:
            return target._replace(route=endpoint.open_route(self.home, f"endpoints/{name}"))
        except DefinitionError as error:  # a fault of the host's configuration, whichever model is asked there
            raise DefinitionError(str(error), where="model") from None

    def _keys_of(self, vendor: Vendor, url: str) -> Sequence[str]:
        """Return the variables whose keys may be sent to a URL."""
        paired = self._paired()
        if normalize_url(url) in paired:
            return tuple(filter(None, (paired[normalize_url(url)],)))
        return vendor.keys if is_vendor_url(vendor, url, os.environ) else ()

    def _paired(self) -> dict[str, str | None]:
        """Return the endpoints that the operator has paired with a key, each with its variable; None for one
        without."""
        return {normalize_url(endpoint): variable for endpoint, variable in self.base_urls.items()}

    def _explain_unknown(self, provider: str) -> str:
        names = [*VENDORS, *(f"{name}:{what}" for name, what in OFFLINE.items()), *self.endpoints]
        message = f"no such provider: {provider}; there are {', '.join(names)}"
        other = "For any other endpoint write openai:NAME with its base_url; a bare name must contain no colon"
        return f"{message}. {other}"


def _check_reasoning(target: Target, level: Any) -> None:
    """DefinitionError where a model is asked to think that is known not to."""
    if level in (None, "none") or target.vendor is None:
        return
    if find_abilities(target.provider, target.name, target.api).reasoning is False:
        message = f"{target.name} does not think before it replies; leave reasoning out, or choose a model that does"
        raise DefinitionError(message, where="reasoning", value=level)


def vendor_at(provider: str, url: str) -> Vendor | None:
    """Return the vendor of an endpoint. `openai` is also the name for any other endpoint of that protocol."""
    vendor = VENDORS[provider]
    return None if provider == "openai" and normalize_url(url) not in vendor.urls else vendor


def check_named(provider: str, name: str, model: str) -> None:
    """DefinitionError for a model without a name behind its provider."""
    if not name.strip():
        message = f"names no model; write {provider}:{OFFLINE.get(provider, 'NAME')}"
        raise DefinitionError(message, where="model", value=model)


def locate_refusal(error: DefinitionError, where: str, options: Mapping[str, Any]) -> Problem:
    """Return why a model cannot be asked that is named at `where`, such as `config/model`, with the place of the option
    beside it that the error is about."""
    is_about_option = options.get(error.where.partition("/")[0])
    return Problem(f"{where.removesuffix('model')}{error.where}" if is_about_option else where, message_of(error))


def explain_missing(names: Sequence[str]) -> str:
    """Return why no key is sent, where these variables could have held one."""
    if not names:
        return "base_urls of the host's configuration pairs it with none"
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set"
