"""write_report_page(): the auditor's report as one HTML file without a script, which prints on A4."""

import html
from collections.abc import Iterator
from typing import Any, Final

from engine_shim.report.report import Report, Table
from engine_shim.web.bundle import read_style
from engine_shim.web.report_layout import Column, Section, TableLayout, find_command, list_head, read_layout, write_cell
from engine_shim.web.shown_text import show

STYLES: Final = ("css/base.css", "css/report.css")
TITLE: Final = "Report of recorded runs"
CLASSES: Final = {"number": "number", "usd": "number", "word": "of-word", "run": "of-run", "time": "of-time"}
"""Of kinds whose cells are not broken within a word, as texts of strangers are."""
CODE: Final = ("run", "command")
"""Kinds of cells that are written as code."""


def write_report_page(report: Report) -> str:
    """Return the report as a page that needs nothing else. Whatever a run says is a text in it."""
    style, source = read_style(*STYLES)
    policy = f"default-src 'none'; style-src {source}; form-action 'none'; base-uri 'none'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in list_head(report))
    body = "".join(part for section in read_layout() for part in _write_section(report, section))
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{TITLE}</title><style>{style}</style></head>'
        f'<body><main class="report"><h1>{TITLE}</h1><dl>{facts}</dl>{body}</main></body></html>\n'
    )


def _write_section(report: Report, section: Section) -> Iterator[str]:
    yield f"<section><h2>{_text(section.title)}</h2>"
    if section.about:
        yield f'<p class="soft">{_text(section.about)}</p>'
    for layout in section.tables:
        yield from _write_table(layout, getattr(report, layout.key))
    yield "</section>"


def _write_table(layout: TableLayout, table: Table[Any]) -> Iterator[str]:
    yield f"<h3>{_text(layout.title)}</h3>"
    if table.rows:
        heads = "".join(f"<th{_class_of(column.kind)}>{_text(column.heading)}</th>" for column in layout.columns)
        yield f'<div class="scroll-x"><table class="table"><thead><tr>{heads}</tr></thead><tbody>'
        for row in table.rows:
            cells = (f"<td{_class_of(each.kind)}>{_write_value(row, each)}</td>" for each in layout.columns)
            yield f"<tr>{''.join(cells)}</tr>"
        yield "</tbody></table></div>"
    else:
        yield "<p>None.</p>"
    if table.left_out:
        yield f"<p>And {table.left_out:,} more.</p>"
    if (command := find_command(table)) is not None:
        more = "" if table.command else ", and so for each run"
        yield f'<p class="shown-by">Shown by <code>{_text(command)}</code>{more}.</p>'


def _write_value(row: Any, column: Column) -> str:
    text = _text(write_cell(row, column))
    return f"<code>{text}</code>" if column.kind in CODE else text


def _class_of(kind: str) -> str:
    return f' class="{CLASSES[kind]}"' if kind in CLASSES else ""


def _text(text: str) -> str:
    return html.escape(show(text))
