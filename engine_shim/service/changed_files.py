"""FileStamps: whether the definitions in a directory have changed."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from engine_shim.errors import DefinitionError

SUFFIXES: Final = (".yaml", ".yml", ".json")
Stamp = tuple[int, int]
"""What changes with a file: when it was modified, and its size."""
UNREAD: Final[dict[str, Stamp]] = {"": (0, 0)}
"""What is seen of a directory that cannot be read."""


@dataclass(slots=True)
class FileStamps:
    """The definition files of a directory, as they were when they were last looked at."""

    directory: Path
    _seen: dict[str, Stamp] | None = field(default=None, repr=False)

    def find_changed(self) -> list[Path] | None:
        """Return all files, in the order of their names, if one has changed, is new or gone; None else. DefinitionError
        where the directory cannot be read, once."""
        try:
            found = self._find()
        except OSError as error:
            if self._seen == UNREAD:
                return None
            self._seen = UNREAD
            raise DefinitionError(f"cannot be read: {error.strerror}", where=str(self.directory)) from None
        if found == self._seen:
            return None
        self._seen = found
        return [self.directory / name for name in sorted(found)]

    def forget(self) -> None:
        """Take all files for changed at the next look."""
        self._seen = None

    def _find(self) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        if not self.directory.is_dir():
            return found
        with os.scandir(self.directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it has just gone
                    if entry.name.endswith(SUFFIXES) and entry.is_file():
                        found[entry.name] = (entry.stat().st_mtime_ns, entry.stat().st_size)
        return found
