"""The proxy that the environment names for a URL, and whether it can be used.

What goes through a `NetworkGuard`, and to MCP servers, is sent without one: the guard checks each address itself.
"""

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from utools.words.text import Text

DIRECT: Final = ("http", "https")
SOCKS: Final = ("socks5", "socks5h")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and the variable that names it."""

    variable: str
    url: str

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")

    @property
    def shown(self) -> str:
        """Its URL without a name and a password."""
        return re.sub(r"//[^/]*@", "//", self.url)


def find_proxy(url: str) -> Proxy | None:
    """Return the proxy that the environment names for a URL; None where NO_PROXY excepts its host."""
    parts = urlsplit(url)
    if _is_excepted((parts.hostname or "").lower()):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if value := os.environ.get(variable, "").strip():
                return Proxy(variable, value if "://" in value else f"http://{value}")
    return None


def explain_unusable(proxy: Proxy) -> str:
    """Return why requests cannot be sent by this proxy, and what to do; empty if they can."""
    fault = find_fault(proxy.url)
    return f"{proxy.variable} names {fault}" if fault else ""


def find_fault(url: str) -> str:
    """Return which proxy this is, and why it cannot be used, without its password; empty if it can."""
    proxy = Proxy("", url)
    if proxy.scheme not in (*DIRECT, *SOCKS):
        return f"a proxy that cannot be used ({proxy.shown}): http, https and socks5 are known"
    if not _has_address(url):
        return f"a proxy that cannot be used ({proxy.shown}): it must be {proxy.scheme}://HOST:PORT"
    if proxy.is_socks and not find_spec("socksio"):
        return f"a SOCKS proxy ({proxy.shown}), which needs a package: pip install 'httpx2[socks]'"
    return ""


def note_unused(url: str) -> str:
    """Return what to add where a host cannot be reached by a request that takes no proxy; empty where none is named."""
    proxy = find_proxy(url)
    if proxy is None:
        return ""
    return Text("; {variable} names a proxy, which is not used for this", variable=proxy.variable)


def _has_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _is_excepted(host: str) -> bool:
    entries = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return any(_fits(host, each.strip().lower()) for each in entries.split(",") if each.strip())


def _fits(host: str, entry: str) -> bool:
    """Return whether an entry of NO_PROXY names a host: by its name, a domain above it, an address or a network."""
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        name = re.sub(r":\d+\Z", "", entry).lstrip("*").lstrip(".")
        return bool(name) and (host == name or host.endswith(f".{name}"))
