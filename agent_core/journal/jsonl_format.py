"""The lines of a JSONL journal: written one way, read back strictly and byte for byte.

    {"run":"r1","strand":"agent","n":0,"hash":"<64 hex digits>","record":{…}}

The record is there as the bytes that were hashed. That of an encrypted store has the ciphertext, which was hashed, and
the key of its run in front of it, `"stored":"…","key":"…","record":{…}`, in Base64. A line that differs in anything
a JSON reader would overlook, such as white space, an escape or the case of a hex digit, is not a journal line.
"""

from base64 import b64decode, b64encode
from binascii import unhexlify
from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from agent_core.encryption.record_cipher import check_installed, decrypt_record
from agent_core.errors import JournalError, Unreadable
from agent_core.journal.record import ERASED, Row
from utools.lazy_pattern import lazy_compile

RECORD: Final = b',"record":'
"""What precedes the record; within a JSON string its quotes would be escaped."""
_BEGIN: Final = b'{"run":"'
_STRING: Final = rb'("[^"\\]*(?:\\.[^"\\]*)*")'
_LINE: Final = lazy_compile(
    rb'\{"run":%b,"strand":%b,"n":(0|[1-9][0-9]{0,17}),"hash":"([0-9a-f]{64})"%b,"record":(\{.*\})\}'
    % (_STRING, _STRING, rb'(?:,"stored":"([A-Za-z0-9+/]*={0,2})","key":"([A-Za-z0-9+/]*={0,2})")?')
)


class Line(NamedTuple):
    """One whole line of the file; `row` is None when it is not a journal line."""

    number: int
    run: str = ""
    row: Row | None = None


def write_line(run: str, row: Row, key: bytes | None = None) -> bytes:
    """Return the line that holds a row, with its newline; `key` is that of a run which is encrypted. Unreadable for one
    that cannot be read here."""
    sealed = b""
    if row.stored is not None:
        if key is None:
            raise Unreadable(run, erased=row.data == ERASED)
        sealed = b',"stored":"%b","key":"%b"' % (b64encode(row.stored), b64encode(key))
    return b'{"run":%b,"strand":%b,"n":%d,"hash":"%b"%b,"record":%b}\n' % (
        orjson.dumps(run),
        orjson.dumps(row.path),
        row.n,
        row.hash.hex().encode(),
        sealed,
        row.data,
    )


def read_lines(data: bytes, first: int = 1) -> Iterator[Line]:
    """Yield the whole lines of `data`, numbered from `first`. What follows the last newline is left out as a torn line.

    It is not when no writer can have begun such a line: then it is somebody else's data. Zeros behind whole
    lines are what a file system leaves of a line whose bytes it lost with the power.
    """
    texts: dict[bytes, str | None] = {}
    *whole, torn = data.split(b"\n")
    is_lost = not torn.strip(b"\0") and (whole or first > 1)
    if torn[: len(_BEGIN)] != _BEGIN[: len(torn)] and not is_lost:
        whole.append(torn)
    for number, raw in enumerate(whole, first):
        match = _LINE.fullmatch(raw)
        if match is None:
            yield Line(number)
            continue
        of_run, of_strand, n, digest, stored, key, record = match.groups()
        run = texts[of_run] if of_run in texts else _decode_text(texts, of_run)
        path = texts[of_strand] if of_strand in texts else _decode_text(texts, of_strand)
        if run is None or path is None or (stored is not None and not _is_record_of(path, int(n), stored, key, record)):
            yield Line(number)
        else:
            ciphertext = None if stored is None else b64decode(stored)
            yield Line(number, run, Row(path, int(n), unhexlify(digest), record, ciphertext))


def _is_record_of(path: str, n: int, stored: bytes, key: bytes, record: bytes) -> bool:
    """Return whether this is the record that was encrypted by a key. DefinitionError without the library."""
    check_installed("journal")
    try:
        return decrypt_record(b64decode(key), path, n, b64decode(stored)) == record
    except (JournalError, ValueError):
        return False


def _decode_text(texts: dict[bytes, str | None], raw: bytes) -> str | None:
    """Return what a JSON string says, or None unless it is written as `write_line` writes it; remembered in `texts`."""
    try:
        text: str | None = orjson.loads(raw)
    except orjson.JSONDecodeError:
        text = None
    texts[raw] = text if text is not None and orjson.dumps(text) == raw else None
    return texts[raw]
