"""What commands write to stdout and stderr, and their exit codes; DEFINITION covers policies as well."""

import getpass
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine_shim.cli import terminal
from utools.databases.store_address import StoreAddress, describe_address

OK, FAILED, USAGE, DEFINITION, LIMIT, AUDIT, WAITING = range(7)
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a command that drives a run."""

    store: StoreAddress | None = None
    config: Path | None = None
    as_json: bool = False
    engine: Literal["process", "temporal"] | None = None
    temporal: str | None = None

    def command(self, *words: str) -> str:
        """Return a command that a person can copy, with the options of this one, but for the password of a store."""
        store = None if self.store is None else describe_address(self.store)
        named: list[tuple[str, Path | str | None]] = [("--store", store), ("--config", self.config)]
        named += [("--engine", self.engine), ("--temporal", self.temporal if self.engine == "temporal" else None)]
        options = [word for name, value in named if value is not None for word in (name, str(value))]
        return shlex.join(["agent-core", *words, *options])


def write_file(content: str | bytes, path: str, *, as_json: bool, told: Mapping[str, Any] | None = None) -> int:
    """Write a file, or to stdout for `-`, and say where it is; in JSON with what else is told of it. BadParameter for a
    place that cannot be written."""
    data = content.encode() if isinstance(content, str) else content
    if path == "-":
        return _write_out(data, as_json=as_json)
    try:
        write_whole(Path(path), data)
    except OSError as error:
        from typer import BadParameter

        raise BadParameter(f"{path} cannot be written: {error.strerror}") from None
    return answer({**(told or {}), "path": path}, path, as_json=as_json)


def _write_out(data: bytes, *, as_json: bool) -> int:
    """Write a file's bytes to stdout as they are, also those that are no text. BadParameter beside --json."""
    if as_json:
        from typer import BadParameter

        raise BadParameter("--to - writes the file to stdout, and --json a document about it; leave one out")
    stdout = terminal.out()
    stdout.flush()
    buffer = getattr(stdout, "buffer", None)
    if buffer is None:
        stdout.write(data.decode(errors="backslashreplace"))
    else:
        buffer.write(data)
        buffer.flush()
    return OK


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, so that what was there stays where there is no room. OSError."""
    place = path.resolve()
    is_stream = path.is_relative_to("/dev") or (path.exists() and not path.is_file())
    if is_stream or not os.access(place.parent, os.W_OK):
        path.write_bytes(data)
        return
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o7777)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def answer(value: Any, *lines: str, as_json: bool) -> int:
    """Write what a command gives, as one JSON document or as lines for a person; its exit code is 0."""
    if as_json:
        document(value)
    else:
        for each in lines:
            line(each)
    return OK


def document(value: Any) -> None:
    """Write one JSON document to stdout."""
    stdout = terminal.out()
    unicode = (stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not unicode, indent=2)
    stdout.write((terminal.visible_json(text) if stdout.isatty() else text) + "\n")


def line(text: str = "") -> None:
    """Write one line of plain text to stdout; a terminal is shown what would steer it as text."""
    stdout = terminal.out()
    encoding = stdout.encoding or "utf-8"
    text = terminal.visible(text) if stdout.isatty() else text
    stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def styled_line(*parts: str | tuple[str, str]) -> None:
    """Write one line of parts, of which some have a style; only a terminal shows it."""
    stdout = terminal.out()
    if not stdout.isatty():
        line("".join(part if isinstance(part, str) else part[0] for part in parts))
        return
    from rich.console import Console
    from rich.text import Text

    shown = [
        terminal.visible(each) if isinstance(each, str) else (terminal.visible(each[0]), each[1]) for each in parts
    ]
    Console(file=stdout, highlight=False, soft_wrap=True).print(Text.assemble(*shown))


def error(message: str, *, kind: str, where: str, as_json: bool) -> None:
    """Write what went wrong: a JSON document to stdout, or a sentence to stderr."""
    if as_json:
        error_document({"kind": kind, "message": message, "where": where})
    else:
        text = f"agent-core: {where}: {message}\n" if where else f"agent-core: {message}\n"
        sys.stderr.write(terminal.visible(text))


def error_document(fields: dict[str, Any]) -> None:
    """Write what went wrong as a JSON document."""
    document({"error": fields})


def mask(text: str) -> str:
    """Return the text without keys, which somebody may have put where a name belongs."""
    from agent_core.run.secrets import Secrets

    return Secrets().redactor().text(text)


def as_text(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def in_line(text: str) -> str:
    """Return the text in one line, whole: a line break in it is shown as text."""
    return text.replace("\n", "\\n").replace("\t", "\\t")


def flatten(text: str, longest: int | None) -> str:
    """Return the text in one line, cut where it is longer."""
    flat = " ".join(text.split())
    return flat if longest is None or len(flat) <= longest else f"{flat[: longest - 1]}…"


def flatten_end(begin: str, text: str, longest: int) -> str:
    """Return a line that begins so, whole, with as much of the text in one line as has room."""
    room = longest - len(begin)
    return begin.rstrip() if room < 2 or not text else begin + flatten(text, room)


def user() -> str:
    """Return who gives this command, as journals name them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a process without a name, as in some containers
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def count(number: int, noun: str) -> str:
    """Return a number of things, in words."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Return a number of bytes, in a unit that a person reads."""
    if number < 1024:
        return count(number, "byte")
    amount, unit = number / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:,.1f} {unit}"


def list_origins(call: Mapping[str, Any], form: str) -> list[str]:
    """Return where each value of a call comes from, in one text of this form: `to ← user message 2, body ← the
    model`."""
    origins: Mapping[str, str] = call.get("origins") or {}
    told = [f"{pointer[1:]} ← {'the model' if origin == 'model' else origin}" for pointer, origin in origins.items()]
    return [form.format(", ".join(told))] if told else []
