"""Route: how an endpoint is reached, where it wants more than a URL and a key."""

import os
import ssl
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.errors import DefinitionError
from utools.error_text import os_reason
from utools.net.proxies import Proxy, explain_unusable

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS: Final = 10.0
NO_PROXY: Final = "none"
Pairs = tuple[tuple[str, str], ...]
"""Names and values, such as those of headers."""


@dataclass(frozen=True, slots=True)
class Route:
    """What each request to an endpoint has besides, and the way that it takes.

    `key_header` is the header of the key in place of the API's own. `secret_headers` are headers whose values are kept
    out of messages. `proxy` is a URL, `none` for no proxy, None for that of the environment. Certificates are files in
    PEM: `ca` of who may sign the endpoint's, in place of the system's; `client_cert` with `client_key` is shown to the
    endpoint. Times are in seconds: `read_timeout` is the longest silence between two pieces of an answer. `client` is a
    program's own HTTP client: it has its proxy, certificates and times itself, and is not closed.
    """

    headers: Pairs = ()
    secret_headers: Pairs = ()
    key_header: str | None = None
    query: Pairs = ()
    proxy: str | None = None
    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    connect_timeout: float = CONNECT_SECONDS
    read_timeout: float | None = None
    max_connections: int | None = None
    client: "httpx2.AsyncClient | None" = None

    def check(self, where: str = "") -> None:
        """DefinitionError for a proxy that cannot be used, and for files that are no certificates; `where` is the place
        of the route."""
        if self.proxy is not None and self.proxy != NO_PROXY:
            proxy = Proxy(_place(where, "proxy"), self.proxy)
            if unusable := explain_unusable(proxy):
                raise DefinitionError(unusable, where=_place(where, "proxy"))
        if self.ca or self.client_cert or self.client_key:
            self.open_tls(where)

    def open_tls(self, where: str = "") -> ssl.SSLContext:
        """Return what secures the connections. DefinitionError, which names the file, where it cannot be used."""
        if self.ca is None and self.client_cert is None and self.client_key is None:
            return usual_tls()
        context = usual_tls.__wrapped__() if self.ca is None else _trust(self.ca, _place(where, "ca"))
        if self.client_cert is not None:
            _load_client_cert(context, self.client_cert, self.client_key, where)
        elif self.client_key is not None:
            raise DefinitionError("is of no client_cert; give both", where=_place(where, "client_key"))
        return context

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no message shows."""
        return tuple(value for _, value in self.secret_headers)


DIRECT: Final = Route()


@lru_cache(maxsize=1)
def usual_tls() -> ssl.SSLContext:
    """Return the context of the process: reading the certificates takes longer than most requests. DefinitionError
    where the environment names certificates that cannot be read."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        raise _explain_file(Path(os.environ.get(variable, "")), error, variable, "certificates in PEM") from None


def explain_trust(route: Route) -> str:
    """Return by which certificates an endpoint was judged whose own was refused, and what to do."""
    if route.ca is not None:
        return f"; only certificates signed by those in {route.ca} (ca of the endpoint) are trusted"
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if value := os.environ.get(variable):
            return f"; the certificates that {variable} names are trusted: {value}"
    return "; name the file of the certificate that signed it as ca of the endpoint, or by SSL_CERT_FILE"


def is_certificate_refused(error: ssl.SSLError) -> bool:
    """Return whether the endpoint said that it wants a certificate of ours, or another one."""
    said = f"{error.reason or ''} {error}".lower()
    return "alert" in said and ("certificate" in said or "unknown_ca" in said or "unknown ca" in said)


def explain_refused(route: Route) -> str:
    if route.client_cert is None:
        return "; it wants a certificate of ours: client_cert of the endpoint"
    return f"; it does not take the certificate in {route.client_cert} (client_cert of the endpoint)"


def _trust(file: Path, where: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise _explain_file(file, error, where, "certificates in PEM") from None


def _load_client_cert(context: ssl.SSLContext, cert: Path, key: Path | None, where: str) -> None:
    for name, file in (("client_cert", cert), ("client_key", key)):
        if file is not None and not file.is_file():
            raise DefinitionError("there is no such file", where=_place(where, name), value=str(file))
    try:
        context.load_cert_chain(cert, key, password=_refuse_password)
    except (OSError, ssl.SSLError) as error:
        wanted = "a certificate with its key in PEM" if key is None else f"the certificate of the key in {key}"
        raise _explain_file(cert, error, _place(where, "client_cert"), wanted) from None


def _refuse_password() -> str:
    """Without this, OpenSSL asks for the password of a key on the terminal."""
    raise ssl.SSLError("the key is encrypted; give one without a password")


def _explain_file(file: Path, error: OSError, where: str, wanted: str) -> DefinitionError:
    if isinstance(error, ssl.SSLError):
        said = error.reason or str(error)
        return DefinitionError(f"does not hold {wanted}: {said}", where=where, value=str(file))
    return DefinitionError(f"cannot be read: {os_reason(error) or error}", where=where, value=str(file))


def _place(where: str, name: str) -> str:
    return f"{where}/{name}" if where else name
