"""Judge: what one call that a model asks for may do. Pure, so that a replay proves every verdict.

In this order: the whitelist, arguments that belong to the author, the tool's own schema, how often it was called,
the author's narrowing, provenance, approval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from agent_core.effects import FinishReason, Json
from agent_core.loop.provenance import find_untrusted
from agent_core.policy import Policies, ToolPolicy, arguments_of
from agent_core.protocol.clip import clip
from utools.schema.compiled import compile_narrowing, compile_schema
from utools.schema.faults import Fault
from utools.schema.pointer import pointer_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """`run`, `wait` for a person, or `refuse` with the reason and a message for the model."""

    verdict: Literal["run", "wait", "refuse"]
    reason: FinishReason | None = None
    message: str = ""


RUN = Verdict("run")
MAX_SHOWN, MAX_FAULTS = 100, 8
"""Characters of what a model named, and faults, that a refusal repeats."""


def judge(
    tool: str,
    args: Json,
    effect: str,
    *,
    tools: Policies,
    made: int,
    trusted: Iterable[str],
    edited: bool = False,
) -> Verdict:
    """The verdict on one call.

    `tools` is the run's policy by code, `made` how often the tool was called so far, `trusted` the texts that
    provenance may rest on. `edited` says that a person wrote these arguments, so that no approval is asked again.
    """
    policy = tools.get(tool)
    if policy is None:
        return _refuse_unknown(tool, tools)
    if refusal := _check_arguments(tool, args, policy):
        return refusal
    if policy["max_calls"] and made >= policy["max_calls"]:
        return Verdict("refuse", "policy_denied", refuse_count(tool, policy["max_calls"]))
    if policy["args"] is not None and (faults := compile_narrowing(policy["args"]).faults(args)):
        return _refuse(tool, "policy_denied", faults)
    return RUN if edited else _check_approval(tool, args, effect, policy, trusted)


def _refuse_unknown(tool: str, tools: Policies) -> Verdict:
    offered = f"You may call: {', '.join(tools)}." if tools else "There are no tools in this run."
    return Verdict("refuse", "policy_denied", f"The tool {clip(tool, MAX_SHOWN)!r} is not allowed here. {offered}")


def refuse_count(tool: str, most: int) -> str:
    """What is said of a call of a tool that was called as often as it may be."""
    return f"The tool {tool} may be called {most} times, no more."


def _check_arguments(tool: str, args: Json, policy: ToolPolicy) -> Verdict | None:
    if authored := [key for key in args if key in policy["hidden"]]:
        key = authored[0]
        fault = Fault(f"/{key}", "to be left out", _show(args[key]), "is set by the workflow's author")
        return _refuse(tool, "invalid_action", [fault])
    faults = compile_schema(policy["schema"]).faults(arguments_of(policy, args))
    if faults := without_filled(policy.get("fills", ()), faults):
        return _refuse(tool, "invalid_action", faults)
    return None


def _check_approval(tool: str, args: Json, effect: str, policy: ToolPolicy, trusted: Iterable[str]) -> Verdict:
    """Provenance first: what fails it goes to approval where the tool has one."""
    pointer = _find_untrusted(args, policy, trusted)
    if pointer is not None and policy["approval"] == "never":
        expected = "must be copied exactly from what the user or the author wrote"
        fault = Fault(pointer, expected, "a value from elsewhere", f"{pointer} {expected}.")
        return _refuse(tool, "policy_denied", [fault])
    if pointer is not None:
        return Verdict("wait", "awaiting_approval", f"{pointer} is not in trusted text")
    if policy["approval"] == "always" or (policy["approval"] == "on_write" and effect == "write"):
        return Verdict("wait", "awaiting_approval", f"{tool} needs a person's approval")
    return RUN


def _find_untrusted(args: Json, policy: ToolPolicy, trusted: Iterable[str]) -> str | None:
    """The pointer of the first argument under provenance that no trusted text contains."""
    if not policy["provenance"]:
        return None
    texts = list(trusted)
    properties = policy["schema"].get("properties", {})
    for name in policy["provenance"]:
        if name in args:
            pointer = find_untrusted(args[name], properties.get(name, {}), texts, f"/{name}")
            if pointer is not None:
                return pointer
    return None


def without_filled(fills: Sequence[Json], faults: list[Fault]) -> list[Fault]:
    """The faults, without those of a text that the executor still puts a secret into."""
    if not fills or not faults:
        return faults
    filled = {pointer_of(fill["at"]) for fill in fills}
    return [fault for fault in faults if fault.pointer not in filled]


def edit_faults(schema: Json, before: Json, after: Json) -> list[Fault]:
    """The faults of a person's arguments that those before did not have: a secret's place holds another text yet."""
    known = compile_schema(schema).faults(before)
    return [fault for fault in compile_schema(schema).faults(after) if fault not in known]


def refuse_arguments(tool: str, faults: Sequence[Fault]) -> str:
    """What is said of a call that was not made because of its arguments."""
    return f"The arguments of {tool} were refused, nothing was run: {list_faults(faults)}."


def _refuse(tool: str, reason: FinishReason, faults: Sequence[Fault]) -> Verdict:
    return Verdict("refuse", reason, refuse_arguments(tool, faults))


def list_faults(faults: Sequence[Fault], at: str = "") -> str:
    """The first faults in one line: pointer, what was expected, what was sent."""
    lines = [
        f"{clip(at + fault.pointer, MAX_SHOWN) or 'args'}: "
        f"expected {clip(fault.expected, 2 * MAX_SHOWN)}, you sent {fault.got}"
        for fault in faults[:MAX_FAULTS]
    ]
    more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    return "; ".join([*lines, *more])


def _show(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"
