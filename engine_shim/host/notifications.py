"""WebhookConfig, CallbackConfig, LinkConfig: whom a server notifies of its runs, and the links by which they decide."""

from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from agent_core.statuses import NOTIFIED, NotifiedStatus
from engine_shim.host.patterns import PUBLIC_URL, URL
from utools.errors import DefinitionError
from utools.net.guard import NetworkGuard
from utools.schema.host_keys import HostKeys

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
DAY_S: Final = 86_400


class WebhookConfig(HostKeys, BaseModel):
    """Where a server tells of its runs, signed with the secret in the variable: when one waits or ends, or of those
    statuses that are named, of the workflows that the globs name. With `decision_links` each waiting call comes with a
    link that decides about it."""

    bounds: ClassVar = ("statuses", "workflows")

    url: Annotated[str, StringConstraints(pattern=URL)]
    secret_env: str = Field(min_length=1)
    statuses: list[NotifiedStatus] = list(NOTIFIED)
    workflows: list[str] = ["*"]
    decision_links: bool = False


class CallbackConfig(HostKeys, BaseModel):
    """Which URLs callers may name for a run, to be told when it waits and ends, signed with the secret in the variable.

    `allowed_domains` are hosts, or `*.example.com` for all below one. They are reached over https at port 443 or one
    of `allowed_ports`, at public addresses alone; over http, and elsewhere, only in the networks `allow_cidrs`. With
    `decision_links` each waiting call comes with a link that decides about it, if the caller may decide.
    """

    allowed_domains: list[str] = Field(min_length=1)
    secret_env: str = Field(min_length=1)
    allow_cidrs: list[str] = []
    allowed_ports: list[Annotated[int, Field(ge=1, le=65535)]] | None = None
    decision_links: bool = False

    @model_validator(mode="after")
    def _check_guard(self) -> "CallbackConfig":
        try:
            self.open_guard()
        except DefinitionError as error:
            raise ValueError(f"{error.where}: {error.message}") from None
        return self

    def open_guard(self) -> NetworkGuard:
        """Return what checks each URL, and each address that is connected to. DefinitionError for what is no host or
        network."""
        return NetworkGuard.from_settings(
            allowed_domains=self.allowed_domains, allow_cidrs=self.allow_cidrs, allowed_ports=self.allowed_ports
        )


class LinkConfig(BaseModel):
    """Links that decide about one waiting call, each once, until they expire: `public_url` is where people reach this
    server, and `lifetime` the most seconds that a link holds. They are signed with the secret in `secret_env`; links
    that were signed with that in `old_secret_env` hold as well."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    public_url: Annotated[str, StringConstraints(pattern=PUBLIC_URL, max_length=1024)]
    secret_env: str = Field(min_length=1)
    old_secret_env: str | None = Field(default=None, min_length=1)
    lifetime: Annotated[int, Field(ge=60, le=30 * DAY_S)] = 3 * DAY_S

    @field_validator("public_url")
    @classmethod
    def _check_scheme(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError as error:
            raise ValueError(f"is no URL: {error}") from None
        if parts.scheme != "https" and host not in LOOPBACK:
            raise ValueError("must begin with https:// unless the host is this machine: who reads a link can decide")
        return url.rstrip("/")

    @property
    def host(self) -> str:
        """The name by which people call this server."""
        host = urlsplit(self.public_url).hostname or ""
        return f"[{host}]" if ":" in host else host

    @property
    def variables(self) -> list[str]:
        """The variables of its secrets."""
        return [self.secret_env, *([] if self.old_secret_env is None else [self.old_secret_env])]
