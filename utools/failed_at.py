"""Where a mistake in a tool's own code lies: for the log of its host, not for a model."""

import os
import sysconfig
from traceback import FrameSummary, extract_tb

OURS = os.path.dirname(__file__)
PATHS = sysconfig.get_paths()
LIBRARIES = tuple(os.path.join(PATHS[name], "") for name in ("stdlib", "platstdlib", "purelib", "platlib"))
MOST = 5


def failed_at(error: BaseException) -> str:
    """The exception's type, without its words, which may hold secrets, and the lines that led to it, deepest first."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(OURS)]
    while len(frames) > 1 and frames[-1].filename.startswith(LIBRARIES):
        frames.pop()
    places = [_place(frame) for frame in reversed(frames[-MOST:])]
    return f"{type(error).__name__} at {', called at '.join(places)}" if places else type(error).__name__


def _place(frame: FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"
