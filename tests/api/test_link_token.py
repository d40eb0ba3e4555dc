"""The token of a decision link: read by who has its key, and by nobody else, whatever is changed in it."""

import json
from base64 import urlsafe_b64encode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.service.link_token import CONTEXT, LONGEST, LinkGrant, name_token, read_token, write_token
from support.masked_keys import mask_keys

KEY, OLD, OTHER = b"k" * 32, b"o" * 32, b"x" * 32
GRANT = LinkGrant("r-1", "flow/order.1", 3, 1_800_000_000, "n8n", "acme", "Ada")
TOKEN = write_token(GRANT, KEY)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
grants = st.builds(
    LinkGrant,
    run=names,
    strand=names,
    n=st.integers(0, 2**31),
    expires=st.integers(0, 2**40),
    by=names,
    tenant=st.none() | names,
    person=names,
)


@given(grants, st.binary(min_size=16, max_size=64))
def test_who_has_the_key_reads_what_was_granted(grant: LinkGrant, key: bytes) -> None:
    assert read_token(write_token(grant, key), [key]) == grant


@given(st.integers(0, len(TOKEN) - 1), st.integers(1, 127))
def test_any_changed_character_is_refused(at: int, by: int) -> None:
    changed = TOKEN[:at] + chr(ord(TOKEN[at]) ^ by) + TOKEN[at + 1 :]
    assert read_token(changed, [KEY, OLD]) is None


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_no_other_text_is_a_token(text: str) -> None:
    assert read_token(text, [KEY]) is None


@pytest.mark.parametrize(
    "text",
    [
        TOKEN[:-1],
        f"{TOKEN}=",
        f"{TOKEN}A",
        f" {TOKEN}",
        f"{TOKEN}\n",
        f"{TOKEN}.",
        TOKEN.replace(".", ".."),
        TOKEN.partition(".")[0],
        f"{TOKEN.partition('.')[0]}.",
        f".{TOKEN.partition('.')[2]}",
        TOKEN * 100,
        "A" * (LONGEST + 1),
        f"{TOKEN}é",
        "",
        ".",
    ],
)
def test_what_is_more_or_less_than_a_token_is_refused(text: str) -> None:
    assert read_token(text, [KEY]) is None


def test_scope_of_a_token_is_what_is_signed() -> None:
    for other in (
        replace(GRANT, run="r-2"),
        replace(GRANT, strand="flow/order.2"),
        replace(GRANT, n=4),
        replace(GRANT, expires=GRANT.expires + 1),
        replace(GRANT, tenant="globex"),
        replace(GRANT, tenant=None),
        replace(GRANT, person="Eve"),
        replace(GRANT, by="eve"),
    ):
        payload, signature = write_token(other, KEY).partition(".")[0], TOKEN.partition(".")[2]
        assert read_token(f"{payload}.{signature}", [KEY]) is None


def test_old_key_holds_and_another_one_does_not() -> None:
    assert read_token(write_token(GRANT, OLD), [KEY, OLD]) == GRANT
    assert read_token(write_token(GRANT, OTHER), [KEY, OLD]) is None
    assert read_token(TOKEN, []) is None


def test_signature_of_something_else_by_the_same_secret_is_none_of_a_link() -> None:
    from hmac import digest

    payload = TOKEN.partition(".")[0]
    bare = urlsafe_b64encode(digest(KEY, payload.encode(), "sha256")).rstrip(b"=").decode()
    assert read_token(f"{payload}.{bare}", [KEY]) is None


def test_signed_payload_of_another_version_is_refused() -> None:
    from hmac import digest

    for body in (b"{}", b"[]", b"no json", json.dumps({"r": "a"}).encode(), b"\xff"):
        payload = urlsafe_b64encode(body).rstrip(b"=").decode()
        signature = urlsafe_b64encode(digest(KEY, CONTEXT + payload.encode(), "sha256")).rstrip(b"=").decode()
        assert read_token(f"{payload}.{signature}", [KEY]) is None


@given(grants)
def test_token_in_a_text_is_masked_as_a_key(grant: LinkGrant) -> None:
    """So that no model reads a link that decides, and no record holds one."""
    token = write_token(grant, KEY)
    masked = mask_keys(f"Please decide: https://agents.example.com/decide/{token}")
    assert token not in masked
    assert token.partition(".")[2] not in masked


def test_id_of_a_token_tells_nothing_of_it() -> None:
    assert len(name_token(TOKEN)) == 12
    assert name_token(TOKEN) not in TOKEN
