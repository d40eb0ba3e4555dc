"""Rows between workflow and activities: Temporal holds where they stand in the journal, never what they say."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    PayloadCodec,
)

from agent_core.errors import Damaged
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.store import Journal

_WHOLE: Final = b"agent-core/rows"
_PLACES: Final = b"agent-core/places"
MAX_BYTES: Final = 64 * 1024 * 1024
"""How much of the journal a worker keeps in memory for its workflows."""
Key = tuple[str, str, int, bytes]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one run that are in the journal, in order by strand."""

    run: str
    rows: tuple[Row, ...]

    def tape(self) -> Tape:
        return by_path(self.rows)


class RowsConverter(EncodingPayloadConverter):
    """Rows as bytes: Temporal's own JSON sorts keys, and a record with other bytes has another hash."""

    @property
    def encoding(self) -> str:
        return _WHOLE.decode()

    def to_payload(self, value: Any) -> Payload | None:
        if not isinstance(value, Rows):
            return None
        rows = [(row.path, row.n, row.hash.hex(), row.data.decode()) for row in value.rows]
        return Payload(metadata={"encoding": _WHOLE}, data=orjson.dumps([value.run, rows]))

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Rows:
        run, rows = orjson.loads(payload.data)
        return Rows(run, tuple(Row(path, n, bytes.fromhex(hash_), data.encode()) for path, n, hash_, data in rows))


class Converter(CompositePayloadConverter):
    """What Temporal converts by default, and rows."""

    def __init__(self) -> None:
        super().__init__(RowsConverter(), *DefaultPayloadConverter.default_encoding_payload_converters)


class RowCodec(PayloadCodec):
    """Leaves of rows only [path, first n, count, last hash] on their way out, and reads them from the journal on their
    way in. Rows never change, so that a row that was read once stays valid."""

    def __init__(self, journal: Journal, *, most: int = MAX_BYTES) -> None:
        self._journal, self._most, self._size = journal, most, 0
        self._known: OrderedDict[Key, Row] = OrderedDict()

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._strip(each) if each.metadata.get("encoding") == _WHOLE else each for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [await self._fill(each) if each.metadata.get("encoding") == _PLACES else each for each in payloads]

    def _strip(self, payload: Payload) -> Payload:
        told = RowsConverter().from_payload(payload)
        self._keep(told.run, told.rows)
        spans = [(path, rows[0].n, rows[-1].hash.hex(), len(rows)) for path, rows in told.tape().items()]
        return Payload(metadata={"encoding": _PLACES}, data=orjson.dumps([told.run, spans]))

    async def _fill(self, payload: Payload) -> Payload:
        run, spans = orjson.loads(payload.data)
        rows = self._find(run, spans) or await self._read(run, spans)
        whole = RowsConverter().to_payload(Rows(run, tuple(rows)))
        assert whole is not None
        return whole

    def _find(self, run: str, spans: Sequence[Sequence[Any]]) -> list[Row]:
        """Return a single row, where it is at hand."""
        if len(spans) != 1 or spans[0][3] != 1:
            return []
        path, n, head, _ = spans[0]
        row = self._known.get((run, path, n, bytes.fromhex(head)))
        return [row] if row else []

    async def _read(self, run: str, spans: Sequence[Sequence[Any]]) -> list[Row]:
        tape = await asyncio.to_thread(self._journal.load, run)
        found = list[Row]()
        for path, first, head, count in spans:
            rows = tape.get(path, [])[first : first + count]
            if len(rows) != count or rows[-1].hash.hex() != head:
                raise Damaged(path, first + count - 1, "the journal no longer has what was read from it before")
            found += rows
        self._keep(run, [row for rows in tape.values() for row in rows])
        return found

    def _keep(self, run: str, rows: Iterable[Row]) -> None:
        for row in rows:
            key = (run, row.path, row.n, row.hash)
            if key not in self._known:
                self._known[key] = row
                self._size += len(row.data)
        while self._size > self._most:
            _, oldest = self._known.popitem(last=False)
            self._size -= len(oldest.data)


def data_converter(journal: Journal | None = None) -> DataConverter:
    """Return how values travel: for a worker with its store's journal; for a client, which reads no rows, without."""
    return DataConverter(payload_converter_class=Converter, payload_codec=RowCodec(journal) if journal else None)
