"""HostModels: the models of one host, what is known of them, and whether those of a workflow can be asked."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from agent_core.journal.record import Tape
from agent_core.models.apis import CHAT, NATIVE, is_installed
from agent_core.models.client import ClientOf, ModelClient, ModelInfoOf
from agent_core.models.named_endpoint import NamedEndpoint
from agent_core.models.providers import Providers
from agent_core.models.reach import ModelReach
from agent_core.models.targets import locate_refusal
from agent_core.models.vendors import VENDORS
from engine_shim.definition.errors import Problem
from engine_shim.definition.model import Definition
from engine_shim.definition.model_refs import model_refs
from engine_shim.errors import DefinitionError


class HowReached(TypedDict):
    """How a host's models are reached; see HostModels."""

    base_urls: Mapping[str, str | None]
    default_provider: str
    endpoints: Mapping[str, NamedEndpoint]
    home: Path


class HostModels:
    """`model` answers for every name; without it the providers do, as far as `reach` lets definitions name files and
    endpoints. Paths start from the definition's directory, those of the certificates of `endpoints` from `home`."""

    def __init__(
        self,
        model: ModelClient | None = None,
        *,
        base_urls: Mapping[str, str | None] | None = None,
        default_provider: str = "openai",
        endpoints: Mapping[str, NamedEndpoint] | None = None,
        home: Path = Path(),
        tape_of: Callable[[str], Tape] | None = None,
        reach: ModelReach | None = None,
    ) -> None:
        self._model, self._base_urls, self._default = model, base_urls or {}, default_provider
        self._endpoints, self._home = endpoints or {}, home
        self._tape_of = tape_of
        self._reach = reach if model is None else None
        self._providers: dict[Path, Providers] = {}

    def at(self, base: Path) -> ClientOf:
        """Return the clients, for a workflow in this directory."""
        model = self._model
        return self._at(base) if model is None else lambda *_: model

    def info(self, base: Path) -> ModelInfoOf:
        """Return what is known of a model, without a key."""
        model = self._model
        return self._at(base).info if model is None else lambda *_: model.info()

    def unaskable(self, definition: Definition, base: Path) -> Iterator[Problem]:
        """Yield the models that cannot be asked here, for want of a key too."""
        models = self.at(base)
        yield from _refusals(definition, lambda name, options: models(name, options))

    def problems(self, definition: Definition, base: Path) -> Iterator[Problem]:
        """Yield what is wrong with the models that a definition names, on a host that may lack their keys."""
        yield from _refusals(definition, self._at(base).check)

    def keyless(self, definition: Definition, base: Path) -> Iterator[Problem]:
        """Yield the models whose endpoint gets no key from this host, and may want one."""
        for where, name, options in model_refs(definition):
            with suppress(DefinitionError):  # that the model cannot be asked is reported as a problem
                providers = self._at(base)
                if reason := providers.explain_missing_key(name, options) or providers.explain_keyless(name, options):
                    yield Problem(where, reason)

    def is_priced(self, base: Path) -> Callable[[str, Mapping[str, Any]], bool]:
        """Return whether the price list has a model, by its name and the options it is reached by."""
        return self._at(base).is_priced

    async def warm_up(self) -> None:
        """Build what a first question to an endpoint needs, without asking one; nothing, where a model without an
        endpoint answers for every name."""
        from agent_core.models.endpoint.client import EndpointClient

        if self._model is None or isinstance(self._model, EndpointClient):
            from agent_core.models.endpoint.warm_up import warm_up_endpoints

            await warm_up_endpoints(self._find_packages() if self._model is None else ())

    def _find_packages(self) -> list[str]:
        """Return the SDKs of the vendors that this host asks by their own API, as far as its configuration shows: those
        of its own endpoints, of the default provider, and whose key is set."""
        named = {each.vendor_name for each in self._endpoints.values() if each.api != CHAT}
        keyed = {name for name in NATIVE if any(map(os.environ.get, VENDORS[name].keys))}
        asked = {self._default, *named, *keyed}
        return [each.package for name, each in NATIVE.items() if name in asked and is_installed(each.package)]

    async def close(self) -> None:
        """Close all connections of this event loop."""
        for providers in self._providers.values():
            await providers.close()

    def _at(self, base: Path) -> Providers:
        if base not in self._providers:
            own = self._endpoints, self._home, self._reach
            self._providers[base] = Providers(base, self._base_urls, self._default, *own, tape_of=self._tape_of)
        return self._providers[base]


def _refusals(definition: Definition, ask: Callable[[str, dict[str, Any]], object]) -> Iterator[Problem]:
    for where, name, options in model_refs(definition):
        try:
            ask(name, options)
        except DefinitionError as error:
            yield locate_refusal(error, where, options)
