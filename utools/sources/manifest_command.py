"""The `command` of a manifest: a program and its arguments, without a shell, below the host's root."""

import asyncio
import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from utools.errors import ToolError
from utools.files.sandbox import Sandbox
from utools.sources.placeholder import as_text, filled, names_in, whole
from utools.tool import Args, Execute, ToolContext, ToolResult

SHOWN = 1000
"""Characters of what a failed command wrote that a model reads."""
END_OF_OPTIONS = "--"


class Command(BaseModel):
    """The command. `env` are plain values, `secret_env` names of secrets, `paths` arguments that are files below root.

    An argument that is one whole placeholder takes a list as several arguments, and goes when nothing was given.
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
    def _fixed_program(cls, value: list[str]) -> list[str]:
        if any(names_in(value[0])) or not value[0]:
            raise ValueError("the program must be fixed: its name takes no argument")
        return value

    def executed(self, root: Path, base: Path) -> Execute:
        """What the tool does; a program given by a path is found beside the manifest."""
        program = os.path.abspath(base / self.argv[0]) if os.sep in self.argv[0] else self.argv[0]

        async def execute(args: Args, context: ToolContext) -> ToolResult:
            from utools.command import run

            sandbox = Sandbox(root)
            cwd = sandbox.directory(self.cwd)
            given = {**args, **{name: _path(sandbox, args[name], cwd) for name in self.paths if name in args}}
            environment = {**self.env, **{name: context.secret(name) for name in self.secret_env}}
            argv = [program, *words(self.argv[1:], given)]
            stdin = filled(self.stdin, given).encode()
            try:
                async with asyncio.timeout(self.timeout):
                    ran = await run(argv, cwd=cwd, environment=environment, stdin=stdin)
            except TimeoutError:
                raise TimeoutError(f"the command did not end within {self.timeout:g} seconds") from None
            if ran.exit_code != 0:
                wrote = (ran.stderr.strip() or ran.stdout.strip())[-SHOWN:]
                return ToolResult(
                    False, error=f"the command ended with exit code {ran.exit_code}: {wrote}".rstrip(": ")
                )
            return ToolResult(output=self._read(ran.stdout, truncated=ran.truncated))

        return execute

    def _read(self, text: str, *, truncated: bool) -> object:
        if self.output == "json":
            try:
                return json.loads(text)
            except ValueError as error:
                cut = "its output was too long and has been cut" if truncated else f"{error}"
                raise ToolError(f"the command wrote no JSON: {cut}") from None
        return f"{text}\n[cut: the command wrote more]" if truncated else text


def words(templates: list[str], args: Args) -> list[str]:
    """The arguments; ToolError for a value that the program would take for an option."""
    made: list[str] = []
    for template in templates:
        name = whole(template)
        value = args.get(name) if name is not None else None
        if name is not None and value is None:
            continue
        several = value if isinstance(value, list) else [value]
        texts = [filled(template, args)] if name is None else [as_text(each) for each in several]
        for text, each in zip(texts, several, strict=False):
            _check_word(text, each, literal=not template.startswith("{{"), ended=END_OF_OPTIONS in made)
            made.append(text)
    return made


def _check_word(text: str, value: object, *, literal: bool, ended: bool) -> None:
    if "\0" in text:
        raise ToolError("an argument of a command cannot hold a NUL character")
    number = isinstance(value, int | float)
    if text.startswith("-") and not (literal or ended or number):
        raise ToolError(f"{text[:80]!r} would be taken for an option of the command; it must not begin with -")


def _path(sandbox: Sandbox, value: object, cwd: Path) -> object:
    """A path below the root as it is written from the command's directory, or each of several."""
    if isinstance(value, list):
        return [_path(sandbox, each, cwd) for each in value]
    if not isinstance(value, str):
        raise ToolError(f"a path must be a text, got {value!r:.80}")
    path = os.path.relpath(sandbox.directory(".") / sandbox.resolve(value), cwd)
    return f"./{path}" if path.startswith("-") else path
