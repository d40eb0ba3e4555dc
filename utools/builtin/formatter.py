"""`formatter`: numbers, dates, tables, and templates of an author or a model.

A template is code: it runs in jinja2's sandbox, in a process of its own with bounded time and memory, and sees only
the data of the call.
"""

import json
import os
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from utools.errors import DefinitionError, ToolError
from utools.json_text import to_text
from utools.tool import Args, Tool, ToolContext
from utools.words.text import Text, join_and

MAX_TEMPLATE = 65_536
MAX_ROWS = 1000
MAX_TEXT = 30_000
"""Characters of the text that a template may make."""
MAX_COLUMNS = 1000
MAX_TABLE = 2**20
"""Characters of a table, with those that its cells leave out."""
LARGEST = 6 * MAX_TEXT + 1000
"""Bytes of the program's output: no character takes more than 6 in JSON, and an error is short."""
PROGRAM = "render_template.py"


def formatter() -> Tool:
    """Return the tool `formatter`."""
    return Tool(
        code="formatter",
        description="Format a number, a date or a table, or render a Jinja template with data. Returns a text.",
        config_schema=SCHEMA,
        output_schema={"type": "string"},
        examples=[
            {
                "user": "How is 1234567.891 written with two decimals?",
                "args": {"number": 1234567.891, "decimals": 2},
                "output": "1,234,567.89",
                "answer": "1,234,567.89",
            }
        ],
        execute=_execute,
        effect="read",
        check=_check,
        inward=True,
    )


TEMPLATE = f"A Jinja template, which may make up to {MAX_TEXT} characters."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "number", "description": "To be formatted."},
        "decimals": {"type": "integer", "minimum": 0, "maximum": 12, "default": 2, "description": "Of the number."},
        "style": {"enum": ["plain", "grouped", "percent"], "default": "grouped", "description": "For a number."},
        "date": {"type": "string", "description": "A time in ISO 8601, or `now`."},
        "pattern": {
            "type": "string",
            "maxLength": 200,
            "default": "%Y-%m-%d %H:%M",
            "description": "For a date, as strftime writes it.",
        },
        "timezone": {"type": "string", "maxLength": 64, "description": "For a date, such as Asia/Shanghai."},
        "rows": {
            "type": "array",
            "items": {"type": "object"},
            "maxItems": MAX_ROWS,
            "description": "The rows of a Markdown table.",
        },
        "columns": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MAX_COLUMNS,
            "description": "For a table; all by default.",
        },
        "template": {"type": "string", "maxLength": MAX_TEMPLATE, "description": TEMPLATE},
        "data": {"type": "object", "description": "What the template may use, by name."},
    },
}


def _check(args: Args) -> None:
    """Read a template without running it, where jinja2 is installed."""
    if "template" not in args or find_spec("jinja2") is None:
        return
    from jinja2 import Environment, TemplateSyntaxError

    try:
        Environment(autoescape=False).parse(args["template"])
    except TemplateSyntaxError as error:
        raise DefinitionError(f"line {error.lineno}: {error.message}", where="template") from None
    except RecursionError:
        raise DefinitionError("the template is nested too deeply", where="template") from None


async def _execute(args: Args, context: ToolContext) -> str:
    from asyncio import to_thread

    kinds = [kind for kind in ("number", "date", "rows", "template") if kind in args]
    match kinds:
        case ["number"]:
            return format_number(args["number"], args.get("decimals", 2), args.get("style", "grouped"))
        case ["date"]:
            return format_date(args["date"], args.get("pattern", "%Y-%m-%d %H:%M"), args.get("timezone"))
        case ["rows"]:
            return await to_thread(format_table, args["rows"], args.get("columns"))
        case ["template"]:
            return await render(args["template"], args.get("data", {}))
        case _:
            raise ToolError("give one of number, date, rows and template; you gave {kinds}", kinds=join_and(kinds))


def format_number(value: float, decimals: int, style: str) -> str:
    """Return a number as people write it."""
    match style:
        case "percent":
            return f"{value:.{decimals}%}"
        case "plain":
            return f"{value:.{decimals}f}"
        case _:
            return f"{value:,.{decimals}f}"


def format_date(value: str, pattern: str, timezone: str | None) -> str:
    """Return a time as `strftime` writes it; a time without an offset is UTC."""
    try:
        at = datetime.now(UTC) if value == "now" else datetime.fromisoformat(value)
    except ValueError:
        raise ToolError("{value!r} is no time in ISO 8601, such as 2026-01-31T08:00:00Z", value=value) from None
    try:
        zone = ZoneInfo(timezone) if timezone else None
    except (ValueError, OSError, KeyError):
        raise ToolError(
            "there is no time zone {timezone!r}; write Europe/Berlin, Asia/Shanghai or UTC", timezone=timezone
        ) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    try:
        return (at.astimezone(zone) if zone else at).strftime(pattern)
    except (ValueError, OverflowError) as error:
        raise ToolError("the date cannot be written so: {error}", error=error) from None


def format_table(rows: list[dict[str, Any]], columns: list[str] | None) -> str:
    """Return a Markdown table; a bar in a cell is escaped, a line break becomes a space. ToolError if it is too
    large."""
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    lines, room = list[str](), MAX_TABLE
    for row in [dict(zip(names, names, strict=True)), dict.fromkeys(names, "---"), *rows]:
        line = list[str]()
        for name in names:
            text = to_text(row.get(name, ""))
            room -= len(text) + len("| ")
            if room < 0:
                raise ToolError("the table has more than {most} characters; give fewer rows or columns", most=MAX_TABLE)
            line.append(_cell(text))
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\|", "|").replace("|", "\\|")


@cache
def _read_program() -> str:
    return files("utools.builtin").joinpath(PROGRAM).read_text("utf-8")


async def render(template: str, data: dict[str, Any]) -> str:
    """Return the text that a template makes of the data; ToolError for a template that is wrong or takes too much
    time."""
    from utools.command import run_command

    stdin = json.dumps({"template": template, "data": data, "longest": MAX_TEXT}).encode()
    ran = await run_command(
        [sys.executable, "-I", "-c", _read_program()], cwd=Path(os.sep), stdin=stdin, largest=LARGEST
    )
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        raise ToolError("the template takes too much time or memory; let it do less") from None
    if "error" in answer:
        reason = Text(answer["error"], **answer.get("values", {}))
        raise ToolError("the template cannot be rendered: {reason}", reason=reason)
    return str(answer["text"])
