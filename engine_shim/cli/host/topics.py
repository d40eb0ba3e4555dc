"""The command help: what the words mean, and the page of a recipe, from the READMEs of this package."""

import re
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

import typer

from engine_shim.cli import output
from utools.lazy_pattern import lazy_compile
from utools.schema.faults import hint

RECIPES, WORDS = "RECIPES.md", "WORDS.md"
ROW = lazy_compile(r"^\| `(?P<topic>[\w-]+)` \| (?P<what>.+?) \| (?P<read>.+) \|$", re.MULTILINE)
LINK = lazy_compile(r"\[[^\]]*\]\(([^)]+)\)")
FENCE = lazy_compile(r"^(```\w*).*$", re.MULTILINE)
PACKAGE = "engine_shim"
HOW_IT_IS_BUILT = "## How it is built"
"""The heading of the part for maintainers."""


def show_topics() -> int:
    """List the topics."""
    rows = [("words", "what the words mean"), *((row["topic"], row["what"]) for row in _recipes())]
    width = max(len(topic) for topic, _ in rows)
    for topic, what in rows:
        output.line(f"{topic:<{width}}  {what}")
    output.line()
    output.line("`agent-core help TOPIC` prints one; `agent-core COMMAND --help` is about a command.")
    return output.OK


def show_topic(topic: str, program: Any) -> int:
    """Print the page of a topic, or the help of a command of this program. BadParameter for what is neither."""
    if topic == "words":
        output.line(_read(WORDS).rstrip())
        return output.OK
    rows = {row["topic"]: row["read"] for row in _recipes()}
    if topic not in rows and (command := program.command.get_command(program, topic)) is not None:
        output.line(command.get_help(type(program)(command, info_name=topic, parent=program)))
        return output.OK
    if topic not in rows:
        raise typer.BadParameter(f"there is no topic {topic!r}; {hint(topic, ['words', *rows])}")
    for link in LINK.findall(rows[topic]):
        output.line(FENCE.sub(r"\1", _section(*link.partition("#")[::2])).rstrip())
        output.line()
    return output.OK


def _recipes() -> list[re.Match[str]]:
    return [*ROW.finditer(_read(RECIPES))]


def _read(page: str) -> str:
    """Return a page by its path from this package's directory, also one of a package beside it."""
    path = PurePosixPath(page)
    package = path.parts[1] if path.parts[0] == ".." else PACKAGE
    inner = PurePosixPath(*path.parts[2:]) if path.parts[0] == ".." else path
    return files(package).joinpath(str(inner)).read_text("utf-8")


def _section(page: str, anchor: str) -> str:
    """Return the part of a page below the heading of an anchor, with the heading; without an anchor, all but the part
    for maintainers."""
    lines = _read(page or RECIPES).splitlines()
    headings = [(n, len(line) - len(line.lstrip("#"))) for n, line in _outside_code(lines) if line.startswith("#")]
    start, level = next(
        (place for place in headings if not anchor or _anchor_of(lines[place[0]]) == anchor), headings[0]
    )
    ends = (n for n, other in headings if n > start and (other <= level if anchor else lines[n] == HOW_IT_IS_BUILT))
    return "\n".join(lines[start : next(ends, len(lines))])


def _outside_code(lines: list[str]) -> list[tuple[int, str]]:
    found, inside = [], False
    for n, line in enumerate(lines):
        inside ^= line.startswith("```")
        if not inside:
            found.append((n, line))
    return found


def _anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")
