"""`file_search`: the lines of files with a text, or else those that hold the most of its words."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from utools.builtin.files import ROOT
from utools.calls.deadline import deadline_check
from utools.errors import SandboxError, ToolError
from utools.files.sandbox import Sandbox
from utools.lazy_pattern import lazy_compile
from utools.tool import Args, Tool, ToolContext, ToolResult

MAX_FILES = 10_000
MAX_SEARCHED = 2 * 2**20
SNIPPET = 200
REDACTION = "[redacted:"
UNSPACED = lazy_compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Scripts that write no blanks between words: each two adjacent characters count as a word."""
MARKS = ".,;:!?()[]{}\"'，。；：！？、（）【】《》“”‘’"
SHARE = 3
"""A line is found that holds at least one in so many of the words."""


HIT = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}, "snippet": {"type": "string"}},
    "additionalProperties": False,
}
FOUND = {"path": "data/a.txt", "line": 3, "snippet": "invoice 12 is paid"}


class _Line(NamedTuple):
    number: int
    snippet: str
    words: int


def file_search(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `file_search`, which sees nothing outside `root`."""

    def execute(args: Args, context: ToolContext) -> ToolResult:
        sandbox = Sandbox(root).subdirectory(args.get("root"))
        directory = args.get("root_dir", "./data")
        try:
            hits, unread = search(sandbox, args["query"], directory, args.get("limit", 20), context)
        except SandboxError as error:
            if "root_dir" in args:
                raise
            raise SandboxError("{error}; say by root_dir where to search", error=error) from None
        return ToolResult(output=hits, metadata={"unread": unread} if unread else {})

    return Tool(
        code="file_search",
        description="Search text files below a directory for a text, or else for its words, ignoring case. "
        "Returns path, line and snippet.",
        config_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Text to find."},
                "root_dir": {"type": "string", "default": "./data", "description": "Directory to search."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 20, "description": "Matches."},
                "root": ROOT,
            },
            "required": ["query"],
            "examples": [{"query": "invoice"}],
        },
        output_schema={"type": "array", "items": HIT, "examples": [[FOUND]]},
        examples=[
            {
                "user": "In which room does the choir rehearse? It stands in a file.",
                "args": {"query": "choir"},
                "output": [{"path": "data/rooms.txt", "line": 3, "snippet": "The choir rehearses in room 12."}],
                "answer": "In room 12.",
            }
        ],
        execute=execute,
        effect="read",
    )


def search(
    sandbox: Sandbox, query: str, directory: str, limit: int, context: ToolContext
) -> tuple[list[dict[str, Any]], int]:
    """Return the first `limit` hits as path, line and snippet; and how many files could not be searched to their end.

    A hit is a line with the query, or, where there is none, one of those that hold the most of its words.
    """
    folded = query.casefold()
    hits, unread = _search_best(sandbox, [folded], directory, limit, context)
    words = split_words(folded)
    return (hits, unread) if hits or words == [folded] else _search_best(sandbox, words, directory, limit, context)


def split_words(text: str) -> list[str]:
    """Return the different words of a text, without the marks around them, in their order."""
    words: list[str] = []
    for word in text.split():
        for run in UNSPACED.findall(word):
            words += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        words += [part.strip(MARKS) for part in UNSPACED.split(word)]
    return list(dict.fromkeys(filter(None, words)))


def _search_best(
    sandbox: Sandbox, words: Sequence[str], directory: str, limit: int, context: ToolContext
) -> tuple[list[dict[str, Any]], int]:
    """Return the lines with the most of the words. The search ends early only where no line can have more."""
    hits: list[dict[str, Any]] = []
    best, unread, check = -(-len(words) // SHARE), 0, deadline_check(context)
    for count, path in enumerate(sandbox.files(directory)):
        if count >= MAX_FILES:
            raise ToolError(
                "{directory!r} holds more than {most} files; search a directory below it",
                directory=directory,
                most=MAX_FILES,
            )
        check()
        try:
            text, whole = _text(sandbox, path)
        except SandboxError:  # a link out of the root, a FIFO, a file that was deleted
            unread += 1
            continue
        unread += not whole
        for line in _lines(text, words, best, context.clean):
            if line.words > best:
                hits, best = [], line.words
            if line.words == best and len(hits) < limit:
                hits.append({"path": path, "line": line.number, "snippet": line.snippet})
            if best == len(words) and len(hits) == limit:
                return hits, unread
    return hits, unread


def _text(sandbox: Sandbox, path: str) -> tuple[str, bool]:
    """Return a file's text, empty for a binary file, and whether it is complete."""
    with sandbox.open(path) as file:
        raw = file.read(MAX_SEARCHED + 1)
    text = "" if b"\0" in raw[:8192] else raw[:MAX_SEARCHED].decode("utf-8", "replace")
    return text, len(raw) <= MAX_SEARCHED


def _lines(text: str, words: Sequence[str], least: int, clean: Callable[[str], str]) -> Iterator[_Line]:
    """Yield each line that holds at least so many of the words, in the text without secrets."""
    folded = text.casefold()
    if sum(word in folded for word in words) < least:
        return
    for number, line in _number_lines(text, clean(text)):
        folded = line.casefold()
        found = [at for at in map(folded.find, words) if at >= 0]
        if len(found) >= least:
            start = max(0, min(found) - SNIPPET // 2)
            yield _Line(number, line[start : start + SNIPPET].strip(), len(found))


def _number_lines(text: str, shown: str) -> Iterator[tuple[int, str]]:
    """Yield the lines without secrets, by their numbers in the file: a masked secret may have been several lines."""
    if text.count("\n") == shown.count("\n"):
        yield from enumerate(shown.split("\n"), start=1)
        return
    lines, number = text.split("\n"), 0
    for line in shown.split("\n"):
        number = 1 + next((at for at in range(number, len(lines)) if _begins(lines[at], line)), len(lines))
        yield number, line


def _begins(line: str, shown: str) -> bool:
    """Return whether a line of the file is the shown one, or begins like it up to a masked secret."""
    before, mark, _ = shown.partition(REDACTION)
    return line.startswith(before) if mark else line == shown
