"""Sources whose tools are described elsewhere, and may be described otherwise tomorrow: what all of them share."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from utools.errors import DefinitionError, ToolError
from utools.schema.config_schema import ConfigSchema
from utools.sources.tool_lock_file import Change, Definition, ToolLockFile, changes

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class PinnedSource(ABC):
    """Sources by name, whose tools are those that stand in the `lock` file.

    What a source offers when nobody has looked at it yet is approved, and written there. `where` is the key of the
    host's configuration; it keeps the names of one kind of source from those of another in the file.
    """

    where: str

    def __init__(self, names: Collection[str], lock: Path) -> None:
        for name in names:
            if not NAME.fullmatch(name):
                told = "a name here is 1 to 40 letters (A-Z, a-z), digits, or any of _ -"
                raise DefinitionError(told, where=self.where, value=name)
        self.names = list(names)
        self._approved = ToolLockFile(lock)

    @abstractmethod
    def offered(self, names: Sequence[str]) -> Mapping[str, list[Definition]]:
        """What these sources offer now. DefinitionError for one that cannot be asked."""

    def approved(self) -> dict[str, list[Definition]]:
        """The approved tools of each source. DefinitionError for a new one that cannot be asked."""
        if unseen := [name for name in self.names if self._approved.of(self._key(name)) is None]:
            self._write(self._usable(unseen))
        return {name: self._approved.of(self._key(name)) or [] for name in self.names}

    def changes(self, *names: str) -> list[Change]:
        """What approving these sources, or all, would change."""
        return self._changes(self._usable(names or self.names))

    def approve(self, *names: str) -> list[Change]:
        """Approve what these sources, or all, offer now; returns what that changed."""
        offered = self._usable(names or self.names)
        found = self._changes(offered)
        self._write(offered)
        return found

    def _usable(self, names: Sequence[str]) -> dict[str, list[Definition]]:
        for name in names:
            if name not in self.names:
                there = ", ".join(self.names) or "none"
                raise DefinitionError(f"there is no such source; there are {there}", where=self.where, value=name)
        offered = self.offered(names).items()
        return {name: [usable for each in found if (usable := _usable(name, each))] for name, found in offered}

    def _changes(self, offered: Mapping[str, list[Definition]]) -> list[Change]:
        before = {name: self._approved.seen(self._key(name)) for name in offered}
        return [each for name, now in offered.items() for each in changes(name, before[name], now)]

    def _write(self, offered: Mapping[str, list[Definition]]) -> None:
        self._approved.write({self._key(name): found for name, found in offered.items()})

    def _key(self, name: str) -> str:
        return f"{self.where}/{name}"


def check_unchanged(source: str, approved: Definition, now: Definition | None) -> None:
    """ToolError where a source (`mcp_servers/NAME`) no longer offers a tool, or another one than was approved."""
    if now is None:
        raise ToolError(f"{source} no longer offers the tool {approved.name}")
    if now.fingerprint != approved.fingerprint:
        raise ToolError(
            f"the tool {approved.name} is not called: its {' and '.join(now.differs(approved))} changed after the "
            f"operator had approved it; the operator approves it anew by `agent-core tools approve {source}`"
        )


def _usable(source: str, offered: Definition) -> Definition | None:
    """A definition that can be used: without an output schema that cannot, and None if its own schema cannot."""
    log = logging.getLogger(__name__)
    try:
        ConfigSchema(offered.input_schema, foreign=True, where="schema")
    except DefinitionError as error:
        log.warning("the tool %s of %s is left out: %s", offered.name, source, error)
        return None
    try:
        ConfigSchema(offered.output_schema or {}, foreign=True, where="output_schema")
    except DefinitionError as error:
        log.warning("the output of the tool %s of %s is not checked: %s", offered.name, source, error)
        return offered.model_copy(update={"output_schema": None})
    return offered
