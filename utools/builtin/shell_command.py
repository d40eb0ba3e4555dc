"""`shell_command`: commands that the author has allowed, word by word; no shell reads them."""

import os
import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from utools.errors import ToolError
from utools.guards.sandbox import Sandbox
from utools.tool import Args, Tool, ToolContext

FIXED = re.compile(r"[^*?\[]*")
REST = "..."
"""As the last word of an allowed command: whatever further words, none of them too."""


def shell_command(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `shell_command`. Without the preset `allow` it runs nothing."""

    async def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        from utools.guards.process import run

        argv, allowed = args["argv"], args.get("allow", [])
        if not any(fits(argv, shlex.split(each)) for each in allowed):
            offered = f"allowed are: {'; '.join(allowed)}" if allowed else "the workflow's author allows none"
            raise ToolError(f"the command {shlex.join(argv)!r} is not allowed; {offered}")
        ran = await run(argv, cwd=Sandbox(root).directory(args.get("cwd", ".")))
        told: dict[str, Any] = {"exit_code": ran.exit_code, "stdout": ran.stdout, "stderr": ran.stderr}
        return {**told, "truncated": True} if ran.truncated else told

    return Tool(
        code="shell_command",
        description="Run one of the allowed commands; returns its exit code and what it wrote.",
        config_schema={
            "type": "object",
            "properties": {
                "argv": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 8192},
                    "minItems": 1,
                    "maxItems": 256,
                    "description": "The command and its arguments, each a word of its own.",
                },
                "cwd": {"type": "string", "default": ".", "x-author": True, "description": "The directory to run in."},
                "allow": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "x-author": True,
                    "description": "Commands as they may be written, e.g. `git log --oneline *`. `*` stands for "
                    "anything within a word, a last `...` for any further words; neither for an option, or a path "
                    "that leads out of the directory.",
                },
            },
            "required": ["argv"],
        },
        execute=execute,
    )


def fits(argv: Sequence[str], allowed: Sequence[str]) -> bool:
    """Whether a command is as an author has allowed it."""
    if any("\0" in word for word in argv) or not allowed:
        return False
    words = [*allowed[:-1], *["*"] * (len(argv) - len(allowed) + 1)] if allowed[-1] == REST else allowed
    same_program = argv[0] == allowed[0]  # a pattern must not choose the program
    return same_program and len(argv) == len(words) and all(map(_word_fits, argv[1:], words[1:]))


def _word_fits(word: str, pattern: str) -> bool:
    """A word that a model chose is no option, since some write files or run programs, and leads nowhere else."""
    if word == pattern:
        return True
    option = word.startswith("-") and not pattern.startswith("-")
    chosen = word[len(FIXED.match(pattern)[0]) :]  # type: ignore[index] # it matches the empty text too
    return fnmatchcase(word, pattern) and not option and not any(map(_leads_out, re.split("[=:,@]", chosen)))


def _leads_out(part: str) -> bool:
    return part.startswith(("/", "~", "\\")) or ".." in part.replace("\\", "/").split("/")
