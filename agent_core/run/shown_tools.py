"""Whether a tool is still the one that a person was shown with the call that waits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent_core.decisions import Approve, Decision, Edit, Retry, decode_decision
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.control import Decisions, check_mapping, read_waiting, start_of
from agent_core.journal.facts import Waiting
from agent_core.journal.record import Tape
from agent_core.loop.plan_check import PLAN
from agent_core.outputs import Json
from agent_core.records import NodeTool
from agent_core.tool_policy import ToolPolicy
from utools.registry import ToolRegistry

Tools = Mapping[str, ToolPolicy] | Mapping[str, NodeTool]
LATE = "late"
"""In place of a decision: the call's own answer, which came after it was put in doubt."""
OURS = ("x-preset", "x-author")
"""Marks on an argument that the host or the author sets, and that no person was shown."""


def compare_with_shown(tape: Tape, decisions: Decisions, registry: ToolRegistry) -> Decisions:
    """Return the decisions, with the schema of the tool as it is now in each edit of a call whose tool has changed.

    DecisionError for an approval or a retry of such a call: what was approved is not what would be made. A denial
    always stands.
    """
    return {key: _compare(tape, key, decision, registry) for key, decision in decisions.items()}


def check_decided(tape: Tape, registry: ToolRegistry) -> None:
    """DefinitionError for a call that was approved, and not made yet, whose tool is no more the one that was shown: who
    recorded the decision may not have had the tools."""
    for strand, rows in tape.items():
        waiting = read_waiting(rows[-2]) if len(rows) > 1 and rows[-1].kind == "resolved" else None
        if waiting is None or not waiting.is_for_person or (record := rows[-1].record())["decision"] == LATE:
            continue
        decision = decode_decision(record)
        if change := _change_for(tape, strand, waiting, decision, registry):
            way = "put the tool back as it was, or begin another run"
            told = f"the call at {strand}:{rows[-2].n} is approved, and cannot be made. {change}: {way}"
            raise DefinitionError(told, where="registry")


def codes_let_go(tape: Tape, decisions: Decisions) -> set[str]:
    """Return the tools of the calls that these decisions keep from being made: the host need not have them any more.

    DecisionError for decisions that are not by the place of their call.
    """
    check_mapping(decisions)
    refused = [key for key, decision in decisions.items() if not isinstance(decision, Approve | Edit | Retry)]
    return {str(waiting.tool) for key in refused if (waiting := _waiting_at(tape, key)) is not None}


def _compare(tape: Tape, key: Any, decision: Decision, registry: ToolRegistry) -> Decision:
    waiting = _waiting_at(tape, key)
    if waiting is None or not isinstance(decision, Approve | Edit | Retry):
        return decision  # what fits nothing is told elsewhere
    change, tool = _change_for(tape, key[0], waiting, decision, registry), str(waiting.tool)
    if change is None:
        return decision
    if isinstance(decision, Edit) and tool in registry:
        return replace(decision, schema=registry._schema(tool).schema)
    way = "edit its arguments: they are then judged by the tool as it is now"
    if tool not in registry and tool != PLAN:
        way = "approve it where the tool is there"
    raise DecisionError(f"nothing was decided. {change}: deny the call, or {way}")


def _change_for(tape: Tape, strand: str, waiting: Waiting, decision: Decision, registry: ToolRegistry) -> str | None:
    """Return how a tool that a decision would let run differs from what was shown; None where all are the same."""
    if not isinstance(decision, Approve | Edit | Retry):
        return None
    tools, tool = start_of(tape, strand)["tools"], str(waiting.tool)
    if tool == PLAN and tool not in tools:
        named = _tools_of_plan(decision.args if isinstance(decision, Edit) else waiting.args)
    else:
        named = [tool] if not isinstance(decision, Edit) or decision.schema is None else []
    return next((change for each in named if (change := _change_of(tools, each, registry))), None)


def _waiting_at(tape: Tape, key: Any) -> Waiting | None:
    match key:
        case (str(strand), int(n)) if 0 <= n < len(tape.get(strand, ())):
            return read_waiting(tape[strand][n])
    return None


def _tools_of_plan(plan: Json) -> list[str]:
    steps = plan.get("steps")
    named = [step.get("tool") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return [tool for tool in named if isinstance(tool, str)]


def _change_of(tools: Tools, tool: str, registry: ToolRegistry) -> str | None:
    """Return how a tool differs from the one that was shown; None where it is the same."""
    shown = tools.get(tool)
    if shown is None or shown["effect"] == "nested":  # a run of its own is shown as a run
        return None
    if tool not in registry:
        return f"The tool {tool!r} is gone from this host"
    before, now = _shown(shown["schema"]), _shown(registry._schema(tool).schema)
    if before == now:
        return None
    changes = "; ".join(_differences(before, now)) or "other rules for its arguments"
    return f"The tool {tool!r} has changed since this call was shown ({changes})"


def _shown(schema: Any) -> Any:
    """Return a schema without the arguments that are not a model's, nor a person's, to choose."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return schema
    own = {name: rule for name, rule in schema["properties"].items() if not _is_ours(rule)}
    required = sorted(name for name in schema.get("required", ()) if name in own)
    return {**schema, "properties": own, "required": required}


def _is_ours(rule: Any) -> bool:
    return isinstance(rule, dict) and any(mark in rule for mark in OURS)


def _differences(before: Any, now: Any) -> Iterator[str]:
    """Yield what is new, gone or other among the arguments."""
    old, new = _arguments(before), _arguments(now)
    if gone := sorted(old.keys() - new.keys()):
        yield f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone"
    if added := sorted(new.keys() - old.keys()):
        yield f"{', '.join(added)} {'is' if len(added) == 1 else 'are'} new"
    if other := sorted(name for name in old.keys() & new.keys() if old[name] != new[name]):
        yield f"{', '.join(other)} {'is' if len(other) == 1 else 'are'} another"
    required = set(now.get("required", ())) - set(before.get("required", ())) - set(added)
    if required:
        yield f"{', '.join(sorted(required))} must be given now"


def _arguments(schema: Any) -> Mapping[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}
