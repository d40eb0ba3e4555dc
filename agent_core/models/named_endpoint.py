"""NamedEndpoint: an endpoint of a host's own, by whose name its models are asked: `gateway:gpt-4.1`."""

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from agent_core.errors import DefinitionError
from agent_core.models.endpoint.address import read_host
from agent_core.models.endpoint.route import CONNECT_SECONDS, Pairs, Route, check_header
from agent_core.models.vendors import VENDORS, Vendor
from utools.schema.host_keys import HostKeys
from utools.sources.headers import Headers

AZURE: Final = "azure"
AZURE_KEY, VERSION = "api-key", "api-version"
"""Azure's header of the key, and the parameter by which an endpoint has a path for each deployment."""
PROVIDERS: Final = (*VENDORS, AZURE)
OFFLINE: Final = {"scripted": "FILE.json", "replay": "RUN", "local": "FILE.gguf"}
"""The providers without an endpoint, and what follows their colon."""
Seconds = Annotated[float, Field(gt=0, le=3600)]
VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
Variable = Annotated[str, StringConstraints(pattern=VARIABLE)]


def check_name(name: str) -> str:
    """Return the name of an endpoint; ValueError for one that a vendor or another kind of model has."""
    if name in PROVIDERS or name in OFFLINE:
        raise ValueError(f"{name!r} is a name that models have already; choose another one")
    return name


EndpointName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$"), AfterValidator(check_name)]


def _check_url(url: str) -> str:
    try:
        read_host(url)
    except DefinitionError as error:
        raise ValueError(error.message) from None
    return url


class NamedEndpoint(HostKeys, BaseModel):
    """Where an endpoint is and how it is reached.

    `provider` is whose API, habits and prices it has; without one it has chat completions and no prices. `api` is how
    it is asked (`chat` completions, or the provider's own), and `models` are globs of the models that it may be asked
    for. Its key is in the variable `api_key_env`, and is sent in the provider's header or in `key_header`. `headers`
    and `query` go with each request, and so do `secret_headers`, each with the variable of its value. `proxy` is a URL,
    or `none` whatever the environment says. `ca`, `client_cert` and `client_key` are files in PEM, from the directory
    of the configuration. Times are in seconds: `read_timeout` is the longest silence within an answer.
    `max_connections` are the requests at once, in one event loop, whichever of its models they ask. At `azure` a model
    is a deployment; with a date as the `api-version` in `query` each has a path of its own.
    """

    bounds: ClassVar = ("models",)

    url: Annotated[str, AfterValidator(_check_url)]
    provider: (
        Literal["openai", "gemini", "anthropic", "qwen", "deepseek", "openrouter", "ollama", "vllm", "azure"] | None
    ) = None
    api: Literal["chat", "native"] | None = None
    models: Annotated[list[str], Field(min_length=1)] = ["*"]
    api_key_env: Variable | None = None
    key_header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]+$")] | None = None
    headers: Headers = {}
    secret_headers: Headers = {}
    query: dict[str, str] = {}
    proxy: Annotated[str, StringConstraints(min_length=1)] | None = None
    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    connect_timeout: Seconds = CONNECT_SECONDS
    read_timeout: Seconds | None = None
    max_connections: Annotated[int, Field(ge=1, le=10_000)] | None = None

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """ValueError for keys that say nothing without another one."""
        if self.key_header and not self.api_key_env:
            raise ValueError("key_header names the header of a key: give the variable of the key as api_key_env")
        if self.client_key and not self.client_cert:
            raise ValueError("client_key is the key of a certificate: give its file as client_cert")
        if self.provider == AZURE and self.api == "native" and self._has_deployments:
            raise ValueError("api: native is at Azure's v1 API alone: leave api-version out of query")
        return self

    @property
    def _has_deployments(self) -> bool:
        """Whether each model has a path of its own at Azure: with the versions that are dates."""
        return self.provider == AZURE and self.query.get(VERSION, "")[:1].isdigit()

    @property
    def keyless(self) -> str:
        """Why no key is sent to it, where it may want one."""
        return "" if self.api_key_env or self.secret_headers else "the endpoint has no api_key_env"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment whose values are sent to it."""
        return (*filter(None, [self.api_key_env]), *self.secret_headers.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of them that are not set."""
        return tuple(name for name in self.variables if not os.environ.get(name))

    @property
    def vendor_name(self) -> str:
        """Whose API it has: Azure's is OpenAI's."""
        return "openai" if self.provider in (AZURE, None) else self.provider

    @property
    def vendor(self) -> Vendor | None:
        """Whose habits and prices it has; None where nobody is named."""
        return None if self.provider is None else VENDORS[self.vendor_name]

    def url_of(self, model: str) -> str:
        """Return the base URL for a model: at Azure, of its deployment where `query` has an api-version."""
        base = self.url.rstrip("/")
        if self.provider != AZURE:
            return base
        base = re.sub(r"/openai(/v1)?\Z", "", base)  # as Azure's pages show it
        return f"{base}/openai/deployments/{quote(model, safe='')}" if self._has_deployments else f"{base}/openai/v1"

    def check_model(self, name: str, model: str) -> None:
        """DefinitionError for a model that it may not be asked for; `name` is the endpoint's."""
        if not any(fnmatchcase(model, glob) for glob in self.models):
            message = f"the endpoint {name} is not asked for this model, only for {', '.join(self.models)}"
            raise DefinitionError(message, where="model", value=f"{name}:{model}")

    def open_route(self, base: Path, where: str) -> Route:
        """Return the way to it. Paths start from `base`; `where` is its place. DefinitionError for files that cannot
        be used, and a proxy that cannot be."""
        given = ((header, os.environ.get(name, "")) for header, name in self.secret_headers.items())
        place = f"{where}/secret_headers"
        secret: Pairs = tuple((header, check_header(header, value.strip(), place)) for header, value in given if value)
        files = {name: base / path for name in ("ca", "client_cert", "client_key") if (path := getattr(self, name))}
        route = Route(
            tuple(self.headers.items()),
            secret,
            self.key_header or (AZURE_KEY if self.provider == AZURE else None),
            tuple(self.query.items()),
            self.proxy,
            connect_timeout=self.connect_timeout,
            read_timeout=self.read_timeout,
            max_connections=self.max_connections,
            **files,
        )
        route.check(where)
        return route
