"""What sources share whose tools are defined elsewhere, and may be defined otherwise tomorrow: approval."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from utools.errors import DefinitionError, ToolError
from utools.schema.config_schema import ConfigSchema
from utools.sources.tool_lock_file import Change, Definition, ToolLockFile, find_changes
from utools.words.text import join_and

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class Review:
    """What sources offer otherwise than was approved; `accept` approves exactly that."""

    changes: list[Change]
    accept: Callable[[], None]


class PinnedSource(ABC):
    """Sources by name. Their tools are those in the `lock` file.

    What a source offers when nobody has looked at it yet is approved, and written there. `where` is the key of the
    host's configuration; in the file it separates the names of one kind of source from those of another.
    """

    where: str

    def __init__(self, names: Collection[str], lock: Path) -> None:
        for name in names:
            if not NAME.fullmatch(name):
                allowed = "a name here is 1 to 40 letters (A-Z, a-z), digits, or any of _ -"
                raise DefinitionError(allowed, where=self.where, value=name)
        self.names = list(names)
        self._lock_file = ToolLockFile(lock)

    @abstractmethod
    def offered(self, names: Sequence[str]) -> Mapping[str, list[Definition]]:
        """What these sources offer now. DefinitionError for one that cannot be asked."""

    def approved(self) -> dict[str, list[Definition]]:
        """The approved tools of each source. DefinitionError for a new one that cannot be asked."""
        if new := [name for name in self.names if self._lock_file.approved(self._key(name)) is None]:
            self._write(self._offered_usable(new))
        return {name: self._lock_file.approved(self._key(name)) or [] for name in self.names}

    def review(self, *names: str) -> Review:
        """What an approval of these sources, or all, would change."""
        offered = self._offered_usable(names or self.names)
        return Review(self._compare(offered), lambda: self._write(offered))

    def approve(self, *names: str) -> list[Change]:
        """Approve what these sources, or all, offer now; returns what that changed."""
        review = self.review(*names)
        review.accept()
        return review.changes

    def _offered_usable(self, names: Sequence[str]) -> dict[str, list[Definition]]:
        for name in names:
            if name not in self.names:
                known = ", ".join(self.names) or "none"
                raise DefinitionError(f"there is no such source; there are {known}", where=self.where, value=name)
        offered = self.offered(names).items()
        return {name: [usable for each in found if (usable := _usable(name, each))] for name, found in offered}

    def _compare(self, offered: Mapping[str, list[Definition]]) -> list[Change]:
        before = {name: self._lock_file.recorded(self._key(name)) for name in offered}
        return [each for name, now in offered.items() for each in find_changes(name, before[name], now)]

    def _write(self, offered: Mapping[str, list[Definition]]) -> None:
        self._lock_file.write({self._key(name): found for name, found in offered.items()})

    def _key(self, name: str) -> str:
        return f"{self.where}/{name}"


def check_unchanged(source: str, approved: Definition, now: Definition | None) -> None:
    """ToolError where a source (`mcp_servers/NAME`) no longer offers a tool, or another one than was approved."""
    if now is None:
        raise ToolError("{source} no longer offers the tool {tool}", source=source, tool=approved.name)
    if now.fingerprint != approved.fingerprint:
        raise ToolError(
            "the tool {tool} is not called: its {parts} changed after the operator had approved it; "
            "the operator approves it anew by `agent-core tools approve {source}`",
            tool=approved.name,
            parts=join_and(now.differences(approved)),
            source=source,
        )


def _usable(source: str, offered: Definition) -> Definition | None:
    """The definition without an invalid output schema; None if its own schema is invalid."""
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
