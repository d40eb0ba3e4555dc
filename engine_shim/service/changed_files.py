"""FileStamps: whether the definitions in a directory have changed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SUFFIXES: Final = (".yaml", ".yml", ".json")
Stamp = tuple[int, int]
"""What changes with a file: when it was modified, and its size."""


@dataclass(slots=True)
class FileStamps:
    """The definition files of a directory, as they were when they were last looked at."""

    directory: Path
    _seen: dict[Path, Stamp] | None = field(default=None, repr=False)

    def find_changed(self) -> list[Path] | None:
        """All files, in the order of their names, if one has changed, is new or gone; None else."""
        found = dict(self._find())
        if found == self._seen:
            return None
        self._seen = found
        return list(found)

    def _find(self) -> list[tuple[Path, Stamp]]:
        if not self.directory.is_dir():
            return []
        files = sorted(path for path in self.directory.iterdir() if path.suffix in SUFFIXES and path.is_file())
        return [(path, (found.st_mtime_ns, found.st_size)) for path in files for found in [path.stat()]]
