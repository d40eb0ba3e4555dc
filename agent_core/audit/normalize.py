"""What of a record counts when two runs are compared: all but times, hashes, and names made from the run's id. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_core.journal.record import Record, Tape
from utools.schema.pointer import escape

_MADE: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
_ASIDE: Final = {"at", "seconds", "closes", "digest", "call_prefix", "run"}
_SHAPES: Final = (
    ({"count", "total_ms"}, {"total_ms"}),
    ({"step", "elapsed_ms", "timestamp"}, {"elapsed_ms", "timestamp"}),
    ({"final_answer", "trace", "total_ms"}, {"run_id", "journal", "total_ms", "started_at", "ended_at"}),
)
"""An agent's output may be quoted in any record: the keys to know its parts by, and those of them to set aside."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names in a run's texts that another run cannot share: its id, and the prefixes of its calls' ids."""

    pattern: re.Pattern[str]

    def plain(self, text: str) -> str:
        return self.pattern.sub("…", text)


def names_of(run: str, tape: Tape) -> Names:
    """The names of a run. An id that a person chose may be a word like any other: it counts only before a strand."""
    begun = (rows[0].record() for rows in tape.values())
    calls = [re.escape(record["call_prefix"]) for record in begun if "call_prefix" in record]
    roots = "|".join(re.escape(root) for root in {path.partition("/")[0] for path in tape})
    own = re.escape(run) if _MADE.fullmatch(run) else rf"(?<![\w.-]){re.escape(run)}(?=/(?:{roots})\b)"
    return Names(re.compile("|".join([own, *(rf"(?<=\bcall_){prefix}(?=_\d)" for prefix in calls)])))


def essence(record: Record) -> Record:
    """The record without what differs each time."""
    told = {key: _timeless(value) for key, value in record.items() if key not in _ASIDE}
    match record:
        case {"kind": "run_started", "limits": limits}:
            told["limits"] = {key: value for key, value in limits.items() if key != "seconds"}
        case {"kind": "run_finished"}:
            told.pop("output", None)
        case {"kind": "resolved", "answer": answer}:
            told["answer"] = essence(answer)
    return told


def _timeless(value: Any) -> Any:
    match value:
        case dict():
            aside = {key for known, times in _SHAPES if known <= value.keys() for key in times}
            return {key: _timeless(each) for key, each in value.items() if key not in aside}
        case list():
            return [_timeless(each) for each in value]
        case _:
            return value


def changes(a: Any, b: Any, names: tuple[Names, Names], at: str = "") -> Iterator[dict[str, Any]]:
    """{at, a, b} of each JSON pointer at which two values differ, without the key of one that has nothing there."""
    match a, b:
        case dict(), dict():
            yield from _changed(a, b, names, at)
        case list(), list():
            yield from _changed(dict(enumerate(a)), dict(enumerate(b)), names, at)
        case str(), str() if names[0].plain(a) == names[1].plain(b):
            return
        case _:
            if type(a) is not type(b) or a != b:
                yield {"at": at, "a": a, "b": b}


def _changed(a: Mapping[Any, Any], b: Mapping[Any, Any], names: tuple[Names, Names], at: str) -> Iterator[Any]:
    for key in dict.fromkeys([*a, *b]):
        here = f"{at}/{escape(key)}"
        if key in a and key in b:
            yield from changes(a[key], b[key], names, here)
        else:
            yield {"at": here, **({"a": a[key]} if key in a else {"b": b[key]})}
