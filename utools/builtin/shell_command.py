"""`shell_command`: commands that the author has allowed, word by word; no shell reads them.

No word that a model chose leads out of the root, as it is written or through a symlink. The words of an allowed program
do not show which links it follows by itself, as `grep -r` and `tar -x` do: allow no program that follows links in a
directory whose files are not to be trusted.
"""

import os
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, takewhile
from pathlib import Path, PurePath
from typing import Any

from utools.errors import ToolError
from utools.files.protected_paths import is_store
from utools.files.sandbox import Sandbox
from utools.lazy_pattern import lazy_compile
from utools.tool import Args, Tool, ToolContext
from utools.words.text import Text, join_and

FIXED_PART = lazy_compile(r"[^*?\[]*")
SEPARATOR = lazy_compile("[=:,@]")
LONGEST_PATH = 4096
REST = "..."
"""As the last word of an allowed command: any further words, or none."""


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "argv": {
            "type": "array",
            "items": {"type": "string", "maxLength": 8192},
            "minItems": 1,
            "maxItems": 256,
            "description": "The command and its arguments, each a word of its own.",
        },
        "cwd": {
            "type": "string",
            "default": ".",
            "x-author": True,
            "x-narrow": "path",
            "description": "The directory to run in.",
        },
        "allow": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "x-author": True,
            "x-host": True,
            "x-narrow": "subset",
            "description": "Commands as they may be written, e.g. `git log --oneline *`. `*` stands for "
            "anything within a word, a last `...` for any further words; neither for an option, or a path "
            "that leads out of the directory.",
        },
    },
    "required": ["argv"],
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "exit_code": {"type": "integer"},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "truncated": {"const": True},
    },
    "additionalProperties": False,
}


def shell_command(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `shell_command`. It is off until a host presets `allow`, which a definition may narrow."""

    async def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        from asyncio import to_thread

        from utools.command import run_command

        argv, allowed = args["argv"], args.get("allow", [])
        fitting = [words for words in map(shlex.split, allowed) if fits(argv, words)]
        if not fitting:
            raise ToolError(
                "the command {command!r} is not allowed; {rule}",
                command=shlex.join(argv),
                rule=_describe_allowed(allowed),
            )
        sandbox = Sandbox(root)
        top, cwd = sandbox.directory("."), sandbox.directory(args.get("cwd", "."))
        refusals = await to_thread(lambda: [path_refusal(argv, words, cwd, top) for words in fitting])
        if all(refusals):
            raise ToolError(refusals[0] or "")
        ran = await run_command(argv, cwd=cwd)
        output: dict[str, Any] = {"exit_code": ran.exit_code, "stdout": ran.stdout, "stderr": ran.stderr}
        return {**output, "truncated": True} if ran.truncated else output

    return Tool(
        code="shell_command",
        description="Run one of the allowed commands; returns its exit code and what it wrote.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        execute=execute,
    )


def _describe_allowed(allowed: Sequence[str]) -> Text:
    if not allowed:
        return Text("the workflow's author allows none, by `allow`")
    names = [sign for sign in ("*", REST) if any(sign in command for command in allowed)]
    if not names:
        return Text("allowed are: {allowed}", allowed="; ".join(allowed))
    return Text(
        "allowed are: {allowed}; what stands for {names} is no option, and no path that leads out",
        allowed="; ".join(allowed),
        names=join_and(names),
    )


def fits(argv: Sequence[str], allowed: Sequence[str]) -> bool:
    """Return whether a command fits one that the author has allowed."""
    if any("\0" in word for word in argv) or not allowed:
        return False
    words = _patterns(allowed, len(argv))
    same_program = argv[0] == allowed[0]  # a pattern must not choose the program
    return same_program and len(argv) == len(words) and all(map(_word_fits, argv[1:], words[1:]))


def path_refusal(argv: Sequence[str], allowed: Sequence[str], cwd: Path, root: Path) -> Text | None:
    """Return why a command that fits is refused for a path in a word that the author did not write; None if it is
    not."""
    pairs = zip(argv[1:], _patterns(allowed, len(argv))[1:], strict=True)
    for word, pattern in ((word, pattern) for word, pattern in pairs if word != pattern):
        if _is_linked_out(word, pattern, cwd, root):
            return Text(
                "{word!r} leads out of the root directory of this tool, through a link; name a file inside it",
                word=word,
            )
        if _is_closed(word, pattern, cwd, root):
            return Text("{word!r} leads to what is hidden, or a store of this host; neither is for tools", word=word)
    return None


def _patterns(allowed: Sequence[str], count: int) -> Sequence[str]:
    """Return the allowed command with one pattern for each of `count` words."""
    return [*allowed[:-1], *["*"] * (count - len(allowed) + 1)] if allowed[-1] == REST else allowed


def _is_linked_out(word: str, pattern: str, cwd: Path, root: Path) -> bool:
    """Return whether a path in a word leads through a link to outside the directory that its author allows."""
    fixed = FIXED_PART.match(pattern)[0]  # type: ignore[index] # it matches the empty text too
    directory = os.path.dirname(SEPARATOR.split(fixed)[-1])
    for path in _paths(word, fixed):
        if _has_link(cwd, path):
            within = os.path.realpath(cwd / directory) if _leads_out(path) else root
            if not Path(os.path.realpath(cwd / path)).is_relative_to(within):
                return True
    return False


def _is_closed(word: str, pattern: str, cwd: Path, root: Path) -> bool:
    """Return whether a path in a word is a file that file tools would not show."""
    for path in _paths(word, FIXED_PART.match(pattern)[0]):  # type: ignore[index] # it matches the empty text too
        target = Path(os.path.realpath(cwd / path))
        top = cwd if target.is_relative_to(cwd) else root
        if target.is_relative_to(top) and os.path.lexists(target):
            hidden = any(part.startswith(".") for part in target.relative_to(top).parts)
            if hidden or is_store(target):
                return True
    return False


def _paths(word: str, fixed: str) -> set[str]:
    """Return what a program may read as a path: the word, its chosen part, the value of an option, and their parts."""
    whole = {word, word[len(fixed) :], word.partition("=")[2], word[2:] if word.startswith("-") else ""}
    return {path for text in whole for path in (text, *SEPARATOR.split(text)) if 0 < len(path) <= LONGEST_PATH}


def _has_link(cwd: Path, path: str) -> bool:
    """Return whether a link is among the steps of a path, as far as they exist."""
    steps = accumulate(PurePath(path).parts, os.path.join, initial=str(cwd))
    return any(map(os.path.islink, takewhile(os.path.lexists, steps)))


def _word_fits(word: str, pattern: str) -> bool:
    """Return whether a word fits its pattern. A word that a model chose is no option, which may write files or run
    programs, and no path that leads out.
    """
    if word == pattern:
        return True
    option = word.startswith("-") and not pattern.startswith("-")
    fixed = FIXED_PART.match(pattern)[0]  # type: ignore[index] # it matches the empty text too
    value = word[2:] if fixed == "-" else ""
    parts = [*SEPARATOR.split(word[len(fixed) :]), *SEPARATOR.split(value)]
    return fnmatchcase(word, pattern) and not option and not any(map(_leads_out, parts))


def _leads_out(part: str) -> bool:
    return part.startswith(("/", "~", "\\")) or ".." in part.replace("\\", "/").split("/")
