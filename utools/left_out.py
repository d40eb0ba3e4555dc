"""LeftOut: a source of tools, or one tool of a source, that a host has to do without. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """`name` is the code of the tool, or what the codes of the source's tools begin with; `where` is its place in the
    host's configuration, `why` says what is wrong, and what to do about it."""

    name: str
    where: str
    why: str

    def covers(self, code: str) -> bool:
        """Return whether a code is that of the tool, or of a tool of the source."""
        return code == self.name or code.startswith(f"{self.name}.")

    def __str__(self) -> str:
        return f"{self.name}: {self.where}: {self.why}"
