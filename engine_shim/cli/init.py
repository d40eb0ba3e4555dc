"""The command init: a workflow with a tool of its own and a test, which run at once without a key."""

import shlex
from importlib.resources import files
from pathlib import Path

import typer

from engine_shim.cli import output

QUESTION = "Where is order 17?"
IGNORE = ".gitignore"


def write_project(directory: Path, *, as_json: bool) -> int:
    """Write the files into the directory, and say what to do next. BadParameter where one of them exists."""
    templates = files("engine_shim.cli").joinpath("init_files").iterdir()
    contents = {each.name.removesuffix(".txt"): each.read_bytes() for each in templates}
    ignored = contents.pop("gitignore")
    if taken := sorted(name for name in contents if (directory / name).exists()):
        raise typer.BadParameter(
            f"{', '.join(str(directory / name) for name in taken)}: already there; name another DIR"
        )
    if not (directory / IGNORE).exists():  # a repository may have its own
        contents[IGNORE] = ignored
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            with (directory / name).open("xb") as file:
                file.write(content)
    except OSError as error:
        raise typer.BadParameter(f"{error.filename or directory} cannot be written: {error.strerror}") from None
    _write_next(directory, sorted(contents), as_json)
    return output.OK


def _write_next(directory: Path, names: list[str], as_json: bool) -> None:
    commands = [
        *([["cd", str(directory)]] if directory != Path() else []),
        ["agent-core", "run", "flow.yaml", "--input", f"question={QUESTION}"],
        ["agent-core", "show", "last"],
        ["python", "-m", "pytest", "test_flow.py"],
    ]
    lines = [shlex.join(words) for words in commands]
    if as_json:
        output.document({"directory": str(directory), "files": names, "next": lines})
        return
    output.line(f"wrote {', '.join(names)}")
    output.line()
    for line in lines:
        output.line(f"  {line}")
    output.line()
    output.line("The test needs pytest: python -m pip install pytest.")
    output.line("--model openai:gpt-4o-mini lets a real model answer; put its key, OPENAI_API_KEY=…, into .env.")
