"""The command export: a run as one HTML file, or as a journal file."""

from pathlib import Path

from agent_core.journal.jsonl_format import write_line
from engine_shim.cli import output
from engine_shim.cli.records.recorded import Recorded, find_recorded
from engine_shim.cli.records.timeline import in_time
from engine_shim.web.run_page import write_run_page
from utools.databases.store_address import StoreAddress


def export_run(run: str, store: StoreAddress | None, *, as_html: bool, target: str | None, as_json: bool) -> int:
    """Write a run's file, and say where it is. BadParameter for a place that cannot be written."""
    found, journal = _read_journal(find_recorded(run, store))
    content = write_run_page(found, journal).encode() if as_html else journal
    path = target or f"{found}.{'html' if as_html else 'jsonl'}"
    return output.write_file(content, path, as_json=as_json, told={"run": found, "bytes": len(content)})


def _read_journal(recorded: Recorded) -> tuple[str, bytes]:
    """Return the id and the lines of a run, in the order of their writing. A file is taken as it is, damage and all."""
    if recorded.store is None or recorded.run_id is None:
        found, tape = recorded.load()
        if isinstance(recorded.source, Path) and recorded.source.suffix == ".jsonl":
            return found, recorded.source.read_bytes()
        return found, b"".join(write_line(found, tape[timed.strand][timed.n]) for timed in in_time(tape))
    rows = (row for _, row in recorded.store.tail(recorded.run_id))
    return recorded.run_id, recorded.store.contents.write_lines(recorded.run_id, rows)
