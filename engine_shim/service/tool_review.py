"""ToolReview: what pinned sources offer otherwise than was approved, and the approval of exactly that."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from agent_core.outputs import Json
from engine_shim.definition.errors import message_of
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.host.config import HostConfig
from engine_shim.host.registry import KINDS, pinned_sources
from utools.sources.mcp.servers import McpServers
from utools.sources.pinned_source import Review
from utools.sources.tool_lock_file import Change, Definition

CHANGED = "the sources have changed since you looked at them: look at the changes again"


class ChangedMeanwhile(EngineError):
    """What is to be approved is no longer what sources offer."""

    def __init__(self) -> None:
        super().__init__(CHANGED)


class HostOnly(EngineError):
    """What a tenant's caller may not do, since it is about the whole host."""

    def __init__(self) -> None:
        super().__init__("tools are approved for the whole host; a tenant's token does not allow that")


class _Found(NamedTuple):
    """What all sources offer otherwise, as callers see it, and what approves it."""

    shown: Json
    accept: list[Callable[[], None]]

    @property
    def digest(self) -> str:
        return str(self.shown["digest"])


@dataclass(frozen=True, slots=True)
class ToolReview:
    """The pinned sources of a host, asked anew each time."""

    config: HostConfig

    def find_changes(self) -> Json:
        """{changes, digest, faults}: what is new, changed and gone, and the sources that cannot be asked."""
        return self._find().shown

    def approve(self, digest: str) -> int:
        """Approve the changes that a digest names, and tell how many. ChangedMeanwhile for any others."""
        found = self._find()
        if found.digest != digest:
            raise ChangedMeanwhile
        for accept in found.accept:
            accept()
        return len(found.shown["changes"])

    def _find(self) -> _Found:
        changes: list[Json] = []
        faults: list[Json] = []
        accept: list[Callable[[], None]] = []
        for source in pinned_sources(self.config):
            for name in source.names:
                shown = f"{KINDS[source.where]}.{name}"
                try:
                    review: Review = source.review(name)
                except DefinitionError as error:
                    faults.append({"source": shown, "message": message_of(error)})
                    continue
                changes += [_describe(shown, change) for change in review.changes]
                accept.append(review.accept)
            if isinstance(source, McpServers):
                source.close()
        text = json.dumps(changes, sort_keys=True).encode()
        return _Found({"changes": changes, "digest": sha256(text).hexdigest(), "faults": faults}, accept)


def _describe(source: str, change: Change) -> Json:
    about = {"source": source, "tool": change.tool, "kind": change.kind}
    return {**about, "before": _describe_definition(change.before), "after": _describe_definition(change.after)}


def _describe_definition(definition: Definition | None) -> Json | None:
    if definition is None:
        return None
    fields = definition.model_dump(exclude={"name", "input_schema"})
    return {**fields, "config_schema": definition.input_schema}
