"""Packed HTTP bodies: however they arrive, what they hold is the same, and no step is a large one."""

import gzip
import zlib
from collections.abc import Iterator

import pytest

from utools.net.decompress import AT_ONCE, Damaged, Unpacked

TEXT = b"hello world" * 10
WAYS: dict[str, tuple[str, bytes, bytes]] = {
    "gzip": ("gzip", gzip.compress(TEXT), TEXT),
    "members": ("x-gzip", gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(TEXT), TEXT * 2),
    "padded": ("gzip", gzip.compress(TEXT) + bytes(20), TEXT),
    "padded_between": ("gzip", gzip.compress(TEXT) + bytes(3) + gzip.compress(TEXT), TEXT * 2),
    "lines_behind": ("gzip", gzip.compress(TEXT) + b"\r\n", TEXT),
    "junk_behind": ("gzip", gzip.compress(TEXT) + b"junk" + gzip.compress(TEXT), TEXT),
    "half_a_magic_behind": ("gzip", gzip.compress(TEXT) + b"\x1f", TEXT),
    "junk_behind_deflate": ("deflate", zlib.compress(TEXT) + gzip.compress(TEXT), TEXT),
    "deflate": ("deflate", zlib.compress(TEXT), TEXT),
    "bare": ("deflate", zlib.compress(TEXT, wbits=-15), TEXT),
    "bare_and_stored": ("deflate", zlib.compress(TEXT, 0, wbits=-15), TEXT),
    "other_than_it_says": ("deflate", gzip.compress(TEXT), TEXT),
    "plain": ("identity", TEXT, TEXT),
    "nothing": ("gzip", b"", b""),
}


def unpacked(encoding: str, parts: list[bytes]) -> Iterator[bytes]:
    body = Unpacked(encoding)
    for part in parts:
        yield from body.more(part)
    body.end()


@pytest.mark.parametrize(("encoding", "packed", "text"), WAYS.values(), ids=WAYS)
def test_a_body_is_the_same_whole_and_byte_by_byte(encoding: str, packed: bytes, text: bytes) -> None:
    single = [packed[at : at + 1] for at in range(len(packed))]
    assert b"".join(unpacked(encoding, [packed])) == b"".join(unpacked(encoding, single)) == text


@pytest.mark.parametrize("packed", [gzip.compress(TEXT), zlib.compress(TEXT)], ids=["gzip", "deflate"])
def test_a_body_that_is_cut_anywhere_is_damaged(packed: bytes) -> None:
    for size in range(1, len(packed)):
        with pytest.raises(Damaged):
            list(unpacked("deflate", [packed[:size]]))


FURTHER = {"begun": gzip.compress(TEXT)[:9], "cut": gzip.compress(TEXT)[:-1], "none": b"\x1f\x8b no"}


@pytest.mark.parametrize("more", FURTHER.values(), ids=FURTHER)
def test_a_further_member_that_does_not_end_is_damaged(more: bytes) -> None:
    with pytest.raises(Damaged):
        list(unpacked("gzip", [gzip.compress(TEXT) + more]))


def test_a_few_bytes_that_hold_many_are_given_piece_by_piece() -> None:
    pieces = [len(each) for each in unpacked("gzip", [gzip.compress(bytes(100 * AT_ONCE))])]
    assert (max(pieces), sum(pieces)) == (AT_ONCE, 100 * AT_ONCE)


def test_each_of_many_empty_members_is_a_step_of_its_own() -> None:
    assert len(list(unpacked("gzip", [gzip.compress(b"") * 500]))) == 500
