"""Ids of traces and spans, and the header `traceparent` (W3C Trace Context). Pure.

The span of a record has the same id in whichever process it is told: the id is a hash of the run's first record, the
strand, and the record's number. So a resumed run continues in its trace, and nothing of that has to be stored.
"""

from hashlib import sha256
from typing import Final, NamedTuple

from utools.lazy_pattern import lazy_compile

HEADER: Final = "traceparent"
SAMPLED: Final = 1
_TRACEPARENT: Final = lazy_compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceParent(NamedTuple):
    """A span that another one lies under. Bit 0 of the flags says whether it is recorded."""

    trace_id: int
    span_id: int
    flags: int = SAMPLED

    def write(self) -> str:
        """Return the value of the header."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def read_traceparent(text: str | None) -> TraceParent | None:
    """Return the parent that a header names; None for one that is missing or invalid.

    A version later than 00 may have more parts, which are passed over.
    """
    match = _TRACEPARENT.fullmatch((text or "").strip())
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.group(2, 3, 4))
    return TraceParent(trace_id, span_id, flags) if trace_id and span_id else None


def trace_id_of(seed: bytes) -> int:
    """Return the id of a run's trace, where no caller gave one; `seed` is the hash of the run's first record."""
    return int.from_bytes(sha256(b"trace\0" + seed).digest()[:16]) or 1


def span_id_of(seed: bytes, path: str, n: int, part: str = "") -> int:
    """Return the id of the span that record n of a strand begins. `part` tells two apart that one record begins."""
    return int.from_bytes(sha256(b"%b\0%b\0%d\0%b" % (seed, path.encode(), n, part.encode())).digest()[:8]) or 1
