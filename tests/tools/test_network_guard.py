"""The network guard under attack: no URL, name or answer leads to what is not public, unless an author allows it."""

from collections.abc import Sequence
from ipaddress import IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utools.errors import DefinitionError, NetworkError
from utools.net.address import NAT64_ADDRESSES, PREFIX_LENGTHS, embedded_ipv4, is_public, nat64_prefixes
from utools.net.guard import NetworkGuard, Resolve, Target, read_url

PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.5"


def answering(*answers: str, nat64: Sequence[str] = ()) -> Resolve:
    """A resolver with one answer for every name."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return nat64 if host == "ipv4only.arpa" else answers

    return resolve


# ── URLs ──────────────────────────────────────────────────────────────────────────────────────────

READ = {
    "https://example.com/a?b=c#d": Target("https", "example.com", 443),
    "http://EXAMPLE.com.:8080": Target("http", "example.com", 8080),
    "http://[2606:4700::1111]/": Target("http", "2606:4700::1111", 80),
    "https://bücher.example/": Target("https", "xn--bcher-kva.example", 443),
    "http://１２７.０.０.１/": Target("http", "127.0.0.1", 80),
    "http://example。com/": Target("http", "example.com", 80),
    "http://a_b.example.com": Target("http", "a_b.example.com", 80),
}


@pytest.mark.parametrize(("url", "target"), READ.items(), ids=READ)
def test_a_url_is_read_in_one_way(url: str, target: Target) -> None:
    assert read_url(url) == target


@pytest.mark.parametrize(
    "url", ["http://ann:Zx9-desk/token@127.0.0.1/", "http://[Zx9-desk/token]/", "http://a℀Zx9-desk/"]
)
def test_a_piece_of_a_url_is_not_quoted_beside_it(url: str) -> None:
    with pytest.raises(NetworkError) as refused:
        read_url(url)
    assert "Zx9-desk" not in str(refused.value).replace(repr(url), "")


REFUSED = [
    "", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "gopher://x", "javascript:alert(1)",
    "http://", "http:///path", "http://:80", "http://user@example.com", "http://user:pw@example.com", "http://@example.com",
    "http://example.com@127.0.0.1/", "http://example.com\\@127.0.0.1", "http:\\\\127.0.0.1", "http://example.com:",
    "http://example.com:0", "http://example.com:99999", "http://example.com:-1", "http://example.com:8o",
    "http://0177.0.0.1/", "http://0x7f.0.0.1", "http://0x7f000001", "http://2130706433", "http://127.1", "http://127.0.1",
    "http://017700000001", "http://1.2.3.4.5", "http://256.0.0.1", "http://0300.0250.0.1", "http://127.0.0.1.0x7f",
    "http://[::1", "http://[fe80::1%25eth0]", "http://[::ffff:1.2.3]", "http://[127.0.0.1]", "http://[v1.x]",
    "http://exa mple.com", "http://example.com/a b", "http://example.com/\r\nHost: evil", "http://example.com/\x00",
    "http://example.com/%zz", "http://exam%00ple.com", "http://%31%32%37.0.0.1", "http://-a.com", "http://a-.com",
    "http://a..b.com", "http://.a.com", "http://" + "a" * 64 + ".com",
    "http://" + "a." * 140 + "com", "http://a.com/" + "x" * 9000,
    "http://ex\u200bample.com:80:80", "http://[::1]evil.com", "http://a.com#@b.com\t", "HTTP://exa\nmple.com",
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED, ids=[repr(url)[:60] for url in REFUSED])
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(NetworkError):
        read_url(url)


@given(st.text(alphabet=st.sampled_from("htps:/@.[]%0123456789abcdefx\\#? \n\u3002\uff11\u2024é-_"), max_size=40))
def test_no_text_raises_anything_but_the_tools_own_error(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/"):
        try:
            target = read_url(url)
        except NetworkError:
            continue
        assert target.host == target.host.lower()
        assert target.host.isascii()
        assert 0 < target.port < 65536


# ── addresses ─────────────────────────────────────────────────────────────────────────────────────

FORBIDDEN = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "192.88.99.1",
    "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1", "2001:db8::1",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "100::1", "3fff::1", "5f00::1", "4000::1",
]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
async def test_what_is_not_public_is_not_reached_by_name_or_number(address: str) -> None:
    assert not is_public(ip_address(address))
    for host in (address, "name.example"):
        with pytest.raises(NetworkError, match="no public address"):
            await NetworkGuard(resolve=answering(address)).addresses(host, 80)


async def test_a_refusal_says_who_can_allow_it_and_how() -> None:
    remedy = "is no public address; only the author or the operator can allow it, by allow_cidrs"
    for host, told in (("127.0.0.1", "127.0.0.1"), ("name.example", "name.example leads to 127.0.0.1, which")):
        with pytest.raises(NetworkError) as caught:
            await NetworkGuard(resolve=answering("127.0.0.1")).addresses(host, 80)
        assert str(caught.value) == f"{told} {remedy}"


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])
async def test_what_is_public_is_reached(address: str) -> None:
    assert await NetworkGuard(resolve=answering(address)).addresses("name.example", 443) == [str(ip_address(address))]


async def test_one_forbidden_answer_among_many_forbids_the_name() -> None:
    for answers in ((PUBLIC, PRIVATE), (PRIVATE, PUBLIC), (PUBLIC, "::1")):
        with pytest.raises(NetworkError):
            await NetworkGuard(resolve=answering(*answers)).addresses("name.example", 80)


def carried(prefix: str, length: int, address: str) -> str:
    """An IPv4 address behind a NAT64 prefix, as RFC 6052 (2.2) writes it."""
    octets = bytearray(IPv6Network(f"{prefix}/{length}").network_address.packed)
    places = [place for place in range(length // 8, 16) if place != 8][:4]
    for place, octet in zip(places, ip_address(address).packed, strict=True):
        octets[place] = octet
    return str(ip_address(bytes(octets)))


@pytest.mark.parametrize("length", PREFIX_LENGTHS)
async def test_a_private_address_behind_the_networks_own_translation_is_found(length: int) -> None:
    prefix = {32: "2a00:1234::", 40: "2a00:1234:5600::", 48: "2a00:1234:5678::"}.get(length, "2a00:1234:5678::")
    told = [carried(prefix, length, str(address)) for address in NAT64_ADDRESSES]
    assert set(nat64_prefixes(told)) == {IPv6Network(f"{prefix}/{length}")}
    for address, allowed in ((PRIVATE, False), ("127.0.0.1", False), (PUBLIC, True)):
        behind = carried(prefix, length, address)
        assert str(embedded_ipv4(ip_address(behind), length)) == address  # type: ignore[arg-type]
        guard = NetworkGuard(resolve=answering(behind, nat64=told))
        if allowed:
            assert await guard.addresses("name.example", 80) == [behind]
        else:
            with pytest.raises(NetworkError):
                await guard.addresses("name.example", 80)


@given(st.integers(0, 2**128 - 1))
def test_nothing_outside_global_unicast_is_public(number: int) -> None:
    address = ip_address(number.to_bytes(16))
    if is_public(address):
        assert number >> 125 == 1 or str(address).startswith(("::ffff:", "64:ff9b::"))


# ── what an author allows ─────────────────────────────────────────────────────────────────────────

DOMAINS: dict[tuple[str, str], bool] = {
    ("example.com", "example.com"): True,
    ("example.com", "EXAMPLE.COM."): True,
    ("example.com", "www.example.com"): False,
    ("example.com", "evil-example.com"): False,
    ("example.com", "example.com.evil"): False,
    ("*.example.com", "a.b.example.com"): True,
    ("*.example.com", "example.com"): False,
    ("*.example.com", "evil-example.com"): False,
    ("*.example.com", "x.example.com.evil.org"): False,
    ("bücher.example", "xn--bcher-kva.example"): True,
    ("10.0.0.5", "10.0.0.5"): True,
}


@pytest.mark.parametrize(("domain", "host", "fits"), [(*key, fits) for key, fits in DOMAINS.items()])
def test_a_domain_allows_itself_and_a_star_what_is_below(domain: str, host: str, fits: bool) -> None:
    guard = NetworkGuard.from_settings(allowed_domains=[domain])
    if fits:
        assert guard.target(f"https://{host}/").port == 443
    else:
        with pytest.raises(NetworkError, match="is not allowed; allowed are"):
            guard.target(f"https://{host}/")


def test_an_empty_list_of_domains_allows_none() -> None:
    with pytest.raises(NetworkError):
        NetworkGuard.from_settings(allowed_domains=[]).target("https://example.com")


def test_only_the_allowed_ports_are_reached() -> None:
    guard = NetworkGuard.from_settings(allowed_ports=[443, 8443])
    assert guard.target("https://example.com:8443").port == 8443
    with pytest.raises(NetworkError, match="port 80"):
        guard.target("http://example.com")


async def test_an_intranet_that_is_meant_is_reached_and_no_other() -> None:
    guard = NetworkGuard.from_settings(allow_cidrs=["10.0.0.0/24", "fd12::/16"], resolve=answering(PRIVATE))
    assert await guard.addresses("wiki.corp.example", 80) == [PRIVATE]
    assert await guard.addresses("fd12::7", 80) == ["fd12::7"]
    assert await guard.addresses("::ffff:10.0.0.9", 80) == [str(ip_address("::ffff:10.0.0.9"))]
    for address in ("10.0.1.5", "127.0.0.1", "169.254.169.254", "fd13::7"):
        with pytest.raises(NetworkError):
            await guard.addresses(address, 80)


@pytest.mark.parametrize("wrong", [{"allowed_domains": ["a b"]}, {"allowed_domains": ["https://a.com"]},
                                   {"allow_cidrs": ["10.0.0.0/33"]}, {"allow_cidrs": ["10.0.0.5/8"]}])  # fmt: skip
def test_what_is_no_domain_or_network_is_the_authors_mistake(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(DefinitionError):
        NetworkGuard.from_settings(**wrong)


async def test_a_name_that_nobody_knows_may_be_known_later() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    with pytest.raises(NetworkError, match="cannot be found") as caught:
        await NetworkGuard(resolve=unknown).addresses("name.example", 80)
    assert caught.value.transient


TOKENS: dict[tuple[str, tuple[int, ...] | None, bool], str | None] = {
    ("https://a.example/", None, False): PUBLIC,
    ("https://a.example:8443/", (8443,), False): PUBLIC,
    ("https://a.example:8443/", None, False): None,
    ("http://a.example/", None, False): None,
    ("http://a.example/", (80,), False): None,
    ("http://a.example/", None, True): PRIVATE,
    ("https://a.example:8443/", None, True): PRIVATE,
}


@pytest.mark.parametrize(("url", "ports", "intranet", "reached"), [(*key, to) for key, to in TOKENS.items()])
async def test_a_token_goes_by_https_to_a_known_port_or_to_an_intranet_that_is_meant(
    url: str, ports: Sequence[int] | None, intranet: bool, reached: str | None
) -> None:
    cidrs = ["10.0.0.0/24"] if intranet else []
    for answer in (PUBLIC, PRIVATE):
        guard = NetworkGuard.from_settings(allow_cidrs=cidrs, allowed_ports=ports, resolve=answering(answer))
        target = read_url(url)
        if answer == reached:
            assert await guard.for_token(url).addresses(target.host, target.port) == [answer]
        else:
            with pytest.raises(NetworkError):
                await guard.for_token(url).addresses(target.host, target.port)
