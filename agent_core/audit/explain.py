"""Why a replay comes out otherwise: the policy's rule, key and value, or the first field that differs. Pure."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

import orjson

from agent_core.journal.facts import Decided
from agent_core.loop.judge import narrowing_faults, refuse_count
from agent_core.origins.rules import read_rule
from agent_core.protocol.clip import clip
from agent_core.records import AgentStarted, JudgedCall
from agent_core.rules import rules_of
from agent_core.words.catalogue import words_of

LIMITS: Mapping[str, tuple[str, str]] = {
    "max_steps": ("max_steps", "steps"),
    "max_tool_calls": ("max_tool_calls", "tool_calls"),
    "token_budget": ("total_token_budget", "tokens"),
    "cost_budget": ("cost_budget", "cost"),
    "timeout": ("timeout", "seconds"),
}
"""By finish reason, the key of a config and its name among a run's limits."""
_WORDS = {"refuse": "refused", "wait": "made to wait", "run": "run"}
_UNPROVEN = ("trusted text", "provenance asks", "would be proven by")
"""What a question to a person says, under each version of the rules, of a value that is not proven."""
_MAX_SHOWN = 80


def explain_call(before: Decided, after: Decided, starts: tuple[AgentStarted, AgentStarted], index: int) -> str:
    """Return why call `index` of two decisions has another verdict; `starts` are the beginnings of the two runs."""
    was, now = before.calls[index], after.calls[index]
    if after.limit and now["verdict"] != "refuse":
        return f"now not run: {explain_limit(after.limit, starts[1])}"
    if now["verdict"] != "run":
        return f"now {_WORDS[now['verdict']]}: {explain_verdict(now, starts[1])}"
    if before.limit and was["verdict"] != "refuse":
        return f"no longer stopped: {explain_limit(before.limit, starts[0])}"
    return f"no longer {_WORDS[was['verdict']]}: {explain_verdict(was, starts[0])}"


def explain_limit(reason: str, started: AgentStarted) -> str:
    """Return the limit that ended a run, with its value."""
    if reason == "protocol_error":
        return f"max_repairs {started['config']['max_repairs']} is used up"
    if reason not in LIMITS:
        return reason
    key, name = LIMITS[reason]
    return f"{key} {started['limits'].get(name)} is used up"


def is_looser(reason: str, starts: tuple[AgentStarted, AgentStarted]) -> bool:
    """Whether the limit that stopped the first of two runs allows more in the second."""
    _, name = LIMITS[reason]
    was, now = (cast(Mapping[str, Any], each["limits"]).get(name) for each in starts)
    return now is None or (was is not None and now > was)


def explain_verdict(call: JudgedCall, started: AgentStarted) -> str:
    """Return the rule by which a call was refused, or waits, in the order in which judge applies them."""
    tool, policy = call["tool"], started["tools"].get(call["tool"])
    message = str(call.get("message") or call.get("reason"))
    if call.get("reason") == "invalid_action":
        return message
    if policy is None:
        globs = [glob for glob in started["config"].get("deny_tools", ()) if fnmatchcase(tool, glob)]
        return f"deny_tools has {globs[0]}" if globs else f"allowed_tools does not have {tool}"
    if policy["max_calls"] and message == refuse_count(tool, policy["max_calls"], words_of(started)):
        return f"max_calls {policy['max_calls']} of {tool} is used up"
    if policy["args"] is not None and (
        faults := narrowing_faults(policy["args"], call["args"], rules_of(started)["comparison"])
    ):
        return f"args of {tool}: {' '.join(fault.message for fault in faults[:3])}"
    refusal = words_of(started).no_write_now.format(tool=tool)
    if message in (f"{tool} writes, and the run has read untrusted text", refusal):
        return f"after_untrusted {started['config'].get('after_untrusted')}"
    if policy["provenance"] and any(sign in message for sign in _UNPROVEN):
        return f"provenance of {tool}: {message}"
    if policy["provenance"] and call["verdict"] == "refuse":
        return f"provenance of {tool}: {_explain_origins(call, policy['provenance'])}"
    return f"approval {policy['approval']} of {tool}"


def _explain_origins(call: JudgedCall, rules: Mapping[str, Any]) -> str:
    """Return what the rules ask for, and where the values come from."""
    wanted = ", ".join(f"{key} from {read_rule(rule)}" for key, rule in rules.items())
    came = ", ".join(f"{pointer} ← {origin}" for pointer, origin in call.get("origins", {}).items())
    return f"{wanted}; {came}" if came else f"{', '.join(rules)} must be copied from trusted text"


def explain_difference(recorded: Any, now: Any) -> str:
    """Return what differs first between a record and what comes in its place."""
    if not (isinstance(recorded, dict) and isinstance(now, dict)) or recorded["kind"] != now["kind"]:
        return f"recorded: {_describe(recorded)}; now: {_describe(now)}"
    for pointer, before, after in _differences(recorded, now, ""):
        return f"{pointer} is {_show(before)} in the record, and now {_show(after)}"
    return "the same fields come in another order"


def _describe(record: Any) -> str:
    if not isinstance(record, dict):
        return str(record)
    about = [str(record[key]) for key in ("finish_reason", "status", "tool", "model", "reason") if record.get(key)]
    return " ".join([record["kind"], *about[:1]])


def _differences(before: Any, after: Any, pointer: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the places that differ, in the record's order."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(key), after.get(key), f"{pointer}/{key}")
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, f"{pointer}/{index}")
    else:
        yield pointer, before, after


def _show(value: Any) -> str:
    return clip(orjson.dumps(value).decode(), _MAX_SHOWN)
