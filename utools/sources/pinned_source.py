"""What sources share whose tools are defined elsewhere, and may be defined otherwise tomorrow: approval."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from utools.errors import DefinitionError, ToolError
from utools.left_out import LeftOut
from utools.problems import message_of
from utools.schema.config_schema import ConfigSchema
from utools.schema.linear_pattern import is_linear
from utools.schema.older_drafts import read_arguments_schema, translate_schema
from utools.sources.loaded import Loaded
from utools.sources.tool_lock_file import Change, Definition, ToolLockFile, find_changes
from utools.tool import Tool
from utools.words.text import join_and

log = logging.getLogger(__name__)
NAME: Final = r"^[A-Za-z0-9_-]{1,40}$"
"""The name of a source, which is part of its tools' codes."""
NAMED: Final = "a name here is 1 to 40 letters (A-Z, a-z), digits, or any of _ -"


@dataclass(frozen=True, slots=True)
class Review:
    """What sources offer otherwise than was approved; `accept` approves exactly that."""

    changes: list[Change]
    accept: Callable[[], None]


@dataclass(frozen=True, slots=True)
class UsableTool:
    """A definition with its schemas as they are judged by here."""

    definition: Definition
    schema: dict[str, Any]
    output_schema: dict[str, Any] | None


class PinnedSource(ABC):
    """Sources by name. Their tools are those in the `lock` file.

    What a source offers at its first use is approved, and written there. `where` is the key of the
    host's configuration; in the file it separates the names of one kind of source from those of another. `prefix` is
    what the codes of all its tools begin with, before the name of their source.
    """

    where: str
    prefix: str = ""

    def __init__(self, names: Collection[str], lock: Path) -> None:
        for name in names:
            if not re.fullmatch(NAME, name):
                raise DefinitionError(NAMED, where=self.where, value=name)
        self.names = list(names)
        self._lock_file = ToolLockFile(lock)

    @abstractmethod
    def offered(self, names: Sequence[str]) -> Mapping[str, list[Definition] | DefinitionError]:
        """Return what these sources offer now, all asked at once; an error in place of what one of them offers that
        cannot be asked."""

    @abstractmethod
    def make_tools(self, name: str, usable: Sequence[UsableTool]) -> Iterator[Tool | LeftOut]:
        """Return the tools of one source. DefinitionError for a fault in what the host says of the source."""

    def takes(self, name: str, offered: Definition) -> bool:
        """Return whether the operator takes this tool of a source; of one that they do not, nothing is told."""
        return True

    def load(self) -> Loaded:
        """Return the approved tools. A new source is asked; one that cannot be used is left out, and so is a single
        tool."""
        loaded = Loaded()
        for name, approved in self._approved().items():
            try:
                if isinstance(approved, DefinitionError):
                    raise approved
                self._load_source(name, approved, loaded)
            except DefinitionError as error:
                where = error.where or self._key(name)
                loaded.left_out.append(LeftOut(f"{self.prefix}{name}", where, message_of(error)))
        return loaded

    def tools(self) -> list[Tool]:
        """Return the approved tools. DefinitionError for the first source that cannot be used."""
        loaded = self.load()
        sources = {f"{self.prefix}{name}" for name in self.names}
        for each in loaded.left_out:
            if each.name in sources:
                raise DefinitionError(each.why, where=each.where)
            log.warning("the tool %s is left out: %s", each.name, each.why)
        return loaded.tools

    def review(self, *names: str) -> Review:
        """Return what an approval of these sources, or all, would change. DefinitionError for one that cannot be
        asked."""
        offered = self._ask(names or self.names)
        for each in offered.values():
            if isinstance(each, DefinitionError):
                raise each
        found = {name: each for name, each in offered.items() if not isinstance(each, DefinitionError)}
        return Review(self._compare(found), lambda: self._write(found))

    def approve(self, *names: str) -> list[Change]:
        """Approve what these sources, or all, offer now; returns what that changed."""
        review = self.review(*names)
        review.accept()
        return review.changes

    def _approved(self) -> dict[str, list[Definition] | DefinitionError]:
        """Return what is approved of each source, or why nothing is."""
        found: dict[str, list[Definition] | DefinitionError] = {}
        for name in self.names:
            try:
                approved = self._lock_file.approved(self._key(name))
            except DefinitionError as error:
                found[name] = error
            else:
                found |= {} if approved is None else {name: approved}
        new = [name for name in self.names if name not in found]
        asked = self._ask(new) if new else {}
        try:
            self._write({name: each for name, each in asked.items() if not isinstance(each, DefinitionError)})
        except DefinitionError as error:
            asked = {name: each if isinstance(each, DefinitionError) else error for name, each in asked.items()}
        return {name: {**found, **asked}[name] for name in self.names}

    def _load_source(self, name: str, approved: Sequence[Definition], loaded: Loaded) -> None:
        usable: list[UsableTool] = []
        odd: list[LeftOut] = []
        for each in approved:
            if not self.takes(name, each):
                continue
            try:
                usable.append(_usable(name, each))
            except DefinitionError as error:
                place = f"{self._key(name)}/{each.name}"
                odd.append(LeftOut(f"{self.prefix}{name}.{each.name}", place, str(error)))
        made = list(self.make_tools(name, usable))
        loaded.tools += [each for each in made if isinstance(each, Tool)]
        loaded.left_out += [*odd, *(each for each in made if isinstance(each, LeftOut))]

    def _ask(self, names: Sequence[str]) -> Mapping[str, list[Definition] | DefinitionError]:
        for name in names:
            if name not in self.names:
                known = ", ".join(self.names) or "none"
                raise DefinitionError(f"there is no such source; there are {known}", where=self.where, value=name)
        return self.offered(names)

    def _compare(self, offered: Mapping[str, list[Definition]]) -> list[Change]:
        before = {name: self._lock_file.recorded(self._key(name)) for name in offered}
        return [each for name, now in offered.items() for each in find_changes(name, before[name], now)]

    def _write(self, offered: Mapping[str, list[Definition]]) -> None:
        if offered:
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


def _usable(source: str, offered: Definition) -> UsableTool:
    """Return the definition with its schemas. DefinitionError if that of its arguments is not valid; another is left
    out."""
    if offered.fault is not None:
        raise DefinitionError(offered.fault)
    schema, unchecked = read_arguments_schema(offered.input_schema, is_linear)
    ConfigSchema(schema, foreign=True, where="schema")
    for each in unchecked:
        log.info("the tool %s of %s: %s", offered.name, source, each)
    if offered.output_schema is None:
        return UsableTool(offered, schema, None)
    output, _ = translate_schema(offered.output_schema, is_linear)
    try:
        ConfigSchema(output, foreign=True, where="output_schema")
    except DefinitionError as error:
        log.warning("the output of the tool %s of %s is not checked: %s", offered.name, source, error)
        return UsableTool(offered, schema, None)
    return UsableTool(offered, schema, output)
