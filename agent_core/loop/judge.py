"""Judge: what one call that a model asks for may do. Pure, so that a replay proves every verdict.

In this order: on the whitelist, no argument that is the author's, the tool's own schema, how often,
the author's narrowing, provenance, approval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from agent_core.effects import FinishReason, Json
from agent_core.loop.provenance import untrusted
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


_RUN = Verdict("run")
LONGEST, MOST_FAULTS = 100, 8
"""Characters of what a model named, and faults, that a refusal repeats."""


def judge(
    tool: str,
    args: Json,
    effect: str,
    *,
    tools: Json,
    made: int,
    trusted: Iterable[str],
    edited: bool = False,
) -> Verdict:
    """The verdict on one call. `tools` is the run's policy by code, `made` how often the tool was called so far;
    `edited` says that a person wrote these arguments, so that no approval is asked again."""
    policy = tools.get(tool)
    if policy is None:
        offered = f"You may call: {', '.join(tools)}." if tools else "There are no tools in this run."
        return Verdict("refuse", "policy_denied", f"The tool {clip(tool, LONGEST)!r} is not allowed here. {offered}")
    if authored := [key for key in args if key in policy["hidden"]]:
        fault = Fault(f"/{authored[0]}", "to be left out", _shown(args[authored[0]]), "is set by the workflow's author")
        return _refused("invalid_action", tool, [fault])
    faults = compile_schema(policy["schema"]).faults({**policy["preset"], **args})
    if faults := apart_from(policy.get("fills", ()), faults):
        return _refused("invalid_action", tool, faults)
    if policy["max_calls"] and made >= policy["max_calls"]:
        return Verdict(
            "refuse", "policy_denied", f"The tool {tool} may be called {policy['max_calls']} times, no more."
        )
    if policy["args"] is not None and (faults := compile_narrowing(policy["args"]).faults(args)):
        return _refused("policy_denied", tool, faults)
    asks = policy["approval"] == "always" or (policy["approval"] == "on_write" and effect == "write")
    if not edited and (place := _untrusted(args, policy, trusted)) is not None:
        if policy["approval"] != "never":
            return Verdict("wait", "awaiting_approval", f"{place} is not in trusted text")
        return _refused("policy_denied", tool, [_unproven(place)])
    if asks and not edited:
        return Verdict("wait", "awaiting_approval", f"{tool} needs a person's approval")
    return _RUN


def apart_from(fills: Sequence[Json], faults: list[Fault]) -> list[Fault]:
    """The faults, but for those of a text that the door still puts a secret into."""
    if not fills or not faults:
        return faults
    places = {pointer_of(fill["at"]) for fill in fills}
    return [fault for fault in faults if fault.pointer not in places]


def effect_of(policy: Json | None, args: Json) -> str | None:
    """What a call would do, as far as its policy can tell; None when only the tool's host knows."""
    if policy is None:
        return "write"
    effect = policy["effect"]
    if isinstance(effect, str):
        return None if effect == "dynamic" else effect
    chosen = {**policy["preset"], **args}.get(effect["argument"])
    return "read" if isinstance(chosen, str) and chosen in effect["read"] else "write"


def _untrusted(args: Json, policy: Json, trusted: Iterable[str]) -> str | None:
    if not policy["provenance"]:
        return None
    texts = list(trusted)
    properties = policy["schema"].get("properties", {})
    for name in policy["provenance"]:
        if name in args:
            place = untrusted(args[name], properties.get(name, {}), texts, f"/{name}")
            if place is not None:
                return place
    return None


def _unproven(place: str) -> Fault:
    told = "must be copied exactly from what the user or the author wrote"
    return Fault(place, told, "a value from elsewhere", f"{place} {told}.")


def _refused(reason: FinishReason, tool: str, faults: Sequence[Fault]) -> Verdict:
    return Verdict("refuse", reason, f"The arguments of {tool} were refused, nothing was run: {listed(faults)}.")


def listed(faults: Sequence[Fault], at: str = "") -> str:
    """The first faults in one line: pointer, what was expected, what was sent."""
    lines = [
        f"{clip(at + fault.pointer, LONGEST) or 'args'}: "
        f"expected {clip(fault.expected, 2 * LONGEST)}, you sent {fault.got}"
        for fault in faults[:MOST_FAULTS]
    ]
    more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
    return "; ".join([*lines, *more])


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"
