"""`shell_command`: commands that the author has allowed, word by word; no shell reads them.

No word that a model chose leads out of the root, as it is written or through a symlink. What a program that was allowed
follows by itself, as `grep -r` follows what it finds and `tar -x` what it unpacks, cannot be told from its words: allow
no program that follows links of a directory whose files are not to be trusted.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, takewhile
from pathlib import Path, PurePath
from typing import Any

from utools.errors import ToolError
from utools.files.protected_paths import is_store
from utools.files.sandbox import Sandbox
from utools.tool import Args, Tool, ToolContext

FIXED = re.compile(r"[^*?\[]*")
SEPARATOR = re.compile("[=:,@]")
LONGEST_PATH = 4096
REST = "..."
"""As the last word of an allowed command: whatever further words, none of them too."""


def shell_command(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `shell_command`. Without the preset `allow` it runs nothing."""

    async def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        from utools.command import run_command

        argv, allowed = args["argv"], args.get("allow", [])
        fitting = [words for words in map(shlex.split, allowed) if fits(argv, words)]
        if not fitting:
            raise ToolError(f"the command {shlex.join(argv)!r} is not allowed; {_offered(allowed)}")
        sandbox = Sandbox(root)
        top, cwd = sandbox.directory("."), sandbox.directory(args.get("cwd", "."))
        out = await asyncio.to_thread(lambda: [strayed(argv, words, cwd, top) for words in fitting])
        if all(out):
            raise ToolError(str(out[0]))
        ran = await run_command(argv, cwd=cwd)
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


def _offered(allowed: Sequence[str]) -> str:
    if not allowed:
        return "the workflow's author allows none, by `allow`"
    names = [sign for sign in ("*", REST) if any(sign in command for command in allowed)]
    told = f"; what stands for {' and '.join(names)} is no option, and no path that leads out" if names else ""
    return f"allowed are: {'; '.join(allowed)}{told}"


def fits(argv: Sequence[str], allowed: Sequence[str]) -> bool:
    """Whether a command is as an author has allowed it."""
    if any("\0" in word for word in argv) or not allowed:
        return False
    words = _spread(allowed, len(argv))
    same_program = argv[0] == allowed[0]  # a pattern must not choose the program
    return same_program and len(argv) == len(words) and all(map(_word_fits, argv[1:], words[1:]))


def strayed(argv: Sequence[str], allowed: Sequence[str], cwd: Path, root: Path) -> str | None:
    """What is wrong with where the words of a command that fits lead to, other than those that are the author's own."""
    pairs = zip(argv[1:], _spread(allowed, len(argv))[1:], strict=True)
    for word, pattern in ((word, pattern) for word, pattern in pairs if word != pattern):
        if _is_linked_out(word, pattern, cwd, root):
            return f"{word!r} leads out of the root directory of this tool, through a link; name a file inside it"
        if _is_closed(word, pattern, cwd, root):
            return f"{word!r} leads to what is hidden, or a store of this host; neither is for tools"
    return None


def _spread(allowed: Sequence[str], count: int) -> Sequence[str]:
    """The patterns of a command of so many words."""
    return [*allowed[:-1], *["*"] * (count - len(allowed) + 1)] if allowed[-1] == REST else allowed


def _is_linked_out(word: str, pattern: str, cwd: Path, root: Path) -> bool:
    """Whether anything in a word, read as a path, leads through a link to outside of where its author lets it be."""
    fixed = FIXED.match(pattern)[0]  # type: ignore[index] # it matches the empty text too
    directory = os.path.dirname(SEPARATOR.split(fixed)[-1])
    for path in _paths(word, fixed):
        if _has_link(cwd, path):
            within = os.path.realpath(cwd / directory) if _leads_out(path) else root
            if not Path(os.path.realpath(cwd / path)).is_relative_to(within):
                return True
    return False


def _is_closed(word: str, pattern: str, cwd: Path, root: Path) -> bool:
    """Whether anything in a word is a path to a file that file tools would not show."""
    for path in _paths(word, FIXED.match(pattern)[0]):  # type: ignore[index] # it matches the empty text too
        place = Path(os.path.realpath(cwd / path))
        top = cwd if place.is_relative_to(cwd) else root
        if place.is_relative_to(top) and os.path.lexists(place):
            hidden = any(part.startswith(".") for part in place.relative_to(top).parts)
            if hidden or is_store(place):
                return True
    return False


def _paths(word: str, fixed: str) -> set[str]:
    """What a program may take for a path: the word, what was chosen of it, the value of an option, and their parts."""
    whole = {word, word[len(fixed) :], word.partition("=")[2], word[2:] if word.startswith("-") else ""}
    return {path for text in whole for path in (text, *SEPARATOR.split(text)) if 0 < len(path) <= LONGEST_PATH}


def _has_link(cwd: Path, path: str) -> bool:
    """Whether there is a link on the way, as far as there is a way."""
    steps = accumulate(PurePath(path).parts, os.path.join, initial=str(cwd))
    return any(map(os.path.islink, takewhile(os.path.lexists, steps)))


def _word_fits(word: str, pattern: str) -> bool:
    """A word that a model chose is no option, since some write files or run programs, and leads nowhere else."""
    if word == pattern:
        return True
    option = word.startswith("-") and not pattern.startswith("-")
    fixed = FIXED.match(pattern)[0]  # type: ignore[index] # it matches the empty text too
    value = word[2:] if fixed == "-" else ""
    parts = [*SEPARATOR.split(word[len(fixed) :]), *SEPARATOR.split(value)]
    return fnmatchcase(word, pattern) and not option and not any(map(_leads_out, parts))


def _leads_out(part: str) -> bool:
    return part.startswith(("/", "~", "\\")) or ".." in part.replace("\\", "/").split("/")
