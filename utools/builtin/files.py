"""`read_file` and `write_file`: text files under a root directory."""

import os
from collections.abc import Callable
from typing import Any

from utools.errors import ToolError
from utools.files.sandbox import Sandbox
from utools.tool import Args, Tool, ToolContext

MAX_READ = 16 * 2**20
MAX_WRITTEN = 4 * 2**20
MAX_TEXT = 65_536

WRITE_ROOT = {
    "type": "string",
    "x-author": True,
    "x-narrow": "path",
    "description": "The directory that may be written in, inside the host's root. `.` is all of that: then also what "
    "other programs there run, though never what this host goes by.",
}
Clean = Callable[[str], str]

ROOT = {
    "type": "string",
    "x-author": True,
    "x-narrow": "path",
    "description": "A directory inside the host's root that bounds the tool.",
}

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


def read_file(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `read_file`, which sees nothing outside `root`."""

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
        examples=[
            {
                "user": "What does notes/today.txt say?",
                "args": {"path": "notes/today.txt"},
                "output": {"path": "notes/today.txt", "text": "The lift is repaired at 9.", "total_chars": 26},
                "answer": "The lift is repaired at 9.",
            }
        ],
        execute=execute,
        effect="read",
    )


def write_file(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `write_file`, which writes nowhere outside `root`."""

    def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        data, mode = args["text"].encode(), args.get("mode", "overwrite")
        sandbox = Sandbox(root).subdirectory(args.get("root"))  # a call that was approved by an older release has none
        if len(data) > MAX_WRITTEN:
            raise ToolError("the text is larger than {mib} MiB", mib=MAX_WRITTEN // 2**20)
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
        examples=[
            {
                "user": "Write 'The lift works.' to notes/lift.txt.",
                "args": {"path": "notes/lift.txt", "text": "The lift works."},
                "output": {"path": "notes/lift.txt", "bytes": 15},
                "answer": "It stands in notes/lift.txt.",
            }
        ],
        execute=execute,
    )


def read_part(sandbox: Sandbox, path: str, offset: int, limit: int, clean: Clean) -> dict[str, Any]:
    """Part of a file's text, without secrets; `replaced` says that bytes which are not UTF-8 became U+FFFD."""
    with sandbox.open(path) as file:
        raw = file.read(MAX_READ + 1)
    if len(raw) > MAX_READ:
        raise ToolError("{path!r} is larger than {mib} MiB", path=path, mib=MAX_READ // 2**20)
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
