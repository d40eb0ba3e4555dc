"""SavedFiles: which files of a directory of workflows came over HTTP, by their names and what they hold."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

NAME: Final = ".saved-over-http"
"""The list, as `sha256sum` writes one. Who reviews a version and makes it the host's own deletes its line."""


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """The files below a directory that somebody saved over HTTP. One that was changed since is its operator's."""

    directory: Path

    def has(self, file: Path) -> bool:
        """Whether the file is as it was saved."""
        try:
            lines = (self.directory / NAME).read_text().splitlines()
        except FileNotFoundError:
            return False
        return _line_of(file.name, file.read_bytes()) in lines

    def size(self) -> int:
        """The bytes of the files that were saved and are there."""
        try:
            names = {line.partition("  ")[2] for line in (self.directory / NAME).read_text().splitlines()}
        except FileNotFoundError:
            return 0
        return sum(path.stat().st_size for path in map(self.directory.joinpath, names) if path.is_file())

    def add(self, name: str, data: bytes) -> None:
        """Note a file before it is written."""
        with (self.directory / NAME).open("a") as book:
            book.write(f"{_line_of(name, data)}\n")


def is_saved(file: Path) -> bool:
    """Whether a file is one that somebody saved over HTTP."""
    return SavedFiles(file.parent).has(file)


def _line_of(name: str, data: bytes) -> str:
    return f"{sha256(data).hexdigest()}  {name}"
