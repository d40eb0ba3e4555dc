"""What is wrong with a plan, told before its first step runs. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from agent_core.loop.judge import Verdict, judge, refuse_arguments
from agent_core.loop.masked import Marks
from agent_core.loop.references import EXAMPLE, Grammar, find_lookalikes, find_references
from agent_core.origins.sources import Proof
from agent_core.outputs import FinishReason, Json
from agent_core.policy import arguments_of, effect_of
from agent_core.protocol.errors import ProtocolError, check_object
from agent_core.protocol.parse import PlanStep
from agent_core.rules import BY_DECIMALS
from agent_core.tool_policy import Policies, ToolPolicy
from agent_core.words.catalogue import Words
from utools.schema.compiled import compile_schema
from utools.schema.faults import Fault

PLAN = "plan"
"""The code under which a plan waits for a person; no tool of such a run may have it."""


def read_steps(args: Json, words: Words) -> list[PlanStep] | ProtocolError:
    """Return the steps of a plan that a person wrote, `{"steps": […]}`, or what is wrong with its form."""
    error = check_object({"type": "plan", **args}, any_answer=False, words=words)
    return error or [PlanStep(**step) for step in args["steps"]]


def judge_plan(
    steps: Sequence[PlanStep],
    tools: Policies,
    proof: Proof,
    words: Words,
    *,
    grammar: Grammar,
    calls_left: int | None,
    edited: bool,
    marks: Marks,
) -> Verdict | None:
    """Return the refusal of a plan with all its faults, under the reason of the first; None when it may begin.

    `grammar` is how its references are read. A step is judged again when it runs: what a reference will give is known
    only then.
    """
    if calls_left is not None and len(steps) > calls_left:
        message = words.plan_too_long.format(steps=len(steps), left=calls_left)
        return Verdict("refuse", "max_tool_calls", message)
    found = list(_find_faults(steps, tools, proof, words, grammar=grammar, marks=marks, edited=edited))
    if not found:
        return None
    return Verdict("refuse", found[0][0], "\n".join(message for _, message in found))


def _find_faults(
    steps: Sequence[PlanStep],
    tools: Policies,
    proof: Proof,
    words: Words,
    *,
    grammar: Grammar,
    marks: Marks,
    edited: bool,
) -> Iterator[tuple[FinishReason, str]]:
    earlier: Counter[str] = Counter()
    for step in steps:
        verdict = _refuse_references(step, grammar, words) or _judge_step(
            step, tools, proof, words, grammar=grammar, marks=marks, made=earlier[step.tool], edited=edited
        )
        earlier[step.tool] += 1
        if verdict.verdict == "refuse":
            reason = verdict.reason or "invalid_action"
            yield reason, words.wrong_step.format(step=step.step, fault=verdict.message)


def _refuse_references(step: PlanStep, grammar: Grammar, words: Words) -> Verdict | None:
    """Return the refusal of a step that refers to none before it."""
    for pointer, text in find_lookalikes(step.parameters, grammar):
        message = words.no_reference.format(at=pointer, text=text, example=EXAMPLE)
        return Verdict("refuse", "invalid_action", message)
    for pointer, numbers in find_references(step.parameters, grammar):
        if wrong := [number for number in numbers if not 1 <= number < step.step]:
            message = words.later_reference.format(at=pointer, step=wrong[0])
            return Verdict("refuse", "invalid_action", message)
    return None


def _judge_step(
    step: PlanStep,
    tools: Policies,
    proof: Proof,
    words: Words,
    *,
    grammar: Grammar,
    marks: Marks,
    made: int,
    edited: bool,
) -> Verdict:
    references = list(find_references(step.parameters, grammar))
    policy = tools.get(step.tool)
    judged = tools if policy is None or not references else {**tools, step.tool: _without_values(policy)}
    effect = effect_of(policy, step.parameters) or "read"
    verdict = judge(
        step.tool,
        step.parameters,
        effect,
        tools=judged,
        made=made,
        proof=proof,
        edited=edited,
        marks=marks,
        words=words,
    )
    if policy is None or not references or verdict.verdict == "refuse":
        return verdict
    schema = compile_schema(policy["schema"], decimals=proof.comparison >= BY_DECIMALS)
    faults = schema.faults(arguments_of(policy, step.parameters), words)
    own = [fault for fault in faults if not _is_about_reference(fault, [pointer for pointer, _ in references])]
    return Verdict("refuse", "invalid_action", refuse_arguments(step.tool, own, words)) if own else verdict


def _without_values(policy: ToolPolicy) -> ToolPolicy:
    """Return the policy as far as it can be checked before the arguments are known."""
    return cast(ToolPolicy, {**policy, "schema": {}, "args": None, "provenance": {}})


def _is_about_reference(fault: Fault, pointers: Sequence[str]) -> bool:
    """Return whether a fault is that of a reference, or of what holds one: its value is not known yet."""
    at = fault.pointer
    return any(at == each or at.startswith(f"{each}/") or each.startswith(f"{at}/") for each in pointers)
