"""The command report: what the runs of a period say, for an auditor, as text, as JSON or as a page."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine_shim.cli import output
from engine_shim.cli.records.audit import keys_of
from engine_shim.cli.store import open_named_store
from engine_shim.host.find import find_host_config
from engine_shim.report.build import build_report
from engine_shim.report.commands import Commands
from engine_shim.report.report import Report, Table
from engine_shim.store.entries import RunFilter
from engine_shim.web.report_layout import TableLayout, find_command, list_head, read_layout, write_cell
from utools.databases.store_address import StoreAddress, describe_address


def show_report(
    wanted: RunFilter, path: StoreAddress | None, key: Path | None, to: str | None, *, as_html: bool, as_json: bool
) -> int:
    """Write the report of these runs of the store; AUDIT where something in it does not verify."""
    keys = keys_of(find_host_config(), key)
    commands = Commands(
        None if path is None else describe_address(path),
        None if wanted.since is None else wanted.since.isoformat(),
        wanted.workflow,
        None if key is None else str(key),
    )
    with closing(open_named_store(path)) as store:
        report = build_report(store, wanted, keys=keys, commands=commands)
    if as_html:
        _write_page(report, to)
    elif as_json:
        output.document(asdict(report))
    else:
        for line in _write_lines(report):
            output.line(line)
    return output.AUDIT if report.damaged or report.faults.rows or report.ledger_faults.rows else output.OK


def _write_page(report: Report, to: str | None) -> None:
    from engine_shim.web.report_page import write_report_page

    usual = f"report-{datetime.now(UTC).date().isoformat()}.html"
    output.write_file(write_report_page(report), to or usual, as_json=False)


def _write_lines(report: Report) -> Iterator[str]:
    for name, value in list_head(report):
        yield output.in_line(f"{name}: {value}")
    for section in read_layout():
        yield from ("", section.title.upper())
        if section.about:
            yield section.about
        for layout in section.tables:
            yield from _write_table(layout, getattr(report, layout.key))


def _write_table(layout: TableLayout, table: Table[Any]) -> Iterator[str]:
    """Yield an empty line, the title, the rows and the command that shows them."""
    yield ""
    yield layout.title if table.rows else f"{layout.title}: none"
    if table.rows:
        yield from _write_rows(layout, table)
    if table.left_out:
        yield f"  and {table.left_out:,} more"
    if (command := find_command(table)) is not None:
        yield f"  $ {output.in_line(command)}" + ("" if table.command else "   # and so for each run")


def _write_rows(layout: TableLayout, table: Table[Any]) -> Iterator[str]:
    head = tuple(column.heading for column in layout.columns)
    rows = [tuple(output.in_line(write_cell(row, column)) for column in layout.columns) for row in table.rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield "  " + "  ".join(map(str.ljust, row, widths)).rstrip()
