"""Route: how an endpoint is reached, where it wants more than a URL and a key."""

import os
import re
import ssl
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from agent_core.errors import DefinitionError
from utools.error_text import os_reason
from utools.net.header_names import NAME, is_of_connection
from utools.net.proxies import find_fault

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS: Final = 10.0
NO_PROXY: Final = "none"
OF_CLIENT: Final = ("proxy", "ca", "client_cert", "client_key", "connect_timeout", "read_timeout")
"""What an HTTP client of a program's own has itself."""
ENCRYPTED: Final = "the key is encrypted; give one without a password"
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
        """DefinitionError for a proxy that cannot be used, for files that are no certificates, and for what a `client`
        would pass over; `where` is the place of the route."""
        for name in ("connect_timeout", "read_timeout", "max_connections"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise DefinitionError("must be more than 0", where=_place(where, name), value=value)
        if self.client is not None:
            self._check_client(self.client)
        if self.proxy is not None and self.proxy != NO_PROXY and (fault := find_fault(self.proxy)):
            raise DefinitionError(f"names {fault}", where=_place(where, "proxy"))
        if self.ca or self.client_cert or self.client_key:
            self.open_tls(where)

    def open_tls(self, where: str = "") -> ssl.SSLContext:
        """Return what secures the connections. DefinitionError, which names the file, where it cannot be used."""
        if self.client_key is not None and self.client_cert is None:
            message = "is the key of no certificate; give client_cert too"
            raise DefinitionError(message, where=_place(where, "client_key"), value=str(self.client_key))
        if self.ca is None and self.client_cert is None:
            return usual_tls()
        context = usual_tls.__wrapped__() if self.ca is None else _trust(self.ca, _place(where, "ca"))
        if self.client_cert is not None:
            _load_client_cert(context, self.client_cert, self.client_key, where)
        return context

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no message shows."""
        password = urlsplit(self.proxy).password if self.proxy else None
        return (*(value for _, value in self.secret_headers), *filter(None, [password, unquote(password or "")]))

    def _check_client(self, client: object) -> None:
        import httpx2

        if not isinstance(client, httpx2.AsyncClient):
            kind = f"{type(client).__module__}.{type(client).__qualname__}"
            raise DefinitionError("must be an httpx2.AsyncClient", where="http_client", value=kind)
        for name in OF_CLIENT:
            if getattr(self, name) != getattr(DIRECT, name):
                raise DefinitionError("is a matter of http_client, where there is one; leave it out", where=name)


DIRECT: Final = Route()


def check_header(name: str, value: str, where: str) -> str:
    """Return the value of a header; DefinitionError, without the value, for one that cannot be set."""
    place = f"{where}/{name}"
    if not re.fullmatch(NAME, name):
        raise DefinitionError("is no name of a header", where=place)
    if is_of_connection(name):
        raise DefinitionError("is a header of the connection, which is not yours to set", where=place)
    if not (value.isascii() and value.isprintable()):
        raise DefinitionError("must be printable ASCII, as it is sent in a header", where=place)
    return value


@lru_cache(maxsize=1)
def usual_tls() -> ssl.SSLContext:
    """Return the context of the process: reading the certificates takes longer than most requests. DefinitionError
    where the environment names certificates that cannot be read."""
    paths = ssl.get_default_verify_paths()
    if sys.platform == "linux" and paths.cafile and not any(map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(paths.cafile, paths.capath)
        return context
    import httpx2  # which finds the certificates of other systems

    try:
        return httpx2.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        raise _explain_file(Path(os.environ.get(variable, "")), error, variable, "certificates in PEM") from None


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
    except ValueError:
        given = _place(where, "client_cert" if key is None else "client_key")
        raise DefinitionError(ENCRYPTED, where=given, value=str(key or cert)) from None
    except (OSError, ssl.SSLError) as error:
        wanted = "a certificate with its key in PEM" if key is None else f"the certificate of the key in {key}"
        raise _explain_file(cert, error, _place(where, "client_cert"), wanted) from None


def _refuse_password() -> str:
    """Without this, OpenSSL asks for the password of a key on the terminal."""
    raise ValueError(ENCRYPTED)


def _explain_file(file: Path, error: OSError, where: str, wanted: str) -> DefinitionError:
    if isinstance(error, ssl.SSLError):
        said = error.reason or str(error)
        return DefinitionError(f"does not hold {wanted}: {said}", where=where, value=str(file))
    return DefinitionError(f"cannot be read: {os_reason(error) or error}", where=where, value=str(file))


def _place(where: str, name: str) -> str:
    return f"{where}/{name}" if where else name
