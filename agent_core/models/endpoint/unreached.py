"""Why an endpoint gave no whole answer, and what to do: certificates, proxies, times."""

import os
import re
import ssl
from collections.abc import Iterator

from agent_core.models.endpoint.answer import NOT_LISTENING, Refusal
from agent_core.models.endpoint.route import Route
from utools.error_text import os_reason
from utools.lazy_pattern import lazy_compile
from utools.net.proxies import Proxy

LOGIN_WANTED = 407
NOT_CONNECTED, BY_AIOHTTP = "ConnectTimeout", "ConnectionTimeoutError"
"""The errors where no connection came in time. aiohttp's errors have names of their own."""
LIBRARIES = ("aiohttp", "httpx2", "anyio")
SILENT = ("ReadTimeout", "SocketTimeoutError")
BY_AUTHORITY = (2, 18, 19, 20, 21)
"""OpenSSL's codes for a certificate that was signed by an authority that is not trusted."""
BY_FORM = range(80, 94)
"""OpenSSL's codes for a certificate that is not of the form that RFC 5280 wants; Python 3.13 and later look at it."""
SOCKS_LOGIN = lazy_compile(r"username/password|NO ACCEPTABLE METHODS", re.IGNORECASE)


def explain_unreached(error: BaseException, route: Route, proxy: Proxy | None) -> Refusal:
    """Return the refusal for what a transport raised. The reason nearest to the operating system is the clearest."""
    errors = list(_list_causes(error))
    by_proxy = "" if proxy is None else f" through the proxy {proxy.shown} ({proxy.variable})"
    code = NOT_LISTENING if any(isinstance(each, ConnectionRefusedError) for each in errors) else ""

    def refuse(reason: str, *, transient: bool = True) -> Refusal:
        return Refusal(f"gave no answer{by_proxy}: {reason}", code=code, transient=transient)

    for each in reversed(errors):  # aiohttp's own errors are of ssl's classes too, and hold none of their values
        if isinstance(each, ssl.SSLCertVerificationError):
            return refuse(_explain_untrusted(each, route), transient=False)
        if isinstance(each, ssl.SSLError) and _wants_certificate(each):
            return refuse(f"{_say(each)}; {_explain_refused(route)}", transient=False)
    names = {type(each).__name__ for each in errors}
    by_aiohttp = any(is_of_library(each, ("aiohttp",)) for each in errors)
    if (BY_AIOHTTP if by_aiohttp else NOT_CONNECTED) in names:
        return refuse(f"no connection {_say_time(route, 'connect_timeout')}")
    if not names.isdisjoint(SILENT):
        return refuse(f"nothing came {_say_time(route, 'read_timeout')}")
    reason = os_reason(error) or str(error) or type(error).__name__
    if (status := _find_proxy_status(errors)) and proxy is not None:
        return refuse_login(proxy) if status == LOGIN_WANTED else refuse(f"the proxy answered {status}")
    if proxy is not None and proxy.is_socks and SOCKS_LOGIN.search(reason):
        return refuse_login(proxy)
    return refuse(reason)


def refuse_login(proxy: Proxy) -> Refusal:
    """Return the refusal where a proxy wants a name and a password, or others."""
    message = f"cannot be reached: the proxy {proxy.shown} ({proxy.variable}) does not take the name and password"
    return Refusal(f"{message} in its URL, {proxy.scheme}://NAME:PASSWORD@HOST:PORT", LOGIN_WANTED)


def is_of_library(error: BaseException, libraries: tuple[str, ...] = LIBRARIES) -> bool:
    """Return whether it is an error that one of these libraries has for what happens on the way."""
    return any(each.__module__.partition(".")[0] in libraries for each in type(error).__mro__)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _explain_untrusted(error: ssl.SSLCertVerificationError, route: Route) -> str:
    """Return why a certificate was refused: where nothing trusted has signed it, by what it was judged, and what to
    do."""
    said = getattr(error, "verify_message", "") or str(error)
    reason, code = f"its certificate is not trusted: {said}", getattr(error, "verify_code", BY_AUTHORITY[0])
    if code in BY_FORM:
        return (
            f"{reason}; this Python takes only certificates by RFC 5280: have it, or that of its authority, made anew"
        )
    if code not in BY_AUTHORITY:
        return reason
    if route.client is not None:
        return f"{reason}; which certificates are trusted is said by http_client"
    if route.ca is not None:
        return f"{reason}; only certificates signed by those in {route.ca} (ca of the endpoint) are trusted"
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if value := os.environ.get(variable):
            return f"{reason}; the certificates that {variable} names are trusted: {value}"
    return f"{reason}; name the file of the certificate that signed it as ca of the endpoint, or by SSL_CERT_FILE"


def _wants_certificate(error: ssl.SSLError) -> bool:
    """Return whether the endpoint said that it wants a certificate of ours, or another one."""
    said = f"{getattr(error, 'reason', None) or ''} {error}".lower()
    return "alert" in said and ("certificate" in said or "unknown_ca" in said or "unknown ca" in said)


def _explain_refused(route: Route) -> str:
    if route.client_cert is None:
        return "it wants a certificate of ours: client_cert of the endpoint"
    return f"it does not take the certificate in {route.client_cert} (client_cert of the endpoint)"


def _say(error: ssl.SSLError) -> str:
    reason = getattr(error, "reason", None)
    return reason.lower().replace("_", " ") if reason else str(error)


def _say_time(route: Route, name: str) -> str:
    if route.client is not None:
        return "in the time that http_client allows"
    return f"within {getattr(route, name):g} seconds ({name})"


def _find_proxy_status(errors: list[BaseException]) -> int | None:
    """Return the status with which a proxy refused to connect: an attribute with aiohttp, the first word with
    httpx2."""
    for each in errors:
        name = type(each).__name__
        if name == "ClientHttpProxyError":
            return int(getattr(each, "status", 0))
        if name == "ProxyError" and (found := re.match(r"\d{3}\b", str(each))):
            return int(found[0])
    return None
