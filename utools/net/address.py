"""Public addresses: the only ones that a tool reaches unless its author allows others. Pure.

IPv6 carries IPv4 in several forms, and a forbidden IPv4 address is forbidden in each of them (RFC 6052, 4291, 3056).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from utools.lazy_pattern import lazy_compile

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

ORIGIN = lazy_compile(r"https?://[^/?#{}\s]+(?=[/?#]|\Z)", re.IGNORECASE)
"""A URL up to its path, without any placeholder."""
GLOBAL_UNICAST = IPv6Network("2000::/3")
NOT_PUBLIC = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Within global unicast: protocol assignments with Teredo, documentation, and 6to4, which hides an IPv4 address."""
SPECIAL = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
"""Protocol assignments and 6to4 relays, of which some versions of Python call some global."""
WELL_KNOWN = IPv6Network("64:ff9b::/96")
"""The NAT64 prefix that every network may use (RFC 6052, 2.1)."""
PREFIX_LENGTHS = (32, 40, 48, 56, 64, 96)
RESERVED_OCTET = 8
"""Bits 64 to 71 of a translated address are zero, and the IPv4 address continues after them (RFC 6052, 2.2)."""
NAT64_NAME = "ipv4only.arpa"
NAT64_ADDRESSES = frozenset(map(IPv4Address, ("192.0.0.170", "192.0.0.171")))
"""The addresses of that name: an IPv6 answer shows the prefix that this network translates with (RFC 7050)."""


def is_public(address: Address, *, nat64: Iterable[IPv6Network] = ()) -> bool:
    """Return whether an address belongs to the public internet. `nat64` are prefixes that this network translates
    with."""
    if isinstance(address, IPv4Address):
        special = address.is_multicast or address.is_reserved or any(address in network for network in SPECIAL)
        return address.is_global and not special
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    for prefix in (WELL_KNOWN, *nat64):
        if address in prefix:
            return is_public(embedded_ipv4(address, prefix.prefixlen))
    return address in GLOBAL_UNICAST and not any(address in network for network in NOT_PUBLIC)


def is_within(address: Address, networks: Sequence[Network], *, nat64: Iterable[IPv6Network] = ()) -> bool:
    """Return whether an address, or the IPv4 address that it carries, lies in one of the networks."""
    forms: list[Address] = [address]
    if isinstance(address, IPv6Address):
        forms += [address.ipv4_mapped] if address.ipv4_mapped else []
        forms += [embedded_ipv4(address, prefix.prefixlen) for prefix in (WELL_KNOWN, *nat64) if address in prefix]
    return any(form.version == network.version and form in network for form in forms for network in networks)


def embedded_ipv4(address: IPv6Address, length: int) -> IPv4Address:
    """Return the IPv4 address after a NAT64 prefix of this length."""
    octets = bytearray(address.packed)
    del octets[RESERVED_OCTET]
    start = length // 8 if length < 96 else 11
    return IPv4Address(bytes(octets[start : start + 4]))


def nat64_prefixes(answers: Iterable[str]) -> Iterator[IPv6Network]:
    """Yield the prefixes that a network translates with, from the IPv6 answers for `ipv4only.arpa`."""
    for answer in answers:
        address = ip_address(answer.partition("%")[0])
        if isinstance(address, IPv6Address):
            for length in PREFIX_LENGTHS:
                if embedded_ipv4(address, length) in NAT64_ADDRESSES:
                    yield IPv6Network((address, length), strict=False)
                    break
