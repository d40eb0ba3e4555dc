"""What-if: a recorded run under another policy. The recorded prompt stands; decisions are compared, not questions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_core.config import AgentConfig, read_config
from agent_core.effects import Json
from agent_core.errors import DefinitionError, Divergence
from agent_core.journal.record import Record, Tape, within
from agent_core.loop.budget import limits_of
from agent_core.loop.judge import judge
from agent_core.loop.provenance import texts_in
from agent_core.policy import bound_by, whitelisted

VARIABLE = frozenset(
    {
        "allowed_tools",
        "deny_tools",
        "approval",
        "max_steps",
        "max_tool_calls",
        "max_repairs",
        "total_token_budget",
        "cost_budget",
        "timeout",
    }
)
"""The keys of a config that a policy may vary."""


@dataclass(slots=True)
class WhatIf:
    """The `decisions` of one replay under `policy`: {strand, n, tool, recorded, now, counterfactual} of each call.

    Handed to the recorder in place of its exact comparison. Raises DefinitionError for a policy that no run has.
    """

    policy: Mapping[str, Any]
    decisions: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.policy) - VARIABLE):
            told = f"a policy may vary {', '.join(sorted(VARIABLE))}"
            raise DefinitionError(told, where=f"policy/{unknown[0]}", value=self.policy[unknown[0]])

    def vary(self, started: Record, inherited: Json) -> Record:
        """A `run_started` record as it would have been; the tools and the prompt are the recorded ones."""
        if started["loop"] != "agent":
            return started
        config = read_config({**started["config"], **self.policy}, where="policy")
        tools = started["tools"]
        known = whitelisted(config, list(tools)) if "allowed_tools" in self.policy else _kept(config, tools)
        bound = {code: {**tools[code], **bound_by(allowed, config)} for code, (allowed, _) in known.items()}
        limits = limits_of(config, inherited)
        return {**started, "config": config.model_dump(mode="json"), "tools": bound, "limits": limits}

    def compare(self, strand: str, n: int, recorded: Record, now: Record) -> None:
        """Nothing when the same was decided; Divergence at the first decision that comes out otherwise."""
        if recorded["kind"] == now["kind"] == "decided":
            self._note(strand, n, recorded, now)
        same = recorded["kind"] == now["kind"] and _essence(recorded) == _essence(now)
        if not same:
            raise Divergence(strand, n, recorded, now)

    def _note(self, strand: str, n: int, recorded: Record, now: Record) -> None:
        for before, after in zip(recorded.get("calls", ()), now.get("calls", ()), strict=False):
            told = {"recorded": _verdict(recorded, before), "now": _verdict(now, after), "counterfactual": False}
            self.decisions.append({"strand": strand, "n": n, "tool": before["tool"], **told})

    def go_on(self, tape: Tape, changed: Divergence) -> None:
        """Judge the later recorded calls one by one: what would be said of each, had the run come that far."""
        for path, rows in sorted(tape.items()):
            first = rows[0].record()
            if first.get("loop") == "agent" and _comes_later(path, changed.strand, rows[0].n, changed.n):
                after = changed.n if path == changed.strand else -1
                self.decisions.extend(_judged(path, self.vary(first, {}), tape, after))


def outlived(found: Divergence) -> bool:
    """Whether the run would have gone on where the recorded one had ended."""
    recorded, now = found.recorded, found.now
    return isinstance(now, dict) and recorded["kind"] == "run_finished" and now["kind"] != "run_finished"


def _kept(config: AgentConfig, tools: Json) -> dict[str, Any]:
    """The recorded whitelist, under what the policy denies."""
    own = {**config.model_dump(), "allowed_tools": [entry for entry in config.allowed_tools if _names(entry, tools)]}
    return whitelisted(read_config(own), list(tools))


def _names(entry: Any, tools: Json) -> bool:
    code = entry if isinstance(entry, str) else entry.tool
    return code in tools or any(char in code for char in "*?[")


def _essence(record: Record) -> Any:
    """What of a record is a decision, or the act that it led to."""
    match record:
        case {"kind": "decided"}:
            calls = [(call["tool"], call["args"], call["verdict"]) for call in record.get("calls", ())]
            return calls, record.get("limit"), record.get("unreadable"), record.get("final")
        case {"kind": "asked", "ask": "model"}:
            return record["step"]
        case {"kind": "asked", "ask": "tool"}:
            return record["tool"], record["args"]
        case {"kind": "run_finished"}:
            return record.get("finish_reason"), record.get("status")
        case _:
            return {key: value for key, value in record.items() if key not in ("closes", "message")}


def _verdict(record: Record, call: Json) -> str:
    limited = record.get("limit") and call["verdict"] != "refuse"
    return f"not run: {record['limit']}" if limited else str(call["verdict"])


def _comes_later(path: str, changed: str, first: int, n: int) -> bool:
    """Whether a strand is the changed one, or was begun below it after the change."""
    if path == changed:
        return True
    if not within(path, changed):
        return False
    segment = path[len(changed) + 1 :].split("/")[0]
    number = segment.rpartition(".")[2] if not segment[0].isdigit() else segment.partition(".")[0]
    return number.isdigit() and int(number) > n


def _judged(path: str, started: Record, tape: Tape, after: int) -> Iterator[Json]:
    made: dict[str, int] = {}
    trusted = list(started["trusted"])
    tool = ""
    for row in tape[path]:
        record = row.record()
        match record:
            case {"kind": "asked", "ask": "tool"}:
                tool = record["tool"]
                made[tool] = made.get(tool, 0) + 1
            case {"kind": "answered", "reply": "did"} if started["tools"].get(tool, {}).get("trusted"):
                trusted.extend(texts_in(record["output"]))
            case {"kind": "decided"} if row.n > after:
                for call in record.get("calls", ()):
                    verdict = judge(
                        call["tool"],
                        call["args"],
                        call["effect"],
                        tools=started["tools"],
                        made=made.get(call["tool"], 0),
                        trusted=trusted,
                    )
                    told = {"recorded": _verdict(record, call), "now": verdict.verdict, "counterfactual": True}
                    yield {"strand": path, "n": row.n, "tool": call["tool"], **told}
