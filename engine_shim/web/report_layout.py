"""The layout of the auditor's report as text and as a page have it: sections, tables and what stands in their cells."""

import json
from datetime import UTC
from functools import cache
from shlex import quote
from typing import Any, Final, NamedTuple

from engine_shim.report.report import Report, Table
from engine_shim.store.entries import parse_time
from engine_shim.web.bundle import STATIC

FILE: Final = STATIC / "report/layout.json"
"""Also the script of the page reads it."""
NOTHING: Final = "-"
RUN: Final = "RUN"


class Column(NamedTuple):
    """A field of a row, its heading, and the kind of its value: text, word, run, number, usd, time, counts, lines,
    seal or command."""

    field: str
    heading: str
    kind: str


class TableLayout(NamedTuple):
    """A table by its key in the report."""

    key: str
    title: str
    columns: tuple[Column, ...]


class Section(NamedTuple):
    title: str
    about: str
    tables: tuple[TableLayout, ...]


@cache
def read_layout() -> tuple[Section, ...]:
    """Return the sections of the report, in their order."""
    return tuple(
        Section(each["title"], each["about"], tuple(map(_read_table, each["tables"])))
        for each in json.loads(FILE.read_text("utf-8"))
    )


def _read_table(table: dict[str, Any]) -> TableLayout:
    return TableLayout(table["key"], table["title"], tuple(Column(*each) for each in table["columns"]))


def write_cell(row: Any, column: Column) -> str:
    """Return what stands in a cell."""
    value = getattr(row, column.field)
    match column.kind:
        case "number":
            return f"{value:,}"
        case "usd":
            return NOTHING if value is None else f"{value:.4f} USD"
        case "time":
            return write_time(value)
        case "counts":
            return ", ".join(f"{count:,} {name}" for name, count in value.items()) or NOTHING
        case "lines":
            return "; ".join(value) or NOTHING
        case _:
            return value or NOTHING


def write_time(at: str) -> str:
    """Return a time of a record in UTC, to the second; a text that is none as it is."""
    time = parse_time(at)
    return at if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def find_command(table: Table[Any]) -> str | None:
    """Return the command that shows a table, or its first row; None where each row has its own, or there are none."""
    if table.command is not None or table.each is None or not table.rows:
        return table.command
    return table.each.replace(RUN, quote(table.rows[0].run), 1)


def list_head(report: Report) -> list[tuple[str, str]]:
    """Return what the report is about."""
    since = "the beginning" if report.since is None else f"{write_time(report.since)} UTC"
    runs = f"{report.runs:,}"
    runs += f"; {report.runs_left_out:,} older ones were not looked at" if report.runs_left_out else ""
    runs += f"; {report.damaged:,} damaged, of which only the counts tell" if report.damaged else ""
    runs += f"; {report.unreadable:,} cannot be read" if report.unreadable else ""
    store = NOTHING if report.store is None else report.store
    return [
        ("Runs begun since", since),
        ("Workflow", "all" if report.workflow is None else report.workflow),
        ("Runs", runs),
        ("First and last", f"{write_time(report.first)}, {write_time(report.last)} UTC" if report.runs else NOTHING),
        ("Store", store if report.tenant is None else f"{store}, of the tenant {report.tenant}"),
        ("Made at", f"{write_time(report.made_at)} UTC, by agent-core {report.version}"),
    ]
