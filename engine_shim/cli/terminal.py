"""The streams of a command: what it writes, apart from what its tools print, and nothing that steers a terminal."""

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, Final, ParamSpec, TextIO, TypeVar, cast

from utools.lazy_pattern import lazy_compile

P = ParamSpec("P")
T = TypeVar("T")

_STEERING: Final = lazy_compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of text
    "\u200b\u2028\u2029\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # what nobody sees; joiners belong to scripts
    "\ud800-\udfff]"
)


class Interrupted(Exception):
    """Ctrl-C has ended a command that owes a JSON document."""


def visible(text: str) -> str:
    """Return the text with an escape in place of each character that steers a terminal, or hides: `\\x1b`,
    `\\u202e`."""
    return _STEERING.sub(_escape, text)


def visible_json(text: str) -> str:
    """Return a JSON document whose strings have JSON's escapes for the same characters: it stays the same value."""
    return _STEERING.sub(_escape_json, text)


def _escape(found: "re.Match[str]") -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_json(found: "re.Match[str]") -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


@dataclass(frozen=True, slots=True)
class _Streams:
    """A command's own streams, and those that it replaced."""

    out: TextIO
    err: TextIO
    replaced: tuple[TextIO, TextIO]


_STREAMS: ContextVar[_Streams | None] = ContextVar("_STREAMS", default=None)


def out() -> TextIO:
    """Return where a command writes its results."""
    streams = _STREAMS.get()
    return streams.out if streams else sys.stdout


def err() -> TextIO:
    """stderr as it is, for a writer that escapes what it shows."""
    streams = _STREAMS.get()
    return cast(TextIO, QuietStream(streams.err if streams else sys.stderr))


def own_err() -> TextIO:
    """Return the process's stderr itself, for a library that edits lines there."""
    streams = _STREAMS.get()
    return streams.err if streams else sys.stderr


def with_own_streams(command: Callable[P, T]) -> Callable[P, T]:
    """Return the same command; while it runs, and after, whatever else is written to stdout goes to stderr.

    `release` ends this.
    """

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> T:
        _reserve()
        try:
            return command(*args, **options)
        except KeyboardInterrupt:
            if options.get("as_json"):
                raise Interrupted from None
            raise

    return run


def release() -> None:
    """Give the process its streams back."""
    streams = _STREAMS.get()
    if streams is None:
        return
    flush()
    sys.stdout, sys.stderr = streams.replaced
    if streams.out is not sys.stdout:
        os.dup2(streams.out.fileno(), 1)
        streams.out.close()
    _STREAMS.set(None)


def flush() -> OSError | None:
    """Write out what is buffered; why it cannot be written. A reader that has gone away is no fault."""
    fault: OSError | None = None
    try:
        out().flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out().fileno())
        fault = None if isinstance(error, BrokenPipeError) else error
    err().flush()
    return fault


def _reserve() -> None:
    if _STREAMS.get() is not None:
        return
    replaced = sys.stdout, sys.stderr
    stdout, stderr = (stream or open(os.devnull, "w") for stream in replaced)  # noqa: SIM115 - one may be closed
    _STREAMS.set(_Streams(_take_over(stdout), stderr, replaced))
    sys.stdout = sys.stderr = cast(TextIO, VisibleStream(stderr))


def _take_over(stdout: TextIO) -> TextIO:
    """Return the process's stdout under another descriptor: what C code and children write to theirs goes to stderr.
    A character that its encoding does not have is written as `?`."""
    try:
        if stdout.fileno() != 1:
            return stdout
        stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError):  # no file, or stderr is closed
        return stdout
    return TextIOWrapper(open_stdout(own), encoding=stdout.encoding, errors="replace", line_buffering=stdout.isatty())


class OutputLost(OSError):
    """What a command gives cannot be written to its stdout."""


def is_of_stdout(error: OSError) -> bool:
    """Return whether stdout could not be written. Before a command begins, help and version alone are written."""
    return isinstance(error, OutputLost) or (_STREAMS.get() is None and error.filename is None)


class _Stdout(FileIO):
    """The stdout of a command. OutputLost where it cannot be written; BrokenPipeError where its reader has gone."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader has what it wants
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from None


def open_stdout(descriptor: int) -> BufferedWriter:
    """Return what writes to this descriptor, which is a command's stdout; OutputLost where that is not possible."""
    return BufferedWriter(_Stdout(descriptor, "wb"))


class QuietStream:
    """A text stream that need not be read: what cannot be written is lost, and no run ends over it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._inner.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._inner.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class VisibleStream(QuietStream):
    """The same, which shows as text what would steer a terminal; in all else it is the stream that it wraps."""

    def write(self, text: str) -> int:
        super().write(visible(text))
        return len(text)
