"""What-if: a recorded run under another policy. The prompt stays; decisions are compared, not questions. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, cast

import orjson

from agent_core.audit.explain import explain_call, explain_difference, explain_limit, is_looser
from agent_core.config import AgentConfig, AllowedTool, read_config
from agent_core.effects import ToolReply
from agent_core.errors import DefinitionError, Divergence
from agent_core.inherited import Inherited, SourceRecord
from agent_core.journal.facts import Answered, Batch, Call, Decided, Fact, Question, Received, RunFinished
from agent_core.journal.path import item
from agent_core.journal.reader import find_agents, read_record, read_strands
from agent_core.journal.record import Record, Tape
from agent_core.journal.started import read_started
from agent_core.loop.budget import limits_of
from agent_core.loop.judge import judge
from agent_core.loop.masked import Marks, marks_of
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.origins.proof import proof_of
from agent_core.origins.sources import Proof
from agent_core.outputs import Json, PolicyDecision
from agent_core.policy import binding_of, has_wildcard, is_denied, select_tools
from agent_core.records import AgentStarted, JudgedCall
from agent_core.rules import CURRENT, rules_of
from agent_core.tool_policy import Policies, ToolPolicy
from agent_core.words.catalogue import Words, words_of
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
MOST_BOUND: Final = 64
"""Configs that are kept as they are under a policy."""
_READ: Final = ("run_started", "asked", "answered", "received", "decided")
"""The records that verdicts depend on."""
Starts = tuple[AgentStarted, AgentStarted]
"""How a run began, and how it would begin under the policy."""
Bound = tuple[AgentConfig, Json, dict[str, ToolPolicy]]
"""A config, the same as it is recorded, and the whitelist with what the config says of each tool."""


@dataclass(slots=True)
class WhatIf:
    """The `decisions` of one replay under `policy`, one for each call.

    It is the policy of all agents, or of that in one `strand` alone. The recorder uses it in place of its exact
    comparison. Raises DefinitionError for a policy that no run can have.
    """

    policy: Mapping[str, Any]
    strand: str | None = None
    decisions: list[PolicyDecision] = field(default_factory=list)
    _starts: dict[str, Starts] = field(default_factory=dict)
    """By the strand of an agent."""

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.policy) - VARIABLE_KEYS):
            message = f"a policy may vary {', '.join(sorted(VARIABLE_KEYS))}"
            raise DefinitionError(message, where=f"policy/{unknown[0]}", value=self.policy[unknown[0]])

    def vary(self, path: str, started: Record, inherited: Inherited) -> Record:
        """Return a `run_started` record as it would be under the policy; its tools and its prompt are the recorded
        ones."""
        if started["loop"] != "agent":
            return started
        recorded = cast(AgentStarted, started)
        varied = self._vary(recorded, inherited) if self.strand in (None, path) else recorded
        self._starts[path] = recorded, varied
        return cast(Record, varied)

    def explain(self, divergence: Divergence) -> str:
        """Return what made the first difference."""
        place = divergence.strand, divergence.n
        for each in self.decisions:
            if (each["strand"], each["n"]) == place and each["why"]:
                return f"{each['tool']}: {each['why']}"
        now = _read_if_record(divergence.now)
        if isinstance(now, RunFinished) and divergence.strand in self._starts:
            return f"the run ends: {explain_limit(now.reason, self._starts[divergence.strand][1])}"
        return explain_difference(divergence.recorded, divergence.now)

    def _vary(self, started: AgentStarted, inherited: Inherited) -> AgentStarted:
        config, written, tools = _bind(self.policy, started["config"], started["tools"])
        limits = limits_of(config, inherited)
        varied: AgentStarted = {**started, "config": written, "tools": tools, "limits": limits}
        if is_denied(READ_OBSERVATION, config):
            varied.pop("reading", None)
        return _under_todays_comparison(varied) if "allowed_tools" in self.policy else varied

    def compare(self, strand: str, n: int, recorded: Record, now: Mapping[str, Any]) -> None:
        """Raise Divergence at the first decision that changes."""
        before, after = read_record(recorded), read_record(dict(now))
        if isinstance(before, Decided) and isinstance(after, Decided):
            self._note_calls(strand, n, before, after)
        if type(before) is not type(after) or _decision_in(before, recorded) != _decision_in(after, now):
            raise Divergence(strand, n, recorded, now)

    def _note_calls(self, strand: str, n: int, recorded: Decided, now: Decided) -> None:
        for index, (before, after) in enumerate(zip(recorded.calls, now.calls, strict=False)):
            was, is_now = _verdict(recorded, before), _verdict(now, after)
            why = None if was == is_now else explain_call(recorded, now, self._starts[strand], index)
            decision: PolicyDecision = {
                "strand": strand,
                "n": n,
                "tool": before["tool"],
                "recorded": was,
                "now": is_now,
                "counterfactual": False,
                "why": why,
            }
            self.decisions.append(decision)

    def judge_rest(self, tape: Tape, changed: Divergence) -> None:
        """Judge the later recorded calls one by one, as if the run had come that far: of the agents above the changed
        one too, and of those that began later."""
        strands, reached = read_strands(tape, _READ), {changed.strand: changed.n}
        for each in self.decisions:
            reached[each["strand"]] = max(each["n"], reached.get(each["strand"], -1))
        for path in find_agents(strands):
            if path not in self._starts:
                self.vary(path, read_started(tape[path][0]), Inherited())
            facts = _with_batches(strands, path)
            self.decisions.extend(_judge_strand(path, self._starts[path], facts, reached.get(path, -1)))


def has_outlived(divergence: Divergence) -> bool:
    """Return whether the run would continue where the recorded one had ended."""
    recorded, now = _read_if_record(divergence.recorded), _read_if_record(divergence.now)
    return isinstance(recorded, RunFinished) and now is not None and not isinstance(now, RunFinished)


def _read_if_record(said: Any) -> Fact | None:
    """Return what one side of a divergence says, if it is a record."""
    return read_record(said) if isinstance(said, dict) else None


def _under_todays_comparison(started: AgentStarted) -> AgentStarted:
    """Return the beginning of a run under the comparison that alone knows all that a new policy may ask for."""
    rules = rules_of(started)
    if rules["comparison"] != 1:
        return started
    sources: list[SourceRecord] = [
        {"kind": "vouched", "label": "trusted text", "value": text} for text in started.get("trusted", ())
    ]
    return {**started, "sources": sources, "rules": {**rules, "comparison": CURRENT["comparison"]}}


def _bind(policy: Mapping[str, Any], recorded: Json, tools: dict[str, ToolPolicy]) -> Bound:
    """Return a recorded config and whitelist as they are under a policy. What is returned is not to be changed."""
    try:
        parts = orjson.dumps([policy, recorded, tools])
    except TypeError:  # a policy that is no JSON: what is wrong with it is told
        return _bind_anew(policy, recorded, tools)
    return _bind_once(parts)


@lru_cache(MOST_BOUND)
def _bind_once(parts: bytes) -> Bound:
    """Do it once for the thousands of runs that have the same config and whitelist."""
    return _bind_anew(*orjson.loads(parts))


def _bind_anew(policy: Mapping[str, Any], recorded: Json, tools: dict[str, ToolPolicy]) -> Bound:
    config = read_config({**recorded, **policy}, where="policy")
    selected = _select_by_policy(config, tools) if "allowed_tools" in policy else _select_recorded(config, tools)
    bound: dict[str, ToolPolicy] = {
        code: {**tools[code], **binding_of(allowed, config)} for code, (allowed, _) in selected.items()
    }
    return config, config.model_dump(mode="json"), bound


def _select_by_policy(config: AgentConfig, tools: Policies) -> dict[str, tuple[AllowedTool, str]]:
    try:
        return select_tools(config, list(tools))
    except DefinitionError as error:
        raise DefinitionErrors([replace(each, where=f"policy/{each.where}") for each in problems_in(error)]) from None


def _select_recorded(config: AgentConfig, tools: Policies) -> dict[str, tuple[AllowedTool, str]]:
    """Return the recorded whitelist, without what the policy denies."""
    entries = [entry for entry in config.allowed_tools if _names_recorded_tool(entry, tools)]
    return select_tools(read_config({**config.model_dump(), "allowed_tools": entries}), list(tools))


def _names_recorded_tool(entry: str | AllowedTool, tools: Policies) -> bool:
    code = entry if isinstance(entry, str) else entry.tool
    return code in tools or has_wildcard(code)


def _decision_in(fact: Fact, record: Mapping[str, Any]) -> Any:
    """Return the part of a record that is a decision, or the act that it led to."""
    match fact:
        case Decided():
            calls = [(call["tool"], call["args"], call["verdict"]) for call in fact.calls]
            return calls, fact.limit, fact.unreadable, fact.is_final, (fact.plan, fact.refused is None, fact.plan_step)
        case Question(step=step):
            return step
        case Call(tool=tool, args=args):
            return tool, args
        case RunFinished(reason=reason):
            return reason
        case _:
            return {key: value for key, value in record.items() if key not in ("closes", "message")}


def _verdict(decided: Decided, call: JudgedCall) -> str:
    limited = decided.limit and call["verdict"] != "refuse"
    return f"not run: {decided.limit}" if limited else call["verdict"]


def _with_batches(strands: Mapping[str, Sequence[Fact]], path: str) -> Iterator[Fact]:
    """Yield the facts of a strand, and behind each batch those of its calls, which have strands of their own."""
    for fact in strands[path]:
        yield fact
        for index in range(len(fact.tools) if isinstance(fact, Batch) else 0):
            yield from strands.get(item(path, fact.n, index), ())


def _judge_strand(path: str, starts: Starts, facts: Iterable[Fact], after: int) -> Iterator[PolicyDecision]:
    """Judge each call that a strand's records behind number `after` decide about."""
    started, made, proof = starts[1], _made_before(starts[1]), proof_of(starts[1])
    step, asked, marks, words = 0, dict[str, Json](), marks_of(started), words_of(started)
    vouched = started["config"].get("trusted_text") is None
    for fact in facts:
        match fact:
            case Call(tool=tool):
                made[tool] += 1
            case Answered(asked=Call(tool=tool), answer=ToolReply(success=True, output=output)) if (
                tool in started["tools"]
            ):
                proof.add_answer(tool, str(step), output, trusted=started["tools"][tool]["trusted"])
            case Received(messages=messages):
                for message in messages:
                    if message["role"] == "user":
                        proof.add_message(message["content"], vouched=vouched)
            case Decided():
                step = fact.step
                _add_edits(proof, fact, asked)
                in_reply = Counter[str]()
                for index, call in enumerate(fact.calls if fact.n > after else ()):
                    count = made[call["tool"]] + in_reply[call["tool"]]
                    judged = _judge_again(fact, index, started, count, proof, asked, marks, words)
                    in_reply[call["tool"]] += judged["verdict"] != "refuse"
                    yield _describe_again(path, fact, index, judged, starts)
                asked = {call["id"]: call["args"] for call in fact.calls if call["verdict"] == "wait"}
            case _:
                pass


def _made_before(started: AgentStarted) -> Counter[str]:
    """Return how often earlier attempts at the run called each tool."""
    spent = cast(Json, started.get("spent", {}))
    return Counter({tool: used["count"] for tool, used in spent.get("used_tools", {}).items()})


def _add_edits(proof: Proof, decided: Decided, asked: Mapping[str, Json]) -> None:
    """Note what a person wrote in place of a model's arguments, or plan."""
    for call in decided.calls if decided.is_edited else ():
        if call["id"] in asked and call["args"] != asked[call["id"]]:
            proof.add_edit(call["args"], asked[call["id"]])
    if decided.is_edited and decided.plan:
        proof.add_edit({"steps": decided.plan}, {})


def _judge_again(
    decided: Decided,
    index: int,
    started: AgentStarted,
    made: int,
    proof: Proof,
    asked: Mapping[str, Json],
    marks: Marks,
    words: Words,
) -> JudgedCall:
    """Return a recorded call with its verdict under the policy, its tool having been called `made` times; what a person
    decided about it, once `asked`, holds."""
    call = decided.calls[index]
    edited = decided.is_edited and call["id"] in asked
    is_reading = call["tool"] == READ_OBSERVATION and "reading" in started
    if is_reading or (edited and call["verdict"] == "refuse" and call.get("reason") == "policy_denied"):
        return call
    verdict = judge(
        *(call["tool"], call["args"], call["effect"]),
        tools=started["tools"],
        made=made,
        proof=proof,
        edited=edited,
        after_untrusted=started["config"].get("after_untrusted", "run"),
        marks=marks,
        words=words,
    )
    return {**call, "verdict": verdict.verdict, "reason": verdict.reason, "message": verdict.message}


def _describe_again(path: str, decided: Decided, index: int, judged: JudgedCall, starts: Starts) -> PolicyDecision:
    limit = decided.limit if decided.limit and not is_looser(decided.limit, starts) else None
    after = replace(decided, calls=[*decided.calls[:index], judged], limit=limit)
    was, now = _verdict(decided, decided.calls[index]), _verdict(after, judged)
    why = None if was == now else explain_call(decided, after, starts, index)
    return {
        "strand": path,
        "n": decided.n,
        "tool": judged["tool"],
        "recorded": was,
        "now": now,
        "counterfactual": True,
        "why": why,
    }
