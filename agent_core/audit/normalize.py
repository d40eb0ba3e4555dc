"""Normalised records, for comparing two runs: without times, hashes, and names made from the run's id. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_core.journal.path import root_of
from agent_core.journal.record import Record, Tape
from utools.lazy_pattern import lazy_compile
from utools.schema.pointer import escape

_GENERATED_ID: Final = lazy_compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
_IGNORED: Final = {"at", "seconds", "closes", "digest", "call_prefix", "run", "taken"}
_SHAPES: Final = (
    ({"count", "total_ms"}, {"total_ms"}),
    ({"step", "elapsed_ms", "timestamp"}, {"elapsed_ms", "timestamp"}),
    ({"signal", "until"}, {"until", "at"}),
    ({"final_answer", "trace", "total_ms"}, {"run_id", "journal", "total_ms", "started_at", "ended_at"}),
)
"""An agent's output, or what a node waited for, may be quoted in any record: the keys that identify its parts, and the
keys to ignore in them."""


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names in a run's texts that no other run shares: its id, and the prefixes of its calls' ids."""

    pattern: re.Pattern[str]

    def remove_from(self, text: str) -> str:
        return self.pattern.sub("…", text)


def run_names(run: str, tape: Tape) -> RunNames:
    """Return the names of a run. An id that a person chose may be an ordinary word: it counts only before a strand."""
    first = (rows[0].record() for rows in tape.values())
    calls = [re.escape(record["call_prefix"]) for record in first if "call_prefix" in record]
    roots = "|".join(re.escape(root) for root in {root_of(path) for path in tape})
    own = re.escape(run) if _GENERATED_ID.fullmatch(run) else rf"(?<![\w.-]){re.escape(run)}(?=/(?:{roots})\b)"
    return RunNames(re.compile("|".join([own, *(rf"(?<=\bcall_){prefix}(?=_\d)" for prefix in calls)])))


def normalize(record: Record) -> Record:
    """Return the record without what differs each time."""
    result = {key: _without_times(value) for key, value in record.items() if key not in _IGNORED}
    if "forked" in result:
        result["forked"] = {key: value for key, value in result["forked"].items() if key != "at"}
    match record:
        case {"kind": "run_started", "limits": limits}:
            result["limits"] = {key: value for key, value in limits.items() if key != "seconds"}
        case {"kind": "run_finished"}:
            result.pop("output", None)
        case {"kind": "waiting", "reason": "awaiting_event"}:
            result.pop("until", None)
        case {"kind": "resolved", "answer": answer}:
            result["answer"] = normalize(answer)
        case _:
            pass
    return result


def _without_times(value: Any) -> Any:
    match value:
        case dict():
            ignored = {key for known, times in _SHAPES if known <= value.keys() for key in times}
            return {key: _without_times(each) for key, each in value.items() if key not in ignored}
        case list():
            return [_without_times(each) for each in value]
        case _:
            return value


def find_changes(a: Any, b: Any, names: tuple[RunNames, RunNames], at: str = "") -> Iterator[dict[str, Any]]:
    """{at, a, b} of each JSON pointer at which two values differ; a value that is absent has no key."""
    match a, b:
        case dict(), dict():
            yield from _find_changed_keys(a, b, names, at)
        case list(), list():
            yield from _find_changed_keys(dict(enumerate(a)), dict(enumerate(b)), names, at)
        case str(), str() if names[0].remove_from(a) == names[1].remove_from(b):
            return
        case _:
            if type(a) is not type(b) or a != b:
                yield {"at": at, "a": a, "b": b}


def _find_changed_keys(
    a: Mapping[Any, Any], b: Mapping[Any, Any], names: tuple[RunNames, RunNames], at: str
) -> Iterator[Any]:
    for key in dict.fromkeys([*a, *b]):
        here = f"{at}/{escape(key)}"
        if key in a and key in b:
            yield from find_changes(a[key], b[key], names, here)
        else:
            yield {"at": here, **({"a": a[key]} if key in a else {"b": b[key]})}
