"""is_test_file(): how the files are named that test a workflow."""

from pathlib import PurePath
from typing import Final

MARK: Final = ".test"


def is_test_file(path: PurePath) -> bool:
    """Return whether a path is that of a test file, by its name."""
    return path.stem.endswith(MARK)
