"""DecisionLinks: links that decide about one waiting call, once, until they expire; for a mail or a chat message."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from agent_core.outputs import Json, WaitingCall
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.host.config import HostConfig
from engine_shim.service.link_token import LinkGrant, name_token, read_token, write_token
from engine_shim.service.secrets import read_secret

PATH: Final = "/decide/"
SHORTEST_KEY: Final = 16
"""Bytes of a secret that signs links: whoever guesses it decides about every call."""


class LinkUnknown(EngineError):
    """A link that this server did not make, or that lacks a part."""

    def __init__(self) -> None:
        super().__init__("there is no such link: a part of it is missing, or this server did not make it")


@dataclass(frozen=True, slots=True)
class DecisionLinks:
    """The links of a host and its tenants. The first of the `keys` signs; what any of them has signed holds."""

    public_url: str
    lifetime: int
    keys: tuple[bytes, ...]

    def write(self, grant: LinkGrant) -> Json:
        """Return a link as those who send it get it: {url, id, expires_at}."""
        token = write_token(grant, self.keys[0])
        expires = datetime.fromtimestamp(grant.expires, UTC).isoformat()
        return {"url": f"{self.public_url}{PATH}{token}", "id": name_token(token), "expires_at": expires}

    def read(self, token: str, tenants: Sequence[str | None]) -> LinkGrant:
        """Return the grant of a token of one of these tenants. LinkUnknown for every other text."""
        grant = read_token(token, self.keys)
        if grant is None or grant.tenant not in tenants:
            raise LinkUnknown
        return grant

    def add_to(self, waiting: Sequence[WaitingCall], run: str, expires: int, by: str, tenant: str | None) -> list[Json]:
        """Return waiting calls, each about which a person decides with a `link`."""
        return [
            {**call, "link": self.write(LinkGrant(run, call["strand"], call["n"], expires, by, tenant))}
            if call["reason"] != "awaiting_event"
            else {**call}
            for call in waiting
        ]


def open_links(config: HostConfig) -> DecisionLinks | None:
    """Return the links of a host; None if it makes none. DefinitionError for a secret that is not set or too short."""
    links = config.decision_links
    if links is None:
        return None
    keys = []
    for key, variable in (("secret_env", links.secret_env), ("old_secret_env", links.old_secret_env)):
        if variable is not None:
            where = config.at(f"decision_links/{key}")
            keys.append(read_secret(variable, where))
            if len(keys[-1]) < SHORTEST_KEY:
                message = f"its secret must have at least {SHORTEST_KEY} bytes, as `openssl rand -hex 32` writes them"
                raise DefinitionError(message, where=where, value=variable)
    return DecisionLinks(links.public_url, links.lifetime, tuple(keys))
