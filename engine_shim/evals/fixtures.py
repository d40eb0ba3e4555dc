"""The tools that an eval has of its own: offline, and the same in every run.

`calculator`, `echo` and those that read files are the built-in ones; `http_request` has its schema and canned pages.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unicodedata import category, normalize
from urllib.parse import unquote

from engine_shim.evals.cases import Fixtures
from utools.builtin.calculator import calculator
from utools.builtin.echo import echo
from utools.builtin.file_search import file_search
from utools.builtin.files import read_file
from utools.builtin.http_request import http_request
from utools.builtin.log_transform import log_transform
from utools.tool import Args, Tool, ToolContext, ToolResult

FOUND = 2
"""How many documents a search gives."""


def fixture_tools(world: Fixtures, home: Path | None = None) -> list[Tool]:
    """Return the eval's own tools over one world, whose files lie below `home`; without it no file is found."""
    makers = (_search, _http_request, _order_lookup, _weather)
    tools = [calculator(), *_file_tools(world, home), *(make(world) for make in makers), _send_email(), echo()]
    return tools if world.output_schemas else [replace(tool, output_schema=None) for tool in tools]


def known_tools(world: Fixtures, home: Path | None = None) -> list[Tool]:
    """Return those of the eval's own tools for which the world has something to know."""
    known = {
        "search": world.documents,
        "http_request": world.pages or world.unreachable,
        "order_lookup": world.orders,
        "weather": world.weather,
        **{tool.code: world.files for tool in _file_tools(world, home)},
    }
    return [tool for tool in fixture_tools(world, home) if known.get(tool.code)]


def _file_tools(world: Fixtures, home: Path | None) -> list[Tool]:
    makers = (file_search, read_file, log_transform) if world.files else ()
    return [make(home or Path("/nonexistent")) for make in makers]


def write_files(world: Fixtures, home: Path) -> None:
    """Write the world's files, below `data`, where `file_search` looks by default."""
    for name, text in world.files.items():
        path = home / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _search(world: Fixtures) -> Tool:
    async def execute(args: Args, context: ToolContext) -> Any:
        wanted = _words(args["query"])
        ranked = sorted(world.documents, key=lambda each: -len(wanted & _words(f"{each.title} {each.text}")))
        hits = [each for each in ranked if wanted & _words(f"{each.title} {each.text}")]
        return [each.model_dump() for each in hits[:FOUND]]

    return _tool("search", "Search the company handbook.", execute, query="What to look for, in a few words.")


def _http_request(world: Fixtures) -> Tool:
    pages = {_plain_url(url): body for url, body in world.pages.items()}
    unreachable = set(map(_plain_url, world.unreachable))

    async def execute(args: Args, context: ToolContext) -> Any:
        url = _plain_url(args["url"])
        if url in unreachable:
            return ToolResult(False, error=f"could not connect to {url}: connection refused")
        if url not in pages:
            return {"status": 404, "body": "not found"}
        return {"status": 200, "body": pages[url]}

    return replace(http_request(), execute=execute, effect="read")


def _plain_url(url: str) -> str:
    """Return a URL as it is compared: with or without a slash at its end, escaped or not."""
    return unquote(url).rstrip("/")


def _order_lookup(world: Fixtures) -> Tool:
    async def execute(args: Args, context: ToolContext) -> Any:
        number = args["order_id"]
        if not re.fullmatch("[0-9]+", number):
            found = re.findall("[0-9]+", number)
            hint = f"; send {found[0]!r}" if len(found) == 1 else ""
            return ToolResult(False, error=f"give one order's id, digits only{hint}")
        if number not in world.orders:
            return ToolResult(False, error=f"there is no order {number}")
        return world.orders[number]

    return _tool("order_lookup", "Look up an order: its item, price, status.", execute, order_id="The order's id.")


def _weather(world: Fixtures) -> Tool:
    async def execute(args: Args, context: ToolContext) -> Any:
        if args["city"] not in world.weather:
            known = ", ".join(world.weather)
            return ToolResult(False, error=f"no city {args['city']!r}; there are {known}")
        return world.weather[args["city"]]

    return _tool("weather", "The weather in a city now.", execute, city="The city's name.")


def _send_email() -> Tool:
    async def execute(args: Args, context: ToolContext) -> Any:
        return "sent"

    return _tool("send_email", "Send an email.", execute, to="The address.", subject="", text="")


def _tool(code: str, description: str, execute: Any, **fields: str) -> Tool:
    properties = {name: {"type": "string", **({"description": text} if text else {})} for name, text in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}
    effect: Any = "write" if code == "send_email" else "read"
    return Tool(code=code, description=description, config_schema=schema, execute=execute, effect=effect)


def _words(text: str) -> set[str]:
    """Words of three letters and more of any other script, numbers, and pairs of Chinese characters. Letters are
    counted without their marks, and those of which a syllable of Korean is made."""
    letters = "".join(char for char in normalize("NFKD", text.casefold()) if category(char)[0] != "M")
    found = set(re.findall("[^\\W\\d_\u4e00-\u9fff]{3,}|[0-9]+", letters))
    for run in re.findall("[\u4e00-\u9fff]+", text):
        found.update(run[index : index + 2] for index in range(len(run) - 1))
    return found
