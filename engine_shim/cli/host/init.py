"""The command init: a workflow with a tool of its own and a test, or an example to copy. Both run without a key."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import typer

from engine_shim.cli import output
from utools.lazy_pattern import lazy_compile

QUESTION = "Where is order 17?"
IGNORE = ".gitignore"
README = "README.md"
PYTHON, STORED = ".py", ".py.txt"
"""How Python ends in a project, and in this package, where it is no module."""
IGNORE_STORED = "gitignore.txt"
FIRST_COMMANDS = lazy_compile(r"^```sh run\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def write_project(directory: Path, example: str | None, *, as_json: bool) -> int:
    """Write the files into the directory, and say what to do next. BadParameter where one of them exists."""
    beginning, examples = files("engine_shim.cli.host") / "init_files", files("engine_shim") / "examples"
    contents = dict(read_files(beginning if example is None else examples / example))
    contents.pop(IGNORE_STORED, None)
    if taken := sorted(name for name in contents if (directory / name).exists()):
        raise typer.BadParameter(
            f"{', '.join(str(directory / name) for name in taken)}: already there; name another DIR"
        )
    if not (directory / IGNORE).exists():  # a repository may have its own
        contents[IGNORE] = (beginning / IGNORE_STORED).read_bytes()
    write_files(directory, contents)
    _write_next(directory, contents, example, as_json)
    return output.OK


def write_files(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Write new files below a directory, all of them or none. BadParameter where that cannot be."""
    with ExitStack() as undo:
        for name, content in contents.items():
            path = directory / name
            try:
                _write_new(path, content, undo)
            except OSError as error:
                raise typer.BadParameter(f"{error.filename or path} cannot be written: {error.strerror}") from None
        undo.pop_all()


def _write_new(path: Path, content: bytes, undo: ExitStack) -> None:
    """Write a new file, and note how it and each directory that is made for it are removed again."""
    for each in reversed(path.parents):
        if not each.exists():
            each.mkdir()
            undo.callback(_remove, each.rmdir)
    with path.open("xb") as file:
        undo.callback(_remove, path.unlink)
        file.write(content)


def _remove(remove: Callable[[], None]) -> None:
    with suppress(OSError):  # such as a directory in which somebody else has written meanwhile
        remove()


def read_files(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield each file below a directory of this package: its path in a project, and its content."""
    for each in directory.iterdir():
        if each.is_dir():
            yield from read_files(each, f"{prefix}{each.name}/")
            continue
        name = each.name.removesuffix(STORED) + PYTHON if each.name.endswith(STORED) else each.name
        yield f"{prefix}{name}", each.read_bytes()


def _write_next(directory: Path, contents: dict[str, bytes], example: str | None, as_json: bool) -> None:
    cd = [shlex.join(["cd", str(directory)])] if directory != Path() else []
    lines = cd + (_first_commands() if example is None else _commands_in(contents[README].decode()))
    if as_json:
        output.document({"directory": str(directory), "files": sorted(contents), "next": lines})
        return
    output.line(f"wrote {', '.join(sorted(contents))}")
    output.line()
    for line in lines:
        output.line(f"  {line}")
    output.line()
    if example is None:
        output.line("At the end of flow.yaml are ten patterns of nodes and edges to copy.")
        output.line("--model openai:gpt-4o-mini lets a real model answer; put its key, OPENAI_API_KEY=…, into .env.")
    else:
        output.line(f"{README} says what it shows, and how to use a real model and your own services.")


def _first_commands() -> list[str]:
    commands = [
        ["agent-core", "run", "flow.yaml", "--input", f"question={QUESTION}"],
        ["agent-core", "show", "last"],
        ["agent-core", "test", "flow.yaml"],
    ]
    return [shlex.join(words) for words in commands]


def _commands_in(readme: str) -> list[str]:
    """Return the commands of the first block that the README says to run."""
    block = FIRST_COMMANDS.search(readme)
    return block[1].splitlines() if block else []
