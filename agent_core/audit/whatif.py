"""What-if: a recorded run under another policy. The prompt stays; decisions are compared, not questions. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent_core.audit.explain import explain_call, explain_difference, explain_limit
from agent_core.config import AgentConfig, AllowedTool, read_config
from agent_core.effects import Inherited, Json
from agent_core.errors import DefinitionError, Divergence
from agent_core.journal.kinds import beginning
from agent_core.journal.path import is_within, parse_segment, segments
from agent_core.journal.record import Record, Tape
from agent_core.journal.started import read_started
from agent_core.loop.budget import limits_of
from agent_core.loop.judge import judge
from agent_core.loop.masked import marks_of
from agent_core.origins.proof import proof_of, with_sources
from agent_core.origins.sources import Proof
from agent_core.policy import binding_of, has_wildcard, select_tools
from agent_core.words.catalogue import words_of
from utools.problems import DefinitionErrors, problems_in

VARIABLE_KEYS = frozenset(
    {
        "allowed_tools",
        "deny_tools",
        "approval",
        "after_untrusted",
        "max_steps",
        "max_tool_calls",
        "max_repairs",
        "total_token_budget",
        "cost_budget",
        "timeout",
    }
)
"""The keys of a config that a policy may vary."""
_UNREAD = (beginning("asked", ask="model"), beginning("answered", reply="said"))
"""How records begin that no verdict depends on."""


@dataclass(slots=True)
class WhatIf:
    """The `decisions` of one replay under `policy`: {strand, n, tool, recorded, now, counterfactual, why} of each call.

    It is the policy of all agents, or of that in one `strand` alone. `why` names the rule that made the difference,
    with its key and value; None where there is none. The recorder uses it in place of its exact comparison.
    Raises DefinitionError for a policy that no run can have.
    """

    policy: Mapping[str, Any]
    strand: str | None = None
    decisions: list[Json] = field(default_factory=list)
    _starts: dict[str, tuple[Json, Json]] = field(default_factory=dict)
    """By strand, how its run began, and how it would begin under the policy."""

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.policy) - VARIABLE_KEYS):
            message = f"a policy may vary {', '.join(sorted(VARIABLE_KEYS))}"
            raise DefinitionError(message, where=f"policy/{unknown[0]}", value=self.policy[unknown[0]])

    def vary(self, path: str, started: Record, inherited: Inherited) -> Record:
        """A `run_started` record as it would be under the policy; its tools and its prompt are the recorded ones."""
        varied = self._vary(started, inherited) if self.strand in (None, path) else started
        self._starts[path] = started, varied
        return varied

    def explain(self, divergence: Divergence) -> str:
        """What made the first difference."""
        recorded, now, place = divergence.recorded, divergence.now, (divergence.strand, divergence.n)
        for each in self.decisions:
            if (each["strand"], each["n"]) == place and each["why"]:
                return f"{each['tool']}: {each['why']}"
        if isinstance(now, dict) and now["kind"] == "run_finished" and divergence.strand in self._starts:
            return f"the run ends: {explain_limit(now.get('finish_reason', ''), self._starts[divergence.strand][1])}"
        return explain_difference(recorded, now)

    def _vary(self, started: Record, inherited: Inherited) -> Record:
        if started["loop"] != "agent":
            return started
        config = read_config({**started["config"], **self.policy}, where="policy")
        tools = started["tools"]
        if "allowed_tools" in self.policy:
            selected = _select_by_policy(config, tools)
        else:
            selected = _select_recorded(config, tools)
        bound = {code: {**tools[code], **binding_of(allowed, config)} for code, (allowed, _) in selected.items()}
        limits = limits_of(config, inherited)
        varied = {**started, "config": config.model_dump(mode="json"), "tools": bound, "limits": limits}
        return with_sources(varied) if "allowed_tools" in self.policy else varied

    def compare(self, strand: str, n: int, recorded: Record, now: Mapping[str, Any]) -> None:
        """Raise Divergence at the first decision that changes."""
        if recorded["kind"] == now["kind"] == "decided":
            self._note_calls(strand, n, recorded, now)
        if recorded["kind"] != now["kind"] or _decision_in(recorded) != _decision_in(now):
            raise Divergence(strand, n, recorded, now)

    def _note_calls(self, strand: str, n: int, recorded: Record, now: Mapping[str, Any]) -> None:
        for index, (before, after) in enumerate(zip(recorded.get("calls", ()), now.get("calls", ()), strict=False)):
            was, is_now = _verdict(recorded, before), _verdict(now, after)
            why = None if was == is_now else explain_call(recorded, now, self._starts[strand], index)
            self.decisions.append(_describe_decision(strand, n, before["tool"], was, is_now, why))

    def judge_rest(self, tape: Tape, changed: Divergence) -> None:
        """Judge the later recorded calls one by one, as if the run had come that far."""
        for path, rows in sorted(tape.items()):
            first = read_started(rows[0])
            if first.get("loop") == "agent" and _comes_later(path, changed.strand, changed.n):
                after = changed.n if path == changed.strand else -1
                self.decisions.extend(_judge_strand(path, first, self.vary(path, first, Inherited()), tape, after))


def has_outlived(divergence: Divergence) -> bool:
    """Whether the run would go on where the recorded one had ended."""
    recorded, now = divergence.recorded, divergence.now
    return isinstance(now, dict) and recorded["kind"] == "run_finished" and now["kind"] != "run_finished"


def _select_by_policy(config: AgentConfig, tools: Json) -> dict[str, tuple[AllowedTool, str]]:
    try:
        return select_tools(config, list(tools))
    except DefinitionError as error:
        raise DefinitionErrors([replace(each, where=f"policy/{each.where}") for each in problems_in(error)]) from None


def _select_recorded(config: AgentConfig, tools: Json) -> dict[str, tuple[AllowedTool, str]]:
    """The recorded whitelist, without what the policy denies."""
    entries = [entry for entry in config.allowed_tools if _names_recorded_tool(entry, tools)]
    return select_tools(read_config({**config.model_dump(), "allowed_tools": entries}), list(tools))


def _names_recorded_tool(entry: str | AllowedTool, tools: Json) -> bool:
    code = entry if isinstance(entry, str) else entry.tool
    return code in tools or has_wildcard(code)


def _decision_in(record: Mapping[str, Any]) -> Any:
    """The part of a record that is a decision, or the act that it led to."""
    match record:
        case {"kind": "decided"}:
            calls = [(call["tool"], call["args"], call["verdict"]) for call in record.get("calls", ())]
            planned = record.get("plan"), record.get("refused") is None, record.get("plan_step")
            return calls, record.get("limit"), record.get("unreadable"), record.get("final"), planned
        case {"kind": "asked", "ask": "model"}:
            return record["step"]
        case {"kind": "asked", "ask": "tool"}:
            return record["tool"], record["args"]
        case {"kind": "run_finished"}:
            return record.get("finish_reason"), record.get("status")
        case _:
            return {key: value for key, value in record.items() if key not in ("closes", "message")}


def _verdict(record: Mapping[str, Any], call: Json) -> str:
    limited = record.get("limit") and call["verdict"] != "refuse"
    return f"not run: {record['limit']}" if limited else str(call["verdict"])


def _comes_later(path: str, changed: str, n: int) -> bool:
    """Whether a strand is the changed one, or began below it after the change."""
    if path == changed:
        return True
    return is_within(path, changed) and parse_segment(segments(path, changed)[0]).number > n


def _describe_decision(
    strand: str, n: int, tool: str, recorded: str, now: str, why: str | None, *, counterfactual: bool = False
) -> Json:
    fields = {"strand": strand, "n": n, "tool": tool, "recorded": recorded, "now": now}
    return {**fields, "counterfactual": counterfactual, "why": why}


def _judge_strand(path: str, first: Record, started: Record, tape: Tape, after: int) -> Iterator[Json]:
    made: dict[str, int] = {}
    proof = proof_of(started)
    tool, step, asked = "", 0, set[str]()
    for row in tape[path]:
        if row.data.startswith(_UNREAD):
            continue
        record = row.record()
        match record:
            case {"kind": "asked", "ask": "tool"}:
                tool = record["tool"]
                made[tool] = made.get(tool, 0) + 1
            case {"kind": "answered", "reply": "did", "success": True} if tool in started["tools"]:
                proof.add_answer(tool, str(step), record["output"], trusted=started["tools"][tool]["trusted"])
            case {"kind": "received", "messages": messages}:
                vouched = started["config"].get("trusted_text") is None
                for message in messages:
                    if message["role"] == "user":
                        proof.add_message(message["content"], vouched=vouched)
            case {"kind": "decided"}:
                step = record["step"]
                if row.n > after:
                    for index in range(len(record.get("calls", ()))):
                        judged = _judge_again(record, index, started, made, proof, asked)
                        yield _describe_again(path, row.n, record, index, judged, (first, started))
                asked = {call["id"] for call in record.get("calls", ()) if call["verdict"] == "wait"}


def _judge_again(
    record: Record, index: int, started: Record, made: Mapping[str, int], proof: Proof, asked: set[str]
) -> Json:
    """A recorded call with its verdict under the policy; what a person decided about it, once `asked`, holds."""
    call: Json = record["calls"][index]
    decided = bool(record.get("edited")) and call["id"] in asked
    if decided and call["verdict"] == "refuse" and call["reason"] == "policy_denied":
        return call
    verdict = judge(
        *(call["tool"], call["args"], call["effect"]),
        tools=started["tools"],
        made=made.get(call["tool"], 0),
        proof=proof,
        edited=decided,
        after_untrusted=started["config"].get("after_untrusted", "run"),
        marks=marks_of(started),
        words=words_of(started),
    )
    return {**call, "verdict": verdict.verdict, "reason": verdict.reason, "message": verdict.message}


def _describe_again(path: str, n: int, record: Record, index: int, judged: Json, starts: tuple[Json, Json]) -> Json:
    was, now = _verdict(record, record["calls"][index]), judged["verdict"]
    after = {"calls": [*record["calls"][:index], judged]}
    why = None if was == now else explain_call(record, after, starts, index)
    return _describe_decision(path, n, judged["tool"], was, now, why, counterfactual=True)
