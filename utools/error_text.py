"""What an error says: its own words, the operating system's words for it, and where a tool's own code went wrong."""

import os
import sysconfig
from traceback import FrameSummary, extract_tb

from utools.words.text import Text, error_words, translate

OURS = os.path.dirname(__file__)
PATHS = sysconfig.get_paths()
LIBRARIES = tuple(os.path.join(PATHS[name], "") for name in ("stdlib", "platstdlib", "purelib", "platlib"))
FRAMES = 5


def describe(error: BaseException, language: str = "en") -> str:
    """Return the error's type and its words; of code that ends the program, or its thread, the call."""
    end = error if isinstance(error, SystemExit) else error.__cause__
    if isinstance(end, SystemExit):
        return translate(Text("it called sys.exit({code})", code="" if end.code is None else repr(end.code)), language)
    kind, words = type(error).__name__, translate(error, language)
    return kind if words in ("", kind) else f"{kind}: {words}"


def os_reason(error: BaseException) -> str | None:
    """Return the operating system's words for an error or for what caused it; None if no system error is in the
    chain."""
    chain = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    return next((reason for each in reversed(chain) if (reason := _reason(each))), None)


def reason_of(error: BaseException) -> str:
    """Return the operating system's words, else the error's own, else its type."""
    return os_reason(error) or error_words(error)


def failed_at(error: BaseException) -> str:
    """Return the error's type and the lines that led to it, deepest first, for the host's log.

    The error's text is left out: it may hold secrets. So are the frames of this package, and of libraries below the
    tool's own code.
    """
    lines = [_line(frame) for frame in reversed(_own_frames(error)[-FRAMES:])]
    return f"{type(error).__name__} at {', called at '.join(lines)}" if lines else type(error).__name__


def raised_at(error: BaseException) -> str:
    """`, at FILE:LINE`: the line of an author's own code that led to an error; nothing where no such line is known."""
    frames = [] if isinstance(error, SyntaxError) else _own_frames(error)  # whose text has file and line
    return f", at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _own_frames(error: BaseException) -> list[FrameSummary]:
    """Return the lines that led to an error, down to the last one of an author's own code."""
    frames = [each for each in extract_tb(error.__traceback__) if not each.filename.startswith((OURS, "<frozen"))]
    while len(frames) > 1 and frames[-1].filename.startswith(LIBRARIES):
        frames.pop()
    return frames


def _reason(error: BaseException) -> str | None:
    """Of Python's own errors the words by number: asyncio puts an address in their place."""
    if not isinstance(error, OSError):
        return None
    by_number = type(error).__module__ == "builtins" and error.errno is not None and error.errno > 0
    return os.strerror(error.errno) if by_number and error.errno else error.strerror


def _line(frame: FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"
