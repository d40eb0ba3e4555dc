"""Inherited: what a parent hands down to a run nested under it: what it may spend, and what was read with its origins.
Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from agent_core.outputs import Json

OriginKind = Literal["author", "user", "vouched", "person", "tool", "other"]
"""Who wrote a text; `vouched` is what the author's `trusted_text` holds, `other` what it leaves out."""


class SourceRecord(TypedDict):
    """A text that the values of calls may come from: its value, or the number of the message that it is.

    `label` is how a person reads its origin; `trusted` says that the author vouches for a tool's answers, `at` is where
    in one the value stood.
    """

    kind: OriginKind
    label: str
    tool: NotRequired[str]
    trusted: NotRequired[bool]
    value: NotRequired[Any]
    message: NotRequired[int]
    at: NotRequired[str]


class Inherited(TypedDict, total=False):
    """What a parent hands down to a run nested under it; empty for a run without a parent.

    `tool_calls`, `tokens`, `cost` and `seconds` are what it may still spend, None where there is no limit. `sources` is
    what the parent has read, with its origins; under the first rules of comparison, `trusted` has the texts that it
    trusts instead. `filled` has the parts of each prompt that takes outputs of a workflow's nodes, by its place in the
    config. `fills` has the places of secrets in the config. Relative paths start from `base`.
    """

    tool_calls: int | None
    tokens: int | None
    cost: float | None
    seconds: float | None
    trusted: list[str]
    sources: list[SourceRecord]
    filled: Mapping[str, list[SourceRecord]]
    fills: Sequence[Json]
    base: str
