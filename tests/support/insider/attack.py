"""Insider: somebody who can write everything on the machine of a store, and knows this program."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_core.evidence.excerpts import SALT_BYTES
from agent_core.journal.identity import read_identity
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Row, Tape, chain_row, encode, genesis, link
from agent_core.journal.signature import Keys, sign
from engine_shim.store.ledger import ENDS, GENESIS, find_head
from engine_shim.store.run_store import DatabaseRunStore
from support.insider.world import World

Records = dict[str, list[Record]]
AT = "2026-11-29T12:00:00.000Z"


def chain_anew(run: str, records: Mapping[str, Sequence[Record]]) -> Tape:
    """The rows of a run with all hashes made anew, also those by which a strand closes those below it."""
    made: Tape = {}
    for path in sorted(records, key=lambda path: (-path.count("/"), path)):
        previous, rows = genesis(run, path), list[Row]()
        for n, record in enumerate(records[path]):
            if isinstance(closes := record.get("closes"), list):
                closed = [name for name, _, _ in closes if made.get(name)]
                record = {**record, "closes": [[name, made[name][-1].hash.hex(), len(made[name])] for name in closed]}
            rows.append(chain_row(path, n, previous, record))
            previous = rows[-1].hash
        made[path] = rows
    return made


def edited(records: Records, edit: Callable[[Record], Record]) -> Records:
    return {path: [edit(each) for each in strand] for path, strand in records.items()}


@dataclass(frozen=True)
class Insider:
    """Tampers with the store of a world. `keys` are what it can seal with: the host's, where they are in its reach."""

    world: World
    keys: Keys | None

    @property
    def store(self) -> DatabaseRunStore:
        return self.world.store

    def sql(self, statement: str, *values: Any) -> None:
        with self.store.database.writing() as db:
            db.execute(statement, values)

    def read(self, run: str) -> Records:
        """The records of a run, but for its seals."""
        tape = self.store.journal.load(run)
        return {path: [row.record() for row in rows] for path, rows in tape.items() if path != SEAL}

    def change(self, run: str, kind: str, edit: Callable[[Record], Record], *, anew: bool = True) -> None:
        """Change the records of a kind; with `anew` the run is chained and sealed again."""
        if anew:
            self.write(run, edited(self.read(run), lambda each: edit(each) if each["kind"] == kind else each))
            return
        for path, rows in self.store.journal.load(run).items():
            for row in rows:
                if row.kind == kind:
                    data = encode(edit(row.record()))
                    self.sql("UPDATE rows SET data = ? WHERE run = ? AND strand = ? AND n = ?", data, run, path, row.n)

    def write(self, run: str, records: Records, *, seal: bool = True) -> None:
        """Put these records in the place of a run's, with all hashes anew, and a seal if it can be made; else the old
        ones stay."""
        old = self.store.journal.load(run) if self._has(run) else {}
        tape = chain_anew(run, records)
        seals = old.get(SEAL, [])
        if self.keys is not None and seal and (made := self.seal(run, tape, self.keys)) is not None:
            seals = [made]
        self.put(run, {**tape, SEAL: seals})

    def seal(self, run: str, tape: Tape, keys: Keys) -> Row | None:
        return sign(run, tape, keys, read_identity(self.store.database.rows), at=AT, salt=bytes(SALT_BYTES))

    def put(self, run: str, tape: Tape) -> None:
        """Put these rows in the place of a run's."""
        with self.store.database.writing() as db:
            db.execute("DELETE FROM rows WHERE run = ?", (run,))
            for rows in tape.values():
                for row in rows:
                    values = (run, row.path, row.n, row.hash, row.data)
                    db.execute("INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)", values)

    def remove(self, run: str) -> None:
        """Delete a run as if it had never been."""
        for table in ("rows", "workflow_runs", "run_hosts", "run_submissions", "run_turns"):
            self.sql(f"DELETE FROM {table} WHERE run = ?", run)

    def write_ledger(
        self, *, without: Sequence[str] = (), edit: Callable[[Record], Record] = lambda entry: entry
    ) -> None:
        """Write the ledger anew, as if the runs had always been as they are: all hashes, and no node of the tree."""
        found = self.store.database.rows("ledger", "SELECT run, data FROM ledger ORDER BY seq")
        last = {run: number for number, (run, _) in enumerate(found)}
        entries = list[tuple[str, Record]]()
        for number, (run, data) in enumerate(found):
            entry = json.loads(bytes(data))
            if run in without:
                continue
            entries.append((run, edit(self._as_it_is(run, entry) if run and last[run] == number else entry)))
        self.put_ledger(entries)

    def rename_in_ledger(self, run: str, name: str) -> None:
        """Write the ledger anew with another id of a run."""
        found = self.store.database.rows("ledger", "SELECT run, data FROM ledger ORDER BY seq")
        entries = [(each, json.loads(bytes(data))) for each, data in found]
        self.put_ledger([(name, {**told, "run": name}) if each == run else (each, told) for each, told in entries])
        self.write_ledger()

    def put_ledger(self, entries: Sequence[tuple[str, Record]]) -> None:
        previous = GENESIS
        with self.store.database.writing() as db:
            db.execute("DELETE FROM ledger")
            db.execute("DELETE FROM ledger_nodes")
            for seq, (run, entry) in enumerate(entries, 1):
                data = encode(entry)
                previous = link(previous, data)
                db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (seq, run, previous, data))

    def enter(self, run: str, like: str) -> None:
        """Enter a run at the end of the ledger, as another one was."""
        found = self.store.database.rows("ledger", "SELECT run, data FROM ledger ORDER BY seq")
        entries = [(name, json.loads(bytes(data))) for name, data in found]
        model = next(entry for name, entry in reversed(entries) if name == like)
        self.put_ledger([*entries, (run, self._as_it_is(run, {**model, "run": run}))])

    def list_as(self, run: str, like: str) -> None:
        """List a run as another one is listed."""
        for table in ("workflow_runs", "run_hosts", "run_submissions"):
            (row,) = self.store.database.rows(table, f"SELECT * FROM {table} WHERE run = ?", like)
            marks = ", ".join("?" for _ in row)
            self.sql(f"INSERT INTO {table} VALUES ({marks})", *(run if value == like else value for value in row))

    def _as_it_is(self, run: str, entry: Record) -> Record:
        """An entry with the head, the count and the root that its run has now."""
        head, count = find_head(self.store.database.rows("rows", ENDS, run))
        if not count:
            return entry
        seals = self.store.journal.load(run).get(SEAL, [])
        root = seals[-1].record().get("root") if seals else None
        told = {**entry, "head": head, "count": count, "root": root}
        return told if root is not None else {name: value for name, value in told.items() if name != "root"}

    def _has(self, run: str) -> bool:
        return bool(self.store.database.rows("rows", "SELECT 1 FROM rows WHERE run = ? LIMIT 1", run))
