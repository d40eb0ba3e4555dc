"""`file_search`, `read_file` and `write_file`: text files under a root directory."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from utools.calls.deadline import deadline_check
from utools.errors import SandboxError, ToolError
from utools.files.sandbox import Sandbox
from utools.tool import Args, Tool, ToolContext, ToolResult

MAX_FILES = 10_000
MAX_SEARCHED = 2 * 2**20
MAX_READ = 16 * 2**20
MAX_WRITTEN = 4 * 2**20
MAX_TEXT = 65_536
SNIPPET = 200

WRITE_ROOT = {
    "type": "string",
    "x-author": True,
    "x-narrow": "path",
    "description": "The directory that may be written in, inside the host's root. `.` is all of that: then also what "
    "other programs there run, though never what this host goes by.",
}
REDACTION = "[redacted:"
Clean = Callable[[str], str]

ROOT = {
    "type": "string",
    "x-author": True,
    "x-narrow": "path",
    "description": "A directory inside the host's root that bounds the tool.",
}

HIT = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}, "snippet": {"type": "string"}},
    "additionalProperties": False,
}
FOUND = {"path": "data/a.txt", "line": 3, "snippet": "invoice 12 is paid"}
PART = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "text": {"type": "string"},
        "offset": {"type": "integer"},
        "total_chars": {"type": "integer"},
        "truncated": {"type": "boolean"},
        "replaced": {"type": "boolean"},
    },
    "additionalProperties": False,
}
WRITTEN = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "bytes": {"type": "integer"}},
    "additionalProperties": False,
}


def file_search(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `file_search`, which sees nothing outside `root`."""

    def execute(args: Args, context: ToolContext) -> ToolResult:
        sandbox = Sandbox(root).subdirectory(args.get("root"))
        directory = args.get("root_dir", "./data")
        try:
            hits, unread = search(sandbox, args["query"], directory, args.get("limit", 20), context)
        except SandboxError as error:
            if "root_dir" in args:
                raise
            raise SandboxError(f"{error}; say by root_dir where to search") from None
        return ToolResult(output=hits, metadata={"unread": unread} if unread else {})

    return Tool(
        code="file_search",
        description="Search text files below a directory for a text, or lines with all its words, ignoring case. "
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
        execute=execute,
        effect="read",
    )


def read_file(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `read_file`, which sees nothing outside `root`."""

    def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        sandbox = Sandbox(root).subdirectory(args.get("root"))
        return read_part(sandbox, args["path"], args.get("offset", 0), args.get("limit", 16_384), context.clean)

    return Tool(
        code="read_file",
        description="Read a text file, or a part of it: `limit` characters from character `offset` on.",
        config_schema={
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "Path of the file."},
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_TEXT,
                    "default": 16_384,
                    "description": "Characters.",
                },
                "root": ROOT,
            },
            "required": ["path"],
        },
        output_schema=PART,
        execute=execute,
        effect="read",
    )


def write_file(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `write_file`, which writes nowhere outside `root`."""

    def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        data, mode = args["text"].encode(), args.get("mode", "overwrite")
        sandbox = Sandbox(root).subdirectory(args.get("root"))  # a call that was approved by an older release has none
        if len(data) > MAX_WRITTEN:
            raise ToolError(f"the text is larger than {MAX_WRITTEN // 2**20} MiB")
        sandbox.write(args["path"], data, append=mode == "append", new=mode == "new")
        return {"path": args["path"], "bytes": len(data)}

    return Tool(
        code="write_file",
        description="Write a text file, its directories made; the file is there whole or not at all.",
        config_schema={
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "Path of the file."},
                "text": {"type": "string", "description": "What to write."},
                "mode": {
                    "enum": ["overwrite", "append", "new"],
                    "default": "overwrite",
                    "description": "new: only if there is none.",
                },
                "root": WRITE_ROOT,
            },
            "required": ["path", "text", "root"],
        },
        output_schema=WRITTEN,
        execute=execute,
    )


def search(
    sandbox: Sandbox, query: str, directory: str, limit: int, context: ToolContext
) -> tuple[list[dict[str, Any]], int]:
    """The first `limit` hits as path, line and snippet; and how many files could not be searched to their end.

    A hit is a line with the query, or, where there is none, one with all of its words.
    """
    hits, unread = _search_all(sandbox, [query], directory, limit, context)
    words = query.split()
    return (hits, unread) if hits or len(words) < 2 else _search_all(sandbox, words, directory, limit, context)


def _search_all(
    sandbox: Sandbox, wanted: Sequence[str], directory: str, limit: int, context: ToolContext
) -> tuple[list[dict[str, Any]], int]:
    hits: list[dict[str, Any]] = []
    unread, check = 0, deadline_check(context)
    for count, path in enumerate(sandbox.files(directory)):
        if count >= MAX_FILES:
            raise ToolError(f"{directory!r} holds more than {MAX_FILES} files; search a directory below it")
        check()
        try:
            text, whole = _text(sandbox, path)
        except SandboxError:  # a link out of the root, a FIFO, a file that was deleted
            unread += 1
            continue
        unread += not whole
        for line, snippet in _hits(text, wanted, context.clean):
            hits.append({"path": path, "line": line, "snippet": snippet})
            if len(hits) == limit:
                return hits, unread
    return hits, unread


def read_part(sandbox: Sandbox, path: str, offset: int, limit: int, clean: Clean) -> dict[str, Any]:
    """Part of a file's text, without secrets; `replaced` says that bytes which are not UTF-8 became U+FFFD."""
    with sandbox.open(path) as file:
        raw = file.read(MAX_READ + 1)
    if len(raw) > MAX_READ:
        raise ToolError(f"{path!r} is larger than {MAX_READ // 2**20} MiB")
    decoded = raw.decode("utf-8", "replace")
    text, end = clean(decoded), offset + limit
    return {
        "path": path,
        "text": text[offset:end],
        "offset": offset,
        "total_chars": len(text),
        "truncated": offset > 0 or end < len(text),
        "replaced": "\ufffd" in decoded and decoded.encode() != raw,
    }


def _text(sandbox: Sandbox, path: str) -> tuple[str, bool]:
    """A file's text, empty for a binary file, and whether it is complete."""
    with sandbox.open(path) as file:
        raw = file.read(MAX_SEARCHED + 1)
    text = "" if b"\0" in raw[:8192] else raw[:MAX_SEARCHED].decode("utf-8", "replace")
    return text, len(raw) <= MAX_SEARCHED


def _hits(text: str, wanted: Sequence[str], clean: Clean) -> Iterator[tuple[int, str]]:
    """The number and a snippet of each line that holds all that is wanted, in the text without secrets."""
    wanted, folded = [each.casefold() for each in wanted], text.casefold()
    if not all(each in folded for each in wanted):
        return
    for number, line in _number_lines(text, clean(text)):
        found = [line.casefold().find(each) for each in wanted]
        if min(found) >= 0:
            start = max(0, min(found) - SNIPPET // 2)
            yield number, line[start : start + SNIPPET].strip()


def _number_lines(text: str, shown: str) -> Iterator[tuple[int, str]]:
    """The lines without secrets, by their numbers in the file: a masked secret may have been several lines."""
    if text.count("\n") == shown.count("\n"):
        yield from enumerate(shown.split("\n"), start=1)
        return
    lines, number = text.split("\n"), 0
    for line in shown.split("\n"):
        number = 1 + next((at for at in range(number, len(lines)) if _begins(lines[at], line)), len(lines))
        yield number, line


def _begins(line: str, shown: str) -> bool:
    """Whether a line of the file is the shown one, or begins like it up to a masked secret."""
    before, mark, _ = shown.partition(REDACTION)
    return line.startswith(before) if mark else line == shown
