"""Manifests: a YAML or JSON file that makes a tool of an HTTP call, a Python function or a command."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import file_digest
from inspect import getdoc
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from utools.builtin.http_request import READS
from utools.command import check_program
from utools.document import Document, read_document
from utools.errors import DefinitionError
from utools.files.protected_paths import protect
from utools.function_tool import from_function
from utools.json_text import digest_json
from utools.schema.config_schema import ConfigSchema
from utools.schema.model_faults import Position, keys_of
from utools.sources.manifest_command import Command
from utools.sources.manifest_http import HttpCall
from utools.sources.manifest_poll import KEY, STARTED
from utools.sources.placeholder import find_names
from utools.sources.python_object import load_object
from utools.tool import Args, Check, Execute, Tool, ToolContext

KINDS = ("http", "python", "command")
LONGEST_DESCRIPTION = 2000
SCRIPTS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua", ".jar", ".sql", ".jq", ".awk")
"""How the name of a script ends that a command runs by an interpreter."""


class Manifest(BaseModel):
    """One tool. `schema` is that of its arguments; `docs` a file that describes it, where nothing else does."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    code: str = Field(pattern=r"^[A-Za-z0-9_.:\-]{1,128}$")
    description: str | None = Field(None, min_length=1)
    docs: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    output_schema: dict[str, Any] | None = None
    effect: Literal["read", "write"] | dict[str, Any] | None = None
    idempotent: bool = False
    cache: dict[str, float] | None = None
    examples: list[dict[str, Any]] = []
    http: HttpCall | None = None
    python: str | None = None
    command: Command | None = None

    @model_validator(mode="after")
    def _check_one_kind(self) -> "Manifest":
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise ValueError(f"give one of http, python and command, not {' and '.join(kinds) or 'none'}")
        if self.python is None and self.schema_ is None:
            raise ValueError(f"{kinds[0]} needs a schema of its arguments")
        return self

    @property
    def kind(self) -> str:
        """Which of KINDS it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def reads(self) -> bool:
        """Whether the call itself changes nothing: a GET does not, a command may."""
        return self.http is not None and self.http.method in READS


@dataclass(frozen=True, slots=True)
class _Entry:
    """One manifest of a document, and the position in it, for errors."""

    manifest: Manifest
    document: Document
    position: Position

    @property
    def base(self) -> Path:
        """The directory that the manifest lies in."""
        return self.document.path.parent

    def error(self, message: str, *keys: str | int, **value: Any) -> DefinitionError:
        return self.document.error(message, (*self.position, *keys), **value)


def manifest_tools(path: Path, *, root: Path | str = ".", trusted: bool = False) -> list[Tool]:
    """Return the tools of a manifest file: one, or a list of them.

    `trusted` manifests are the host's own: only they may name Python or a command, which runs below `root`.
    DefinitionError names the file, the line and the field.
    """
    document = read_document(path, "the manifest")
    if isinstance(document.data, list):
        entries: dict[Position, Any] = {(index,): each for index, each in enumerate(document.data)}
    else:
        entries = {(): document.data}
    return [_make_tool(_read_entry(document, each, at, trusted=trusted), Path(root)) for at, each in entries.items()]


def _read_entry(document: Document, data: Any, position: Position, *, trusted: bool) -> _Entry:
    if not isinstance(data, dict):
        raise document.error("a manifest must be an object, or a list of them", position, value=data)
    try:
        entry = _Entry(Manifest.model_validate(data), document, position)
    except ValidationError as error:
        raise document.explain(error, position, keys_of(Manifest)) from None
    if not trusted and entry.manifest.kind != "http":
        refusal = "only a manifest of the host's own configuration may name Python or a command"
        raise entry.error(refusal, entry.manifest.kind)
    if not trusted and entry.manifest.docs is not None:
        raise entry.error("only a manifest of the host's own configuration may name a file", "docs")
    return entry


def _make_tool(entry: _Entry, root: Path) -> Tool:
    manifest = entry.manifest
    function = _load_python(entry)
    schema = _check_schema(entry) if manifest.schema_ is not None else function.config_schema if function else {}
    programs = list(find_programs(manifest, entry.base, root))
    for program in programs:
        protect(program)
    options: dict[str, Any] = {
        "code": manifest.code,
        "description": _describe(entry, function),
        "config_schema": schema,
        "effect": manifest.effect or (function.effect if function else "read" if manifest.reads else "write"),
        "idempotent": manifest.idempotent or (function is not None and function.idempotent),
        "output_schema": manifest.output_schema or (function.output_schema if function else None),
        "cache": manifest.cache or (function.cache if function else None),
        "examples": manifest.examples or (function.examples if function else ()),
        "fingerprint": fingerprint(manifest, programs),
    }
    try:
        if function is not None:
            return replace(function, **options)
        execute = _fill_defaults(schema, _make_execute(entry, root))
        return Tool(execute=execute, check=_make_check(entry), **options)
    except DefinitionError as error:
        field = error.where.removeprefix(f"tools.{manifest.code}.")
        raise entry.error(error.message, field, value=error.value) from None


def _load_python(entry: _Entry) -> Tool | None:
    """Return the tool of the function that a manifest names, or the Tool itself; None for another kind of manifest."""
    reference = entry.manifest.python
    if reference is None:
        return None
    where = entry.document.where((*entry.position, "python"))
    found = load_object(reference, entry.base, where)
    if isinstance(found, Tool):
        return found
    if not callable(found):
        raise DefinitionError("must name a function or a Tool", where=where, value=found)
    try:
        function: Tool = from_function(found, code=entry.manifest.code)
    except DefinitionError as error:
        raise DefinitionError(f"{reference}: {error.message}", where=where) from None
    return function if getdoc(found) else replace(function, description="")


def _check_schema(entry: _Entry) -> dict[str, Any]:
    """Return the manifest's schema, if it is valid and has every argument that the call takes."""
    manifest = entry.manifest
    schema = manifest.schema_ or {}
    for key, each in (("schema", schema), ("output_schema", manifest.output_schema or {})):
        try:
            ConfigSchema(each, where="")
        except DefinitionError as error:
            pointer = [int(part) if part.isdigit() else part for part in error.where.split("/")[1:]]
            raise entry.error(error.message, key, *pointer) from None
    properties = schema.get("properties", {})
    for position, name in _find_arguments(manifest):
        if name not in properties and not _is_of_call(name, position):
            known = ", ".join(properties) or "none"
            raise entry.error(f"there is no argument {name!r} in the schema; there are {known}", *position)
    return schema


def _find_arguments(manifest: Manifest) -> Iterator[tuple[Position, str]]:
    """Yield the arguments that the call takes, each with its position."""
    fields = manifest.model_dump(by_alias=True, include={"http", "command"})
    for position, text in _find_texts(fields, ()):
        yield from ((position, name) for name in find_names(text))
    for index, name in enumerate(manifest.command.paths if manifest.command else ()):
        yield ("command", "paths", index), name


def _is_of_call(name: str, position: Position) -> bool:
    """Return whether a placeholder stands for something else than an argument: the key of an HTTP call, or a part of
    its first answer."""
    return position[0] == "http" and (name == KEY or ("poll" in position and name.startswith(STARTED)))


def _find_texts(value: Any, position: Position) -> Iterator[tuple[Position, str]]:
    if isinstance(value, str):
        yield position, value
    elif isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _find_texts(each, (*position, key))


def _describe(entry: _Entry, function: Tool | None) -> str:
    """Return the manifest's description, else the function's docstring, else the beginning of a docs file."""
    manifest = entry.manifest
    if description := manifest.description or (function.description if function else ""):
        return description
    file = entry.base / (manifest.docs or f"{manifest.code}.md")
    if manifest.docs is None and not file.is_file():
        wanted = f"say what the tool does: by description, by a docstring, or in a file {file.name} beside this one"
        raise entry.error(wanted, "description")
    protect(file)
    try:
        paragraphs = file.read_text("utf-8").split("\n\n")
    except (OSError, UnicodeDecodeError) as error:
        raise entry.error(f"{file.name} cannot be read: {error}", "docs") from None
    first = next((each.strip() for each in map(_strip_headings, paragraphs) if each.strip()), "")
    if not first:
        raise entry.error(f"{file.name} says nothing of the tool", "docs")
    return first[:LONGEST_DESCRIPTION]


def _strip_headings(paragraph: str) -> str:
    return "\n".join(line for line in paragraph.splitlines() if not line.startswith("#"))


def _make_execute(entry: _Entry, root: Path) -> Execute:
    manifest = entry.manifest
    if manifest.command is not None:
        return manifest.command.make_execute(root, entry.base)
    assert manifest.http is not None  # a manifest that names Python has a function
    reads = manifest.effect == "read" or manifest.reads
    checked = manifest.output_schema is not None
    return manifest.http.make_execute(reads=reads, checked=checked, idempotent=manifest.idempotent)


def _make_check(entry: _Entry) -> Check | None:
    command, owner = entry.manifest.command, f"the tool {entry.manifest.code}"
    if command is None:
        return None
    return lambda args: check_program(command.argv[0], entry.base, owner)


def _fill_defaults(schema: Mapping[str, Any], execute: Execute) -> Execute:
    """`execute` with the schema's defaults for the arguments that were not given."""
    properties = schema.get("properties", {}).items()
    defaults = {name: each["default"] for name, each in properties if isinstance(each, dict) and "default" in each}

    async def execute_with_defaults(args: Args, context: ToolContext) -> Any:
        return await execute({**defaults, **args}, context)

    return execute_with_defaults


def fingerprint(manifest: Manifest, programs: Iterable[Path]) -> str:
    """SHA-256 over the manifest, whatever the order of its keys, and the files that it runs.

    It does not depend on where the manifest lies, nor on what such a file reads or imports in turn.
    """
    fields = manifest.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return digest_json([fields, [_hash_file(path) for path in programs]])


def find_programs(manifest: Manifest, base: Path, root: Path) -> Iterator[Path]:
    """Yield the files that a tool runs: programs and Python files named by their paths, modules, interpreted
    scripts."""
    if manifest.command is not None:
        if os.sep in manifest.command.argv[0]:
            yield base / manifest.command.argv[0]
        scripts = (word for word in manifest.command.argv[1:] if word.endswith(SCRIPTS))
        yield from filter(os.path.isfile, (root / manifest.command.cwd / word for word in scripts))
    if manifest.python is not None:
        module = manifest.python.rpartition(":")[0]
        file = base / module if module.endswith(".py") else getattr(sys.modules.get(module), "__file__", None)
        if file is not None:
            yield Path(file)


def _hash_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:  # a program that is not there yet, or may only be run
        return None
