"""Judge: what one call that a model asks for may do. Pure, so that a replay proves every verdict.

In this order: the whitelist, masked values, arguments that belong to the author, the tool's own schema, how often it
was called, the author's narrowing, where its values come from, approval.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from agent_core.config import AfterUntrusted
from agent_core.effects import VerdictKind
from agent_core.loop.masked import Marks
from agent_core.origins.sources import MODEL, Proof, Tracing, Unproven
from agent_core.outputs import FinishReason, Json
from agent_core.policy import arguments_of
from agent_core.protocol.clip import clip
from agent_core.rules import BY_DECIMALS
from agent_core.tool_policy import Policies, ToolPolicy
from agent_core.words.catalogue import ENGLISH, Words
from utools.schema.compiled import compile_narrowing, compile_schema
from utools.schema.faults import Fault, shown
from utools.schema.pointer import pointer_of, unescape, value_at
from utools.tool import Effect as ToolEffect


class Verdict(NamedTuple):
    """`run`, `wait` for a person, or `refuse` with the reason and a message for the model."""

    verdict: VerdictKind
    reason: FinishReason | None = None
    message: str = ""
    origins: dict[str, str] | None = None
    """Where each value of the call comes from, by pointer, once it got as far as that."""
    question: str | None = None
    """What a person has to know who decides on the call, beside the call itself."""


RUN = Verdict("run")
MAX_SHOWN, MAX_FAULTS = 100, 8
"""Characters of what a model named, and faults, that a refusal repeats."""


def judge(
    tool: str,
    args: Json,
    effect: ToolEffect,
    *,
    tools: Policies,
    made: int,
    proof: Proof,
    edited: bool = False,
    after_untrusted: AfterUntrusted = "run",
    marks: Marks,
    words: Words = ENGLISH,
) -> Verdict:
    """Return the verdict on one call.

    `tools` is the run's policy by code, `made` how often the tool was called so far, `proof` what tells where its
    values come from. `edited` says that a person wrote these arguments, so that no approval is asked again.
    `after_untrusted` is the run's rule for writes, `marks` are those that its masking leaves. A refusal is in `words`.
    """
    policy = tools.get(tool)
    if policy is None:
        return _refuse_unknown(tool, tools, words)
    if marks.marks and (masked := marks.faults(args, words)):
        return _refuse(tool, "policy_denied", masked, words)
    if refusal := _check_arguments(tool, args, policy, proof.comparison, words):
        return refusal
    if policy["max_calls"] and made >= policy["max_calls"]:
        return Verdict("refuse", "policy_denied", refuse_count(tool, policy["max_calls"], words))
    if policy["args"] is not None and (faults := narrowing_faults(policy["args"], args, proof.comparison, words)):
        return _refuse(tool, "policy_denied", faults, words)
    traced = proof.trace(args, policy)
    verdict = RUN if edited else _check_origins(tool, args, effect, policy, traced, proof.comparison, words)
    if verdict.verdict == "run" and effect == "write" and not edited and proof.has_untrusted:
        verdict = _weigh_untrusted(tool, after_untrusted, proof.comparison, words)
    if not traced.origins:
        return verdict
    return Verdict(verdict.verdict, verdict.reason, verdict.message, traced.origins, verdict.question)


def narrowing_faults(schema: Json, args: Json, comparison: int, words: Words = ENGLISH) -> list[Fault]:
    """Return what an author's narrowing refuses, under these rules of comparison."""
    narrowing = compile_narrowing(
        schema, "strict" if comparison >= 3 else "earlier", decimals=comparison >= BY_DECIMALS
    )
    return narrowing.faults(args, words)


def _refuse_unknown(tool: str, tools: Policies, words: Words) -> Verdict:
    offered = words.offered.format(tools=", ".join(tools)) if tools else words.no_tools
    message = words.unknown_tool.format(tool=repr(clip(tool, MAX_SHOWN, words)), offered=offered)
    return Verdict("refuse", "policy_denied", message)


def denied_by_person(tool: str, why: str, words: Words) -> Verdict:
    """Return the refusal of what a person denied, a call of a tool or a plan."""
    refusal = words.refused_by_person_because if why else words.refused_by_person
    return Verdict("refuse", "policy_denied", refusal.format(tool=tool, why=why))


def refuse_count(tool: str, most: int, words: Words) -> str:
    """Return what is said of a call of a tool that was called as often as it may be."""
    return words.called_too_often.format(tool=tool, most=most)


def _check_arguments(tool: str, args: Json, policy: ToolPolicy, comparison: int, words: Words) -> Verdict | None:
    if policy["hidden"] and (authored := [key for key in args if key in policy["hidden"]]):
        key = authored[0]
        return _refuse(tool, "invalid_action", [_fault(f"/{key}", words.set_by_author, _show(args[key]))], words)
    schema = compile_schema(policy["schema"], decimals=comparison >= BY_DECIMALS)
    faults = schema.faults(arguments_of(policy, args), words)
    if faults and (faults := without_filled(policy.get("fills", ()), faults)):
        own = [_without_authored(fault, args, policy["hidden"], words) for fault in faults]
        return _refuse(tool, "invalid_action", own, words)
    return None


def _without_authored(fault: Fault, args: Json, hidden: Sequence[str], words: Words) -> Fault:
    """Return the fault without the values that the author set: no model sees those."""
    if hidden and not fault.pointer:
        return replace(fault, got=words.own_arguments.format(own=shown(args), got=fault.got))
    if unescape(fault.pointer[1:].split("/")[0]) in hidden and fault.got != words.nothing:
        return replace(fault, got=words.authors_value.format(got=fault.got))
    return fault


def _fault(pointer: str, expected: str, got: str) -> Fault:
    return Fault(pointer, expected, got, f"{pointer} {expected}")


def _check_origins(
    tool: str, args: Json, effect: ToolEffect, policy: ToolPolicy, traced: Tracing, comparison: int, words: Words
) -> Verdict:
    """Return where its values come from, first: what is not proven goes to approval where the tool has one."""
    approval, unproven = policy["approval"], traced.unproven
    if unproven is not None and approval == "never":
        got = _show(value_at(args, unproven.pointer))
        return _refuse(tool, "policy_denied", [_fault(unproven.pointer, *_explain(unproven, got, words))], words)
    if unproven is not None:
        return _ask(
            _describe(unproven, None if comparison < 3 else _show(value_at(args, unproven.pointer))), comparison
        )
    if approval == "always" or (approval == "on_write" and effect == "write"):
        return Verdict("wait", "awaiting_approval", f"{tool} needs a person's approval")
    return RUN


def _ask(why: str, comparison: int) -> Verdict:
    """Return the verdict on a call that waits for a person, who is told why; not so under earlier rules."""
    return Verdict("wait", "awaiting_approval", why, question=why if comparison >= 3 else None)


def _explain(unproven: Unproven, got: str, words: Words) -> tuple[str, str]:
    """Return what was expected of a value that is not proven, and what was sent, for a model."""
    if unproven.rule is None:
        return words.copied, words.untrusted.format(got=got)
    expected = words.between_origins.join([words.origins.get(name, name) for name in unproven.rule.any_of])
    origin = words.no_origin if unproven.origin == MODEL else unproven.origin
    return words.proven.format(origins=expected), words.unproven.format(got=got, origin=origin)


def _describe(unproven: Unproven, got: str | None) -> str:
    """Return why a person is asked: which value `got` there, where it comes from, and what would have proven it.

    Runs under earlier rules were not told the value.
    """
    if unproven.rule is None:
        return f"{unproven.pointer} is not in trusted text"
    origin = "the model" if unproven.origin == MODEL else unproven.origin
    if got is None:
        return f"{unproven.pointer} comes from {origin}; provenance asks for {unproven.rule}"
    wanted = ENGLISH.between_origins.join([ENGLISH.origins.get(name, name) for name in unproven.rule.any_of])
    return f"{unproven.pointer} is {got}, which comes from {origin}; it would be proven by {wanted}"


def _weigh_untrusted(tool: str, after_untrusted: AfterUntrusted, comparison: int, words: Words) -> Verdict:
    """Return the verdict on a write, once the run has read an untrusted text."""
    match after_untrusted:
        case "ask":
            return _ask(f"{tool} writes, and the run has read untrusted text", comparison)
        case "refuse":
            return Verdict("refuse", "policy_denied", words.no_write_now.format(tool=tool))
        case _:
            return RUN


def without_filled(fills: Sequence[Json], faults: list[Fault]) -> list[Fault]:
    """Return the faults, without those of a text that the executor still puts a secret into."""
    if not fills or not faults:
        return faults
    filled = {pointer_of(fill["at"]) for fill in fills}
    return [fault for fault in faults if fault.pointer not in filled]


def with_schema(tools: Policies, tool: str, schema: Json) -> Policies:
    """Return the policy with another schema of a tool, that it has got since the run began."""
    return {**tools, tool: {**tools[tool], "schema": schema}} if tool in tools else tools


def edit_faults(schema: Json, before: Json, after: Json, comparison: int, now: Json | None = None) -> list[Fault]:
    """Return the faults of a person's arguments that those before did not have: a secret's place holds another text
    yet. `comparison` is the version of these rules.

    `now` is the schema by which they are judged, where it is not the one that those before were judged by.
    """
    earlier, later = (
        compile_schema(each, decimals=comparison >= BY_DECIMALS) for each in (schema, schema if now is None else now)
    )
    known = earlier.faults(before)
    return [fault for fault in later.faults(after) if fault not in known]


def refuse_arguments(tool: str, faults: Sequence[Fault], words: Words = ENGLISH) -> str:
    """Return what is said of a call that was not made because of its arguments."""
    return words.refused_arguments.format(tool=tool, faults=list_faults(faults, words))


def _refuse(tool: str, reason: FinishReason, faults: Sequence[Fault], words: Words) -> Verdict:
    return Verdict("refuse", reason, refuse_arguments(tool, faults, words))


def list_faults(faults: Sequence[Fault], words: Words, at: str = "") -> str:
    """Return the first faults: pointer, what was expected, what was sent."""
    lines = [
        words.refused_argument.format(
            at=clip(at + fault.pointer, MAX_SHOWN, words) or words.arguments,
            expected=clip(fault.expected, 2 * MAX_SHOWN, words),
            got=fault.got,
        )
        for fault in faults[:MAX_FAULTS]
    ]
    more = [words.more_refused.format(count=len(faults) - MAX_FAULTS)] if len(faults) > MAX_FAULTS else []
    return words.between_faults.join([*lines, *more])


def _show(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"
