"""SavedFiles: which files of a directory of workflows came over HTTP, by their names and what they hold."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

NAME: Final = ".saved-over-http"
"""The list, as `sha256sum` reads one: a comment names the token that saved the file of the next line. Who reviews a
version and makes it the host's own deletes that line."""
_BY: Final = "# by "


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """The files below a directory that somebody saved over HTTP. One that was changed since is its operator's."""

    directory: Path

    def has(self, file: Path) -> bool:
        """Return whether the file is as it was saved."""
        lines = self._lines()
        return bool(lines) and _line_of(file.name, file.read_bytes()) in lines

    def measure(self) -> dict[str, int]:
        """Return the bytes of the files that were saved and are there, by the token that saved each; empty for none."""
        found, by = dict[str, int](), ""
        for line in self._lines():
            if line.startswith(_BY):
                by = line.removeprefix(_BY)
                continue
            path = self.directory / line.partition("  ")[2]
            if path.is_file():
                found[by] = found.get(by, 0) + path.stat().st_size
            by = ""
        return found

    def add(self, name: str, data: bytes, by: str) -> None:
        """Note a file, and the token that saves it, before it is written."""
        with (self.directory / NAME).open("a", encoding="utf-8") as book:
            book.write(f"{_BY}{by}\n{_line_of(name, data)}\n")

    def _lines(self) -> list[str]:
        try:
            return (self.directory / NAME).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []


def is_saved(file: Path) -> bool:
    """Return whether a file is one that somebody saved over HTTP."""
    return SavedFiles(file.parent).has(file)


def _line_of(name: str, data: bytes) -> str:
    return f"{sha256(data).hexdigest()}  {name}"
