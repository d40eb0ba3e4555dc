"""The `command` of a manifest: a program and its arguments, run without a shell below the host's root."""

import asyncio
import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from utools.command import run_command
from utools.errors import ResultError, ToolError
from utools.files.sandbox import Sandbox
from utools.json_text import to_text
from utools.sources.placeholder import fill_text, find_names, sole_name
from utools.tool import Args, Execute, ToolContext, ToolResult
from utools.words.text import Text, translate

SHOWN = 1000
"""Characters of a failed command's output that a model reads."""
END_OF_OPTIONS = "--"
CUT = Text("[cut: the command wrote more]")


class Command(BaseModel):
    """The command. `env` holds plain values, `secret_env` names of secrets.

    `paths` names the arguments that are files below the root. A word of `argv` that is one placeholder makes several
    words of a list, and is left out when nothing was given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    argv: list[str] = Field(min_length=1)
    cwd: str = "."
    env: dict[str, str] = {}
    secret_env: list[str] = []
    stdin: str = ""
    paths: list[str] = []
    output: Literal["text", "json"] = "text"
    timeout: float = Field(30.0, gt=0, le=3600)

    @field_validator("argv")
    @classmethod
    def _check_program(cls, value: list[str]) -> list[str]:
        if any(find_names(value[0])) or not value[0]:
            raise ValueError("the program must be fixed: its name takes no argument")
        return value

    def make_execute(self, root: Path, base: Path) -> Execute:
        """Return what the tool does. The path of a program is relative to `base`, the manifest's directory."""
        program = os.path.abspath(base / self.argv[0]) if os.sep in self.argv[0] else self.argv[0]

        async def execute(args: Args, context: ToolContext) -> ToolResult:
            sandbox = Sandbox(root)
            cwd = sandbox.directory(self.cwd)
            paths = {name: _resolve(sandbox, args[name], cwd) for name in self.paths if name in args}
            environment = {**self.env, **{name: context.secret(name) for name in self.secret_env}}
            argv = [program, *build_words(self.argv[1:], args | paths)]
            stdin = fill_text(self.stdin, args | paths).encode()
            try:
                async with asyncio.timeout(self.timeout):
                    done = await run_command(argv, cwd=cwd, environment=environment, stdin=stdin)
            except TimeoutError:
                raise TimeoutError(
                    Text("the command did not end within {seconds:g} seconds", seconds=self.timeout)
                ) from None
            if done.exit_code != 0:
                output = (done.stderr.strip() or done.stdout.strip())[-SHOWN:]
                return ToolResult(False, error=_explain_exit(done.exit_code, output.rstrip(": ")))
            return ToolResult(output=self._read_output(done.stdout, context.language, truncated=done.truncated))

        return execute

    def _read_output(self, text: str, language: str, *, truncated: bool) -> object:
        if self.output == "json":
            try:
                return json.loads(text)
            except ValueError as error:
                cut = Text("its output was too long and has been cut") if truncated else error
                raise ResultError("the command wrote no JSON: {cut}", cut=cut) from None
        return f"{text}\n{translate(CUT, language)}" if truncated else text


def _explain_exit(code: int, output: str) -> Text:
    if output:
        return Text("the command ended with exit code {code}: {output}", code=code, output=output)
    return Text("the command ended with exit code {code}", code=code)


def build_words(templates: list[str], args: Args) -> list[str]:
    """Return the words after the program; ToolError for a value that the program would take for an option."""
    words: list[str] = []
    for template in templates:
        name = sole_name(template)
        value = args.get(name) if name is not None else None
        if name is not None and value is None:
            continue
        several = value if isinstance(value, list) else [value]
        texts = [fill_text(template, args)] if name is None else [to_text(each) for each in several]
        for text, each in zip(texts, several, strict=False):
            _check_word(text, each, literal=not template.startswith("{{"), ended=END_OF_OPTIONS in words)
            words.append(text)
    return words


def _check_word(text: str, value: object, *, literal: bool, ended: bool) -> None:
    if "\0" in text:
        raise ToolError("an argument of a command cannot hold a NUL character")
    number = isinstance(value, int | float)
    if text.startswith("-") and not (literal or ended or number):
        raise ToolError(
            "{text!r} would be taken for an option of the command; it must not begin with -", text=text[:80]
        )


def _resolve(sandbox: Sandbox, value: object, cwd: Path) -> object:
    """Return a path below the root, relative to the command's directory; or each of a list."""
    if isinstance(value, list):
        return [_resolve(sandbox, each, cwd) for each in value]
    if not isinstance(value, str):
        raise ToolError("a path must be a text, got {value!r:.80}", value=value)
    path = os.path.relpath(sandbox.directory(".") / sandbox.resolve(value), cwd)
    return f"./{path}" if path.startswith("-") else path
