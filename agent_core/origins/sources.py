"""The sources of a run: every text that a value of a call may come from, with its origin. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

from agent_core.inherited import Inherited, SourceRecord
from agent_core.origins.arguments import Leaf, Place, leaves_of_arguments
from agent_core.origins.kinds import Probe, probes_of
from agent_core.origins.rules import Rule, find_rule
from agent_core.origins.shelf import Shelves
from agent_core.origins.source import OPENED, Origin, Source
from agent_core.origins.urls import UpTo
from agent_core.outputs import Json
from agent_core.rules import CURRENT
from agent_core.tool_policy import ToolPolicy

MODEL = "model"
"""The origin of what stands nowhere: the model's own words."""
AUTHOR = "author"
MAX_LEAVES = 500
"""A call with more values under a rule than this is not proven."""
MOST_LABELS = 1024
"""Values whose origins are kept as found."""
MAX_PLACE = 120
"""Characters of a path in a label."""
MAX_SHOWN = 16
"""Values of one argument whose origins are told one by one."""


@dataclass(frozen=True, slots=True)
class Unproven:
    """The first value whose origin will not do: where it is, where it comes from, and what would do."""

    pointer: str
    origin: str
    rule: Rule | None


class Tracing(NamedTuple):
    """Where the values of a call come from, by pointer, and what of them is not proven."""

    origins: dict[str, str] | None
    unproven: Unproven | None = None


class Proof(Protocol):
    """What a verdict on the origins of a call rests on; it grows as the run continues."""

    @property
    def has_untrusted(self) -> bool: ...
    @property
    def comparison(self) -> int: ...
    def add_answer(self, tool: str, place: str, output: Any, *, trusted: bool) -> None: ...
    def add_edit(self, args: Json, before: Json) -> None: ...
    def add_message(self, text: str, *, vouched: bool) -> None: ...
    def hand_down(self) -> Inherited: ...
    def trace(self, args: Json, policy: ToolPolicy) -> Tracing: ...


class Sources:
    """What a run has read so far. The author, the user and a person come before tools, each in order of time.

    `has_untrusted` says whether it has read an untrusted text. `comparison` is the version of these rules
    that the run follows.
    """

    def __init__(
        self,
        records: Sequence[SourceRecord] = (),
        messages: Sequence[Json] = (),
        *,
        comparison: int = CURRENT["comparison"],
    ) -> None:
        self.comparison = comparison
        self._written, self._read = Shelves(), Shelves()
        self._places: dict[int, tuple[ToolPolicy, Place]] = {}
        self._labels: dict[object, str] = {}
        self.has_untrusted = False
        for record in records:
            value = record["value"] if "value" in record else messages[record.get("message", 0)]["content"]
            origin = Origin(record["kind"], record["label"], record.get("tool"), record.get("trusted", False))
            self._add(origin, value, record.get("at", ""))

    def _add(self, origin: Origin, value: Any, at: str = "") -> None:
        is_read = origin.kind in ("tool", "other")
        (self._read if is_read else self._written).add(Source(origin, value, at, comparison=self.comparison))
        if not is_read:
            self._labels.clear()  # it comes before what was read
        self.has_untrusted = self.has_untrusted or (is_read and not origin.trusted)

    def add_answer(self, tool: str, place: str, output: Any, *, trusted: bool) -> None:
        """The answer of a tool, given at this place: its step, and the call's number if there are several."""
        self._add(Origin("tool", f"{tool} step {place}", tool, trusted), output)

    def add_edit(self, args: Json, before: Json) -> None:
        """What a person wrote in place of a model's arguments; what they left as it was is not theirs."""
        own = {name: value for name, value in args.items() if name not in before or before[name] != value}
        self._add(Origin("person", "person"), own)

    def add_message(self, text: str, *, vouched: bool) -> None:
        """What a user added during the run; it is never trusted."""
        origin = Origin("user", "added user message") if vouched else Origin("other", "unvouched added user message")
        self._add(origin, text)

    def hand_down(self) -> Inherited:
        """Return all sources, for a run nested under this one."""
        return {"sources": [_record(source) for source in (*self._written, *self._read)]}

    def trace(self, args: Json, policy: ToolPolicy) -> Tracing:
        """Return the origin of every value of a call, and the first that its policy does not admit."""
        rules = policy["provenance"]
        found: dict[str, list[tuple[str, str]]] = {}
        unproven: Unproven | None = None
        for count, leaf in enumerate(leaves_of_arguments(args, self._place_of(policy))):
            pointer = leaf.pointer
            rule = find_rule(rules, pointer) if rules else None
            if leaf.is_authors:
                label, is_proven = ("" if leaf.value is None else AUTHOR), True
            elif count >= MAX_LEAVES:
                label, is_proven = MODEL, False
            elif rule is None:
                label, is_proven = self._label_of(leaf), True
            else:
                label, is_proven = self._trace_leaf(leaf, rule)
            if rule and not is_proven and unproven is None:
                unproven = Unproven(pointer, label, rule)
            if label:
                found.setdefault(leaf.argument, []).append((pointer, label))
        return Tracing(dict(_summarise(found)), unproven)

    def _place_of(self, policy: ToolPolicy) -> Place:
        """Return what the schemas of a tool say of its arguments; the policy is kept, so that its id stays its own."""
        found = self._places.get(id(policy))
        if found is None:
            place = Place.of_arguments(policy["schema"], policy["args"])
            found = self._places[id(policy)] = (policy, place)
        return found[1]

    def _label_of(self, leaf: Leaf) -> str:
        """Return the label of a value's origin where no rule asks for one.

        A value that was found once has that origin until a source is added before those that were read: a later one
        comes behind.
        """
        key = (type(leaf.value), leaf.value, leaf.format, leaf.name)
        label = self._labels.get(key)
        if label is None:
            label, _ = self._trace_leaf(leaf, None)
            if label != MODEL and len(self._labels) < MOST_LABELS:
                self._labels[key] = label
        return label

    def _trace_leaf(self, leaf: Leaf, rule: Rule | None) -> tuple[str, bool]:
        """Return the label of a value's origin, and whether it will do."""
        if leaf.value is None:
            return MODEL, rule is None or rule.is_open
        up_to = rule.up_to if rule else None
        label, is_proven = "", True
        for probe in probes_of(leaf.value, leaf.format, leaf.name):
            origin, will_do = self._find(probe, rule, up_to)
            if not label or not will_do:
                label = origin
            is_proven = is_proven and will_do
        return label, is_proven

    def _find(self, probe: Probe, rule: Rule | None, up_to: UpTo | None) -> tuple[str, bool]:
        first = ""
        for source in chain(self._written.that_may_hold(probe), self._read.that_may_hold(probe)):
            for place in source.find(probe, up_to):
                label = _label(source.origin, place)
                if rule is None or rule.allows(source.origin, place):
                    return label, True
                first = first or label
                if not source.origin.tool:
                    break
        return first or MODEL, bool(rule and rule.is_open)


def _label(origin: Origin, place: str) -> str:
    """Return how a person reads where a value stands; the keys on the way are an outsider's, so they are cut."""
    place = place.replace(OPENED, "")
    if not origin.tool or not place:
        return origin.label
    return f"{origin.label} {place if len(place) <= MAX_PLACE else place[: MAX_PLACE - 1] + '…'}"


def _record(source: Source) -> SourceRecord:
    origin = source.origin
    label = origin.label if origin.label.startswith("parent's ") else f"parent's {origin.label}"
    record: SourceRecord = {"kind": origin.kind, "label": label, "value": source.value}
    if origin.tool is not None:
        record["tool"] = origin.tool
    if origin.trusted:
        record["trusted"] = True
    if source.at:
        record["at"] = source.at
    return record


def _summarise(found: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    """Yield one entry for an argument whose values all have one origin, else one for each value."""
    for argument, leaves in found.items():
        if len(leaves) == 1:
            yield argument, leaves[0][1]
            continue
        labels = list(dict.fromkeys([label for _, label in leaves]))
        if len(labels) == 1:
            yield argument, labels[0]
        elif len(leaves) <= MAX_SHOWN:
            yield from leaves
        else:
            more = ", …" if len(labels) > MAX_SHOWN else ""
            yield argument, f"several: {', '.join(labels[:MAX_SHOWN])}{more}"
