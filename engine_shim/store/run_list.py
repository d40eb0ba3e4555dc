"""What a list says of a run, by its first and its last record alone: it loads no engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_core.outputs import Json
from agent_core.statuses import ListedStatus, read_ended_status
from engine_shim.store.entries import RunEntry, parse_time
from engine_shim.store.run_store import DatabaseRunStore

ROOT_STRANDS = "strand NOT LIKE '%/%' AND strand NOT IN ('seal', 'control')"
_FIRST = f"SELECT strand, n, hash, data FROM rows WHERE run = ? AND n = 0 AND {ROOT_STRANDS}"
_LAST = f"SELECT strand, n, hash, data FROM rows WHERE run = ? AND {ROOT_STRANDS} ORDER BY n DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class RunOutline:
    """What a list says of a run besides its entry.

    `external` are its inputs, or an agent's `prompt`; `seconds` passed from its beginning to its end, None before
    that; `forked` is where it comes from, {run, strand, n, at?, retry?}; `agent` is the agent of the host's catalogue
    whose turn it is.
    """

    external: Json
    seconds: float | None
    forked: Json | None
    agent: str | None = None


def outline(store: DatabaseRunStore, run: str) -> RunOutline:
    """Return what a run was given, how long it took and where it comes from, as far as its journal can be read."""
    first, last = _record(store, _FIRST, run), _record(store, _LAST, run)
    forked = first.get("forked")
    began = parse_time(str((forked or {}).get("at") or first.get("at")))
    ended = parse_time(str(last["at"])) if last.get("kind") == "run_finished" else None
    seconds = (ended - began).total_seconds() if began and ended else None
    note = first.get("turn") or first.get("agent")
    agent = str(note["name"]) if isinstance(note, dict) and "name" in note else None
    return RunOutline(_external(first), seconds, forked, agent)


def origin_as_text(forked: Mapping[str, Any]) -> str:
    """Return where a forked run comes from."""
    return f"{'retry of' if forked.get('retry') else 'forked from'} {forked['run']}"


def read_beginning(run: str, first: Json) -> RunEntry:
    """Return the entry of a run that only the journal holds, by its first record: unreadable, or as yet unfinished."""
    match first:
        case {"definition": {"id": workflow, **more}, "at": at}:
            return RunEntry(run, str(workflow), str(more.get("version", "1")), "unfinished", str(at), "")
        case {"loop": loop, "at": at}:
            return RunEntry(run, str(loop), "", "unfinished", str(at), "")
        case _:
            return RunEntry(run, "?", "", "unreadable", "", "")


def complete_entry(store: DatabaseRunStore, entry: RunEntry) -> RunEntry:
    """Return the entry of a run that only the journal holds with the status that the run has now."""
    return replace(entry, status=_find_status(store, entry.run)) if entry.status == "unfinished" else entry


def _find_status(store: DatabaseRunStore, run: str) -> ListedStatus:
    last = _record(store, _LAST, run)
    if last.get("kind") == "run_finished":
        return read_ended_status(last)
    from agent_core.journal.control import waiting_calls

    try:
        return "waiting" if waiting_calls(store.journal.load(run)) else "unfinished"
    except Exception:  # whatever is recorded there, the run is listed; `verify` says what is wrong with it
        return "unreadable"


def _external(first: Json) -> Json:
    match first:
        case {"external": dict(external)}:
            return external
        case {"messages": [*messages]}:
            asked = [each.get("content") for each in messages if each.get("role") == "user"]
            return {"prompt": asked[-1]} if asked else {}
        case _:
            return {}


def _record(store: DatabaseRunStore, query: str, run: str) -> Json:
    rows = store.database.rows("rows", query, run)
    return read_record(open_data(store, run, *rows[0])) if rows else {}


def open_data(store: DatabaseRunStore, run: str, strand: str, n: int, digest: bytes, data: Any) -> Any:
    """Return what a row holds, opened by the key of its run, if it is encrypted; what cannot be read is no record."""
    if not isinstance(data, bytes) or data[:1] == b"{":
        return data
    from agent_core.journal.record import read_stored

    (row,) = store.contents.open_rows(run, [read_stored(strand, n, digest, data)])
    return row.data


def read_record(data: Any) -> Json:
    """Return the record in some bytes; empty for what is none."""
    try:
        record = json.loads(data)
    except (ValueError, TypeError):
        return {}
    return record if isinstance(record, dict) else {}
