"""NetworkGuard: the hosts that a tool may reach, checked on the very address that is connected to.

A URL is read once, strictly. Its host is resolved once, each answer is checked, and the connection goes to a checked
address. A redirect is a new URL and is checked again.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

import idna

from utools.errors import DefinitionError, NetworkError
from utools.lazy_pattern import lazy_compile
from utools.net.address import NAT64_NAME, Address, Network, is_public, is_within, nat64_prefixes
from utools.words.text import Text

PORTS = {"http": 80, "https": 443}
LONGEST_URL = 8192
FORBIDDEN = lazy_compile(r"[\x00-\x20\x7f\\]|%(?![0-9A-Fa-f]{2})")
"""White space, control characters and backslashes, which parsers read differently, and a lone percent sign."""
BRACKETED = lazy_compile(r"\[[0-9A-Fa-f:.]+\](:\d+)?")
TOKEN_RULE = Text("a request with a token goes over https to port 443 or one of allowed_ports, or to allow_cidrs")
CIDR_RULE = Text("only the author or the operator can allow it, by allow_cidrs")
LABEL = lazy_compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
NUMERIC = lazy_compile(r"\d+|0x[0-9a-f]*")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, as texts."""


class Target(NamedTuple):
    """The target of a URL. `host` is lower case, ASCII, without a trailing dot; an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses that this machine's resolver returns."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


@dataclass(frozen=True, slots=True)
class NetworkGuard:
    """What a tool may reach: by default every public host on any port.

    `domains` are host names, or `*.example.com` for all names below one; None allows all. `cidrs` are networks that
    may be reached although they are not public. Public hosts may be reached as well unless `public` is false.
    """

    domains: Sequence[str] | None = None
    cidrs: Sequence[Network] = ()
    ports: frozenset[int] | None = None
    public: bool = True
    resolve: Resolve = field(default=system_resolve, compare=False)

    @classmethod
    def from_settings(
        cls,
        *,
        allowed_domains: Sequence[str] | None = None,
        allow_cidrs: Sequence[str] = (),
        allowed_ports: Sequence[int] | None = None,
        resolve: Resolve = system_resolve,
    ) -> "NetworkGuard":
        """Return a guard from an author's settings; DefinitionError for a domain or a network that cannot be read."""
        domains = None if allowed_domains is None else tuple(_domain(each) for each in allowed_domains)
        ports = None if allowed_ports is None else frozenset(allowed_ports)
        return cls(domains, tuple(_network(each) for each in allow_cidrs), ports, resolve=resolve)

    def target(self, url: str) -> Target:
        """Return the target of a URL; NetworkError says what is wrong with the URL, or what is not allowed."""
        target = read_url(url)
        if self.domains is not None and not any(_fits(target.host, domain) for domain in self.domains):
            allowed = ", ".join(self.domains) or "none"
            raise NetworkError(
                "the host {host} is not allowed; allowed are {allowed}", host=target.host, allowed=allowed
            )
        if self.ports is not None and target.port not in self.ports:
            allowed = ", ".join(map(str, sorted(self.ports))) or "none"
            raise NetworkError(
                "the port {port} is not allowed; allowed are {allowed}", port=target.port, allowed=allowed
            )
        return target

    def for_token(self, url: str) -> "NetworkGuard":
        """Return the guard of a request that carries a token to this URL: it must not be readable on the way.

        A token goes over https, to port 443 or a port of `ports`; else only to addresses of `cidrs`, which are checked
        when they are connected to. NetworkError if it may not be sent.
        """
        target = self.target(url)
        if target.scheme == "https" and (target.port == PORTS["https"] or self.ports is not None):
            return self
        if not self.cidrs:
            raise NetworkError(
                "{scheme}://{host}:{port} is not asked: {rule}",
                scheme=target.scheme,
                host=target.host,
                port=target.port,
                rule=TOKEN_RULE,
            )
        return replace(self, public=False)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, all of them checked; NetworkError if one of them may not be reached."""
        try:
            found = [ip_address(host)]
        except ValueError:
            found = await self._resolve(host, port)
        nat64 = await self._nat64() if any(isinstance(each, IPv6Address) for each in found) else ()
        for address in found:
            if is_within(address, self.cidrs, nat64=nat64):
                continue
            if not is_public(address, nat64=nat64):
                raise _refuse_private(host, str(address))
            if not self.public:
                raise _refuse_token(host, str(address))
        return [str(address) for address in found]

    async def _resolve(self, host: str, port: int) -> list[Address]:
        try:
            answers = await self.resolve(host, port)
            addresses = [ip_address(answer) for answer in dict.fromkeys(answers)]
        except (OSError, UnicodeError):
            raise NetworkError("the host {host} cannot be found", host=host, transient=True) from None
        except ValueError:
            raise NetworkError("the host {host} leads to an address of this machine alone", host=host) from None
        if not addresses:
            raise NetworkError("the host {host} cannot be found", host=host, transient=True)
        return addresses

    async def _nat64(self) -> tuple[IPv6Network, ...]:
        """Return the prefixes with which this network translates IPv4; looked up each time, because networks change."""
        try:
            return tuple(nat64_prefixes(await self.resolve(NAT64_NAME, 0)))
        except (OSError, ValueError):
            return ()


def _refuse_private(host: str, address: str) -> NetworkError:
    if host == address:
        return NetworkError("{host} is no public address; {rule}", host=host, rule=CIDR_RULE)
    return NetworkError(
        "{host} leads to {address}, which is no public address; {rule}", host=host, address=address, rule=CIDR_RULE
    )


def explain_private(url: str, cidrs: Sequence[str]) -> str | None:
    """Return what an author has to write so that a URL can be reached whose host is no public address, or is this
    machine; None for every other URL, and for one that cannot be read."""
    try:
        host = read_url(url).host
        address = ip_address("127.0.0.1" if host == "localhost" or host.endswith(".localhost") else host)
        networks = [_network(each) for each in cidrs]
    except (NetworkError, DefinitionError, ValueError):
        return None
    if is_public(address) or is_within(address, networks):
        return None
    kind = "this machine" if address.is_loopback else "no public address"
    network = f"{address}/{address.max_prefixlen}"
    return f"{host} is {kind}, and only public hosts are reached; to allow it, write allow_cidrs: [{network}]"


def _refuse_token(host: str, address: str) -> NetworkError:
    if host == address:
        return NetworkError("{host} is outside of allow_cidrs: {rule}", host=host, rule=TOKEN_RULE)
    return NetworkError(
        "{host} leads to {address}, outside of allow_cidrs: {rule}", host=host, address=address, rule=TOKEN_RULE
    )


def read_url(url: str) -> Target:
    """Return a URL's scheme, host and port; NetworkError for a URL that could be read in more than one way."""
    if len(url) > LONGEST_URL or FORBIDDEN.search(url):
        raise NetworkError("{url} is no URL: it is too long, or holds characters that no URL holds", url=_shown(url))
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # its words quote a piece of the URL, which may be a piece of a secret
        raise NetworkError("{url} is no URL: its host or its port cannot be read", url=_shown(url)) from None
    if parts.scheme not in PORTS:
        raise NetworkError("{url} is no URL of http or https", url=_shown(url))
    if "@" in parts.netloc:
        raise NetworkError("a URL must not carry a user or a password")
    if "[" in parts.netloc and not BRACKETED.fullmatch(parts.netloc):
        raise NetworkError("{url} has no proper host", url=_shown(url))
    if port == 0 or parts.netloc.endswith(":"):
        raise NetworkError("{url} has no proper port", url=_shown(url))
    return Target(parts.scheme, host_name(host, bracketed="[" in parts.netloc), port or PORTS[parts.scheme])


def host_name(host: str, *, bracketed: bool = False) -> str:
    """Return a host as it is compared and resolved; NetworkError for a name that resolvers read differently."""
    if bracketed:
        return _ipv6(host)
    try:
        name = idna.encode(host.removesuffix("."), uts46=True).decode().lower() if host else ""
    except (idna.IDNAError, UnicodeError):
        name = host.removesuffix(".").lower() if host.isascii() else ""
    labels = name.split(".")
    if len(name) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise NetworkError("{host} is no host name", host=_shown(host))
    if NUMERIC.fullmatch(labels[-1]):  # some resolvers take 0177.1, 0x7f.1 or 2130706433 for 127.0.0.1
        try:
            return str(ip_address(name))
        except ValueError:
            raise NetworkError("{host} is no address; write it as four decimal numbers", host=_shown(host)) from None
    return name


def _ipv6(host: str) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        raise NetworkError("[{host}] is no IPv6 address", host=_shown(host)) from None
    if not isinstance(address, IPv6Address) or address.scope_id is not None:
        raise NetworkError("[{host}] is no IPv6 address that can be reached from everywhere", host=_shown(host))
    return str(address)


def _fits(host: str, domain: str) -> bool:
    return host.endswith(domain[1:]) and len(host) >= len(domain) if domain.startswith("*.") else host == domain


def _domain(domain: str) -> str:
    below = "*." if domain.startswith("*.") else ""
    try:
        return below + host_name(domain.removeprefix("*."))
    except NetworkError as error:
        advice = Text("{error}; write example.com or *.example.com", error=error)
        raise DefinitionError(advice, where="allowed_domains") from None


def _network(cidr: str) -> Network:
    try:
        return ip_network(cidr)
    except ValueError as error:
        fault = Text("not a network such as 10.2.0.0/16: {error}", error=error)
        raise DefinitionError(fault, where="allow_cidrs") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:79]}…")
