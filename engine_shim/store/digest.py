"""digest_runs(): what a list says of each of its runs beside its entry, from few rows of the journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from agent_core.journal.kinds import TOOL_OF_CALL
from agent_core.outputs import Json
from agent_core.records import TURN_TOOL
from engine_shim.definition.model import AGENT, INVOKE
from engine_shim.store.digest_rows import DigestRows
from engine_shim.store.entries import parse_time

LONGEST: Final = 120
"""Characters of what a run was asked."""


@dataclass(slots=True)
class RunDigest:
    """What a run was `asked`, how long it took, why its agents ended, which tools it asked, and what its models cost.

    `seconds` is None until its end, `agent` None unless it is a turn with one, `cost` None where no price is known.
    """

    seconds: float | None = None
    reasons: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    asked: str = ""
    agent: str | None = None
    tokens: int = 0
    cost: float | None = None

    def as_json(self) -> Json:
        return {name: getattr(self, name) for name in self.__slots__}

    def add_usage(self, usage: Json) -> None:
        """Count what a model, or an agent with all that it did, has cost."""
        total = usage.get("total_tokens")
        both = (usage.get("input_tokens"), usage.get("output_tokens"))
        numbers = [total] if isinstance(total, int) else [each for each in both if isinstance(each, int)]
        self.tokens += sum(numbers)
        if isinstance(cost := usage.get("cost"), int | float):
            self.cost = (self.cost or 0.0) + cost


def digest_runs(runs: Sequence[str], rows: DigestRows) -> dict[str, RunDigest]:
    """Return the digests of some runs, whose rows these are, as far as their records can be read."""
    found = {run: RunDigest() for run in runs}
    ends: dict[str, dict[str, Json]] = {run: {} for run in runs}
    began: dict[str, datetime | None] = {}
    for run, strand, n, data in rows.ends():
        record = _read(data)
        if n == 0 and record.get("kind") == "run_started":
            began[run] = _add_beginning(found[run], record)
        else:
            ends[run][strand] = record
    for run, digest in found.items():
        _add_end(digest, began.get(run), ends[run])
    for run, tool in read_calls(rows):
        if tool not in (AGENT, INVOKE, TURN_TOOL, *found[run].tools):
            found[run].tools.append(tool)
    _add_open_agents(rows, found, ends)
    return found


def read_calls(rows: DigestRows) -> Iterator[tuple[str, str]]:
    """Yield the run and the tool of each call in some runs; workflows and agents that they ran are among the tools."""
    for run, data in rows.calls():
        match = TOOL_OF_CALL.match(data) if isinstance(data, bytes) else None
        tool = None if match is None else _load(match[1])
        if isinstance(tool, str):
            yield run, tool


def _add_beginning(digest: RunDigest, first: Json) -> datetime | None:
    """Note what the first record of a run says; gives when it began."""
    texts = _texts(first.get("external", _dict(first.get("config")).get("prompt")))
    digest.asked = " ".join(next(texts, "")[: 4 * LONGEST].split())[:LONGEST]
    name = _dict(first.get("turn") or first.get("agent")).get("name")
    digest.agent = name if isinstance(name, str) else None
    return parse_time(str(_dict(first.get("forked")).get("at") or first.get("at")))


def _add_end(digest: RunDigest, began: datetime | None, ends: Mapping[str, Json]) -> None:
    """Note what the last records of a run and its agents say."""
    last = next((record for strand, record in ends.items() if "/" not in strand), {})
    ended = parse_time(str(last.get("at")))
    digest.seconds = (ended - began).total_seconds() if began and ended else None
    reasons = [record.get("finish_reason") for record in ends.values()]
    digest.reasons = list(dict.fromkeys(each for each in reasons if isinstance(each, str)))
    for record in _top_agents(ends):
        digest.add_usage(_dict(record.get("usage")))


def _add_open_agents(rows: DigestRows, found: Mapping[str, RunDigest], ends: Mapping[str, Mapping[str, Any]]) -> None:
    """Count what the models of agents that have not ended have cost so far, reply by reply."""
    unended = sorted({run for run, strand in rows.agents() if strand not in ends[run]})
    if not unended:
        return
    for run, strand, data in rows.said(unended):
        if not any("finish_reason" in ends[run].get(path, {}) for path in (strand, *_above(strand))):
            found[run].add_usage(_dict(_read(data).get("usage")))


def _top_agents(ends: Mapping[str, Json]) -> Iterator[Json]:
    """Yield the ends of the agents that lie in no other one that ended: its usage has theirs."""
    agents = {path: record for path, record in ends.items() if "finish_reason" in record}
    for path, record in agents.items():
        if not any(other in agents for other in _above(path)):
            yield record


def _above(path: str) -> Iterator[str]:
    """Yield the strands above one."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _read(data: Any) -> Json:
    """Return the record in some bytes, fast; empty for what is none."""
    return _dict(_load(data))


def _load(data: Any) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
