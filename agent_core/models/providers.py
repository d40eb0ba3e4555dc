"""Which client answers for a model's name: `scripted:FILE`, or any endpoint that speaks OpenAI's chat completions."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_core.errors import DefinitionError
from agent_core.models.client import ModelClient
from agent_core.models.scripted import ScriptedModel

OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Providers:
    """The clients of one host, each made once. `base` is where the paths of scripts start.

    `base_urls` pairs an endpoint with the environment variable of its key, as the operator allows it: a key is
    sent to its own vendor, or to an endpoint paired with it, and nowhere else.
    """

    base: Path = field(default_factory=Path)
    base_urls: Mapping[str, str] = field(default_factory=dict)
    default_provider: str = "openai"
    clients: dict[tuple[str, ...], ModelClient] = field(default_factory=dict)

    def __call__(self, model: str, options: Mapping[str, Any]) -> ModelClient:
        """The client for `provider:name`; DefinitionError for a provider that there is not, or a missing key."""
        provider, name = self._split(model)
        key = (provider, name, options.get("base_url") or "", options.get("api_key_env") or "")
        if key not in self.clients:
            self.clients[key] = self._make(provider, name, key[2], key[3])
        return self.clients[key]

    async def close(self) -> None:
        """Let go of all clients' connections in this event loop; a later question opens new ones."""
        for client in self.clients.values():
            await client.close()

    def _split(self, model: str) -> tuple[str, str]:
        provider, colon, name = model.partition(":")
        return (provider, name) if colon else (self.default_provider, model)

    def _make(self, provider: str, name: str, base_url: str, api_key_env: str) -> ModelClient:
        if provider == "scripted":
            return ScriptedModel.from_file(self.base / name)
        if provider != "openai":
            told = "no such provider; there are openai (any endpoint by base_url) and scripted"
            raise DefinitionError(told, where="model", value=f"{provider}:{name}")
        from agent_core.models.openai_compatible import OpenAICompatible

        url = base_url or _own_url()
        return OpenAICompatible(name, base_url=url, api_key=self._key(url, api_key_env))

    def _key(self, url: str, api_key_env: str) -> str | None:
        """The key that may be sent to `url`; None for an endpoint that none is paired with."""
        paired = {_plain(endpoint): variable for endpoint, variable in self.base_urls.items()}
        own = "OPENAI_API_KEY" if _plain(url) in (OPENAI, _plain(_own_url())) else None
        name = paired.get(_plain(url), own)
        if api_key_env and api_key_env != name:
            told = "this key may not be sent to this base_url; the operator pairs them in base_urls"
            raise DefinitionError(told, where="api_key_env", value=api_key_env)
        key = os.environ.get(name) if name else None
        if not key and _plain(url) == OPENAI:
            raise DefinitionError(f"the model needs a key: set {name}", where="model")
        return key


def create_model(model: str, *, base_url: str | None = None, api_key: str | None = None) -> ModelClient:
    """A client for `provider:name`; with `api_key`, that key is sent to `base_url`, which the caller vouches for."""
    if api_key is None:
        return Providers()(model, {"base_url": base_url})
    from agent_core.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(model.removeprefix("openai:"), base_url=base_url or OPENAI, api_key=api_key)


def _own_url() -> str:
    return os.environ.get("OPENAI_BASE_URL") or OPENAI


def _plain(url: str) -> str:
    return url.rstrip("/")
