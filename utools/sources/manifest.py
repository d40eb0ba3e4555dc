"""Manifests: a YAML or JSON file that makes a tool of an HTTP call, a Python function or a command."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import getdoc
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from utools.builtin.http_request import READS
from utools.document import Document, Place, read_document
from utools.errors import DefinitionError
from utools.files.protected_paths import protect
from utools.schema.config_schema import ConfigSchema
from utools.sources.manifest_command import Command
from utools.sources.manifest_http import HttpCall
from utools.sources.manifest_version import fingerprint, programs_of
from utools.sources.placeholder import names_in
from utools.sources.python_object import loaded
from utools.tool import Args, Execute, Tool, ToolContext

KINDS = ("http", "python", "command")
LONGEST_DESCRIPTION = 2000


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
    http: HttpCall | None = None
    python: str | None = None
    command: Command | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Manifest":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of http, python and command, not {' and '.join(given) or 'none'}")
        if self.python is None and self.schema_ is None:
            raise ValueError(f"{given[0]} needs a schema of its arguments")
        return self


def manifest_tools(path: Path, *, root: Path | str = ".", trusted: bool = False) -> list[Tool]:
    """The tools of a manifest file: one, or a list of them.

    `trusted` manifests are the host's own: only they may name Python or a command, which runs below `root`.
    DefinitionError names the file, the line and the field.
    """
    document = read_document(path, "the manifest")
    entries = document.data if isinstance(document.data, list) else [document.data]
    places: list[Place] = [(index,) for index in range(len(entries))] if isinstance(document.data, list) else [()]
    return [_tool(document, entry, place, Path(root), trusted) for entry, place in zip(entries, places, strict=True)]


def _tool(document: Document, entry: Any, place: Place, root: Path, trusted: bool) -> Tool:
    if not isinstance(entry, dict):
        raise document.error("a manifest must be an object, or a list of them", place, value=entry)
    try:
        manifest = Manifest.model_validate(entry)
    except ValidationError as error:
        raise document.refused(error, place, _keys) from None
    base = document.path.parent
    if not trusted and manifest.http is None:
        kind = "python" if manifest.python is not None else "command"
        told = "only a manifest of the host's own configuration may name Python or a command"
        raise document.error(told, (*place, kind))
    if not trusted and manifest.docs is not None:
        raise document.error("only a manifest of the host's own configuration may name a file", (*place, "docs"))
    made = _from_python(manifest, document, place)
    schema = _schema(manifest, made, document, place)
    programs = list(programs_of(manifest, base, root))
    for program in programs:
        protect(program)
    options: dict[str, Any] = {
        "code": manifest.code,
        "description": _description(manifest, made, document, place),
        "config_schema": schema,
        "effect": manifest.effect or (made.effect if made else "read" if _reads(manifest) else "write"),
        "idempotent": manifest.idempotent or (made is not None and made.idempotent),
        "output_schema": manifest.output_schema or (made.output_schema if made else None),
        "cache": manifest.cache or (made.cache if made else None),
        "fingerprint": fingerprint(manifest, programs),
    }
    try:
        if made is not None:
            return replace(made, **options)
        return Tool(execute=_with_defaults(schema, _executed(manifest, root, base)), **options)
    except DefinitionError as error:
        field = error.where.removeprefix(f"tools.{manifest.code}.")
        raise document.error(error.message, (*place, field), value=error.value) from None


def _keys(place: Place) -> list[str]:
    """The keys that there are at a place of a manifest."""
    within: dict[str | int, type[BaseModel]] = {"http": HttpCall, "command": Command}
    model = within.get(place[0], Manifest) if len(place) > 1 else Manifest
    return [field.alias or name for name, field in model.model_fields.items()]


def _from_python(manifest: Manifest, document: Document, place: Place) -> Tool | None:
    """The tool of the function that a manifest names, or the Tool itself."""
    if manifest.python is None:
        return None
    where = document.where((*place, "python"))
    found = loaded(manifest.python, document.path.parent, where)
    if isinstance(found, Tool):
        return found
    if not callable(found):
        raise DefinitionError("must name a function or a Tool", where=where, value=found)
    from utools.function_tool import from_function

    try:
        made = from_function(found, code=manifest.code)
    except DefinitionError as error:
        raise DefinitionError(f"{manifest.python}: {error.message}", where=where) from None
    return made if getdoc(found) else replace(made, description="")


def _schema(manifest: Manifest, made: Tool | None, document: Document, place: Place) -> dict[str, Any]:
    """The schema that the manifest gives, sound and with all that the call takes, else that of the signature."""
    if manifest.schema_ is None:
        return made.config_schema if made else {}
    for key, schema in (("schema", manifest.schema_), ("output_schema", manifest.output_schema)):
        try:
            ConfigSchema(schema or {}, where="")
        except DefinitionError as error:
            pointer = [int(part) if part.isdigit() else part for part in error.where.split("/")[1:]]
            raise document.error(error.message, (*place, key, *pointer)) from None
    known = manifest.schema_.get("properties", {})
    for at, name in _asked(manifest, place):
        if name not in known:
            there = ", ".join(known) or "none"
            raise document.error(f"there is no argument {name!r} in the schema; there are {there}", at)
    return manifest.schema_


def _asked(manifest: Manifest, place: Place) -> Iterator[tuple[Place, str]]:
    """The arguments that the call takes, with where."""
    dumped = manifest.model_dump(by_alias=True, include={"http", "command"})
    for at, text in _texts(dumped, place):
        yield from ((at, name) for name in names_in(text))
    for index, name in enumerate(manifest.command.paths if manifest.command else ()):
        yield (*place, "command", "paths", index), name


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(each, (*place, key))


def _description(manifest: Manifest, made: Tool | None, document: Document, place: Place) -> str:
    """What the manifest says, else the function's docstring, else the beginning of a docs file."""
    told = manifest.description or (made.description if made else "")
    if told:
        return told
    file = document.path.parent / (manifest.docs or f"{manifest.code}.md")
    if manifest.docs is None and not file.is_file():
        wanted = f"say what the tool does: by description, by a docstring, or in a file {file.name} beside this one"
        raise document.error(wanted, (*place, "description"))
    protect(file)
    try:
        paragraphs = file.read_text("utf-8").split("\n\n")
    except (OSError, UnicodeDecodeError) as error:
        raise document.error(f"{file.name} cannot be read: {error}", (*place, "docs")) from None
    first = next((each.strip() for each in map(_unheaded, paragraphs) if each.strip()), "")
    if not first:
        raise document.error(f"{file.name} says nothing of the tool", (*place, "docs"))
    return first[:LONGEST_DESCRIPTION]


def _unheaded(paragraph: str) -> str:
    return "\n".join(line for line in paragraph.splitlines() if not line.startswith("#"))


def _reads(manifest: Manifest) -> bool:
    """Whether the call changes nothing, as far as can be told: GET does not, a command may."""
    return manifest.http is not None and manifest.http.method in READS


def _executed(manifest: Manifest, root: Path, base: Path) -> Execute:
    if manifest.command is not None:
        return manifest.command.executed(root, base)
    assert manifest.http is not None  # or there would be a made one
    reads = manifest.effect == "read" or _reads(manifest)
    return manifest.http.executed(reads=reads, checked=manifest.output_schema is not None)


def _with_defaults(schema: Mapping[str, Any], execute: Execute) -> Execute:
    """What the schema gives as a default is put in where the model gave nothing."""
    properties = schema.get("properties", {}).items()
    defaults = {name: each["default"] for name, each in properties if isinstance(each, dict) and "default" in each}

    async def completed(args: Args, context: ToolContext) -> Any:
        return await execute({**defaults, **args}, context)

    return completed
