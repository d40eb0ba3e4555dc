"""Compressed HTTP bodies: the same content however they arrive, in bounded pieces, and whole."""

import gzip
import zlib
from collections.abc import Iterator

import pytest

from utools.net.decompress import PIECE, CorruptBody, Decompressor

TEXT = b"hello world" * 10
WAYS: dict[str, tuple[str, bytes, bytes]] = {
    "gzip": ("gzip", gzip.compress(TEXT), TEXT),
    "members": ("x-gzip", gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(TEXT), TEXT * 2),
    "padded": ("gzip", gzip.compress(TEXT) + bytes(20), TEXT),
    "padded_between": ("gzip", gzip.compress(TEXT) + bytes(3) + gzip.compress(TEXT), TEXT * 2),
    "lines_behind": ("gzip", gzip.compress(TEXT) + b"\r\n", TEXT),
    "deflate": ("deflate", zlib.compress(TEXT), TEXT),
    "bare": ("deflate", zlib.compress(TEXT, wbits=-15), TEXT),
    "bare_and_stored": ("deflate", zlib.compress(TEXT, 0, wbits=-15), TEXT),
    "other_than_it_says": ("deflate", gzip.compress(TEXT), TEXT),
    "plain": ("identity", TEXT, TEXT),
    "nothing": ("gzip", b"", b""),
}


def unpacked(encoding: str, parts: list[bytes]) -> Iterator[bytes]:
    body = Decompressor(encoding)
    for part in parts:
        yield from body.feed(part)
    body.finish()


@pytest.mark.parametrize(("encoding", "packed", "text"), WAYS.values(), ids=WAYS)
def test_a_body_is_the_same_whole_and_byte_by_byte(encoding: str, packed: bytes, text: bytes) -> None:
    single = [packed[at : at + 1] for at in range(len(packed))]
    assert b"".join(unpacked(encoding, [packed])) == b"".join(unpacked(encoding, single)) == text


@pytest.mark.parametrize("packed", [gzip.compress(TEXT), zlib.compress(TEXT)], ids=["gzip", "deflate"])
def test_a_body_that_is_cut_anywhere_is_damaged(packed: bytes) -> None:
    for size in range(1, len(packed)):
        with pytest.raises(CorruptBody):
            list(unpacked("deflate", [packed[:size]]))


FURTHER = {"begun": gzip.compress(TEXT)[:9], "cut": gzip.compress(TEXT)[:-1], "none": b"\x1f\x8b no"}


@pytest.mark.parametrize("more", FURTHER.values(), ids=FURTHER)
def test_a_further_member_that_does_not_end_is_damaged(more: bytes) -> None:
    with pytest.raises(CorruptBody):
        list(unpacked("gzip", [gzip.compress(TEXT) + more]))


BEHIND: dict[str, tuple[str, bytes]] = {
    "junk": ("gzip", gzip.compress(TEXT) + b"junk"),
    "half_a_magic": ("gzip", gzip.compress(TEXT) + b"\x1f"),
    "junk_behind_deflate": ("deflate", zlib.compress(TEXT) + gzip.compress(TEXT)),
}


@pytest.mark.parametrize(("encoding", "packed"), BEHIND.values(), ids=BEHIND)
def test_a_body_that_goes_on_after_its_end_is_damaged(encoding: str, packed: bytes) -> None:
    single = [packed[at : at + 1] for at in range(len(packed))]
    for parts in ([packed], single):
        with pytest.raises(CorruptBody):
            list(unpacked(encoding, parts))


def test_a_few_bytes_that_hold_many_are_given_piece_by_piece() -> None:
    pieces = [len(each) for each in unpacked("gzip", [gzip.compress(bytes(100 * PIECE))])]
    assert (max(pieces), sum(pieces)) == (PIECE, 100 * PIECE)


def test_each_of_many_empty_members_is_a_step_of_its_own() -> None:
    assert len(list(unpacked("gzip", [gzip.compress(b"") * 500]))) == 500
